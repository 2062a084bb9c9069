"""`/api/sessions`: the list, one session with its relatives and landmarks, and what the user said about it."""

from __future__ import annotations

from typing import Annotated

import msgspec
from fastapi import APIRouter, Depends, HTTPException, Query, Request
from starlette.responses import Response

from turnlog.errors import NotFoundError
from turnlog.model import Session
from turnlog.server.context import ContextOf, write
from turnlog.server.errors import judging
from turnlog.server.frames import not_modified
from turnlog.server.openapi import responds_with
from turnlog.server.parameters.base import LARGEST_POSITION
from turnlog.server.parameters.sessions import AnnotationsBody, SessionQuery
from turnlog.server.responses import OutlineResponse, SessionItem, SessionPage, SessionResponse
from turnlog.store.base import Store
from turnlog.store.window import MessageRow

router = APIRouter(prefix="/sessions", default_response_class=Response, tags=["sessions"])

_rows = msgspec.json.Decoder(list[MessageRow])


@router.get("", responses=responds_with(SessionPage))
def list_sessions(request: Request, context: ContextOf, query: Annotated[SessionQuery, Query()]) -> Response:
    """Sessions, page by page."""
    sequence = context.change_sequence()
    with judging("cursor"):
        page = context.store.sessions(
            query.to_filter(), sort=query.sort, limit=query.limit, cursor=query.cursor, count=True
        )
    items = context.items.of(page.items)
    body = SessionPage(items=items, next_cursor=page.next_cursor, total=page.total or 0, change_sequence=sequence)
    return write(request, body)


@router.get("/{session_id}", responses=responds_with(SessionResponse))
def get_session(request: Request, context: ContextOf, session_id: str) -> Response:
    """A session and its relatives."""
    store, sequence = context.store, context.change_sequence()
    session = store.session(session_id)
    parent = _parent(store, session)
    children = store.children(session_id)
    items = {item.id: item for item in context.items.of([session, *children, *([parent] if parent else [])])}
    subagents = {child.id for child in children if _came_as_subagent(child, session_id)}
    first, last = _extent(store, session_id)
    body = SessionResponse(
        session=items[session.id],
        parent=items[parent.id] if parent else None,
        children=[items[child.id] for child in children if child.id in subagents],
        forks=[items[child.id] for child in children if child.id not in subagents],
        first_position=first,
        last_position=last,
        change_sequence=sequence,
    )
    return write(request, body)


@router.get("/{session_id}/outline", responses=responds_with(OutlineResponse))
def get_outline(request: Request, context: ContextOf, session_id: str) -> Response:
    """Prompts, compactions, rewinds and failures, in order."""
    etag = context.etag()
    entries = context.store.outline(session_id)
    if known := not_modified(request.headers, etag):
        return known
    return write(request, OutlineResponse(items=entries), etag)


async def takes_json(request: Request) -> None:
    """Refuse a body of any other kind: a form of another site can send those."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise HTTPException(415, "the body must be application/json")


@router.patch("/{session_id}", responses=responds_with(SessionItem), dependencies=[Depends(takes_json)])
def patch_session(request: Request, context: ContextOf, session_id: str, body: AnnotationsBody) -> Response:
    """Change what is said about a session: its title, star, tags, note, and whether it is archived."""
    context.store.annotate(session_id, **body.to_change())
    context.hub.wake()
    (item,) = context.items.of([context.store.session(session_id)])
    return write(request, item)


def _parent(store: Store, session: Session) -> Session | None:
    """The session it came out of; None when there is none, or when it was never read."""
    if not session.relationships:
        return None
    try:
        return store.session(session.relationships[0].parent_session_id)
    except NotFoundError:
        return None


def _came_as_subagent(child: Session, session_id: str) -> bool:
    return any(link.kind == "subagent" and link.parent_session_id == session_id for link in child.relationships)


def _extent(store: Store, session_id: str) -> tuple[int | None, int | None]:
    """Positions of the first and of the last message."""
    first = _rows.decode(store.window(session_id, limit=1).rows)
    last = _rows.decode(store.window(session_id, before=LARGEST_POSITION, limit=1).rows)
    return (first[0].position, last[0].position) if first and last else (None, None)
