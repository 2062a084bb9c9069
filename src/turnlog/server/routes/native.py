"""Native sessions: sessions, messages and tool calls that programs create here, and whose a session is.

Bodies are the model's own values. Saving the same again changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, NoReturn, TypeVar

import msgspec
from fastapi import Depends, HTTPException, Request
from starlette.responses import Response

from turnlog.model import Ownership
from turnlog.model.codec import encode
from turnlog.plain_text import refuse_controls
from turnlog.server.bodies import read_body
from turnlog.server.context import Context, ContextOf, context_of, write
from turnlog.server.errors import InvalidBodyError, InvalidParameterError, judging
from turnlog.server.openapi import responds_with, takes
from turnlog.server.requests import MessagesBody, SessionBody, ToolCallBody
from turnlog.server.responses import MembershipsResponse, MessageResponse, SessionItem
from turnlog.server.routes.router import api_router
from turnlog.server.routes.sessions import may_annotate, takes_json
from turnlog.store.values import SessionFacts

BodyT = TypeVar("BodyT")

MOST_BYTES = 32_000_000
"""Of a body."""

_PLACE = re.compile(r"(?P<reason>.*?)(?: - at `\$(?P<path>.*)`)?", re.DOTALL)
_FIELD = re.compile(r"field `(?P<name>[^`]*)`")
_STEP = re.compile(r"\.?([^.\[\]]+)")


async def may_write(request: Request) -> None:
    """Refuse where nothing may be changed."""
    await may_annotate(request)
    if (await context_of(request)).settings.sample:
        raise HTTPException(403, "the sample is for reading only")


async def _read(request: Request) -> bytes:
    """The body; 413 beyond `MOST_BYTES`."""
    return await read_body(request, MOST_BYTES)


BodyOf = Annotated[bytes, Depends(_read)]

router = api_router(dependencies=[Depends(may_write)])
_JSON = [Depends(takes_json)]


@router.post(
    "/sessions",
    tags=["native sessions"],
    responses=responds_with(SessionItem, created=True),
    openapi_extra=takes(SessionBody),
    dependencies=_JSON,
)
def save_session(request: Request, context: ContextOf, data: BodyOf) -> Response:
    """Create a session (201), or change what is known of it (200)."""
    body = decode(data, SessionBody)
    _refuse_controls("", body, ("title", "cwd", "git_branch", "git_commit"))
    if body.ownership is not None:
        _refuse_controls("ownership.", body.ownership, _OWNERSHIP)
    session_id = f"{body.agent}:{body.external_id}"
    facts = SessionFacts(
        title=body.title,
        cwd=body.cwd,
        git_branch=body.git_branch,
        git_commit=body.git_commit,
        created_at=body.created_at,
        updated_at=body.updated_at,
        metadata=body.metadata if body.summary is None else {**body.metadata, "summary": body.summary},
    )
    is_new = context.store.find_session(body.agent, body.external_id) is None
    if is_new or body.ownership is not None:
        ownership = context.ownership(body.ownership)
        if ownership is not None:
            facts["ownership"] = ownership
    with judging("external_id"):
        context.claim(session_id)
        context.store.save_session(session_id, **facts)
    answer = _item(request, context, session_id)
    answer.status_code = 201 if is_new else 200
    return answer


@router.post(
    "/sessions/{session_id}/messages",
    tags=["native sessions"],
    responses=responds_with(MembershipsResponse),
    openapi_extra=takes(MessagesBody),
    dependencies=_JSON,
)
def save_messages(request: Request, context: ContextOf, session_id: str, data: BodyOf) -> Response:
    """Create messages, or replace those of their ids; their places then."""
    body = decode(data, MessagesBody)
    for number, message in enumerate(body.messages):
        if _SEPARATOR in message.id:
            raise InvalidParameterError(f"messages.{number}.id", "an id has no character U+001F")
    context.require_own(session_id)
    context.store.session(session_id)
    with judging("messages"):
        context.store.save_messages(session_id, body.messages, retracted=body.retracted)
    context.live_topics.wake()
    found = [place for message in body.messages for place in context.store.memberships(message.id)]
    return write(request, MembershipsResponse(items=[place for place in found if place.session_id == session_id]))


@router.post(
    "/sessions/{session_id}/tool-calls",
    tags=["native sessions"],
    responses=responds_with(MessageResponse),
    openapi_extra=takes(ToolCallBody),
    dependencies=_JSON,
)
def save_tool_call(request: Request, context: ContextOf, session_id: str, data: BodyOf) -> Response:
    """Create a tool call in a message, or replace the one of its id; the message as it is then."""
    body = decode(data, ToolCallBody)
    context.require_own(session_id)
    context.store.session(session_id)
    with judging("call"):
        message = context.store.save_tool_call(session_id, body.message_id, body.call)
    context.live_topics.wake()
    memberships = context.store.memberships(body.message_id)
    return write(request, {"message": msgspec.Raw(encode(message)), "memberships": memberships})


@router.put(
    "/sessions/{session_id}/ownership",
    tags=["native sessions"],
    responses=responds_with(SessionItem),
    openapi_extra=takes(Ownership),
    dependencies=_JSON,
)
def put_ownership(request: Request, context: ContextOf, session_id: str, data: BodyOf) -> Response:
    """Say whose a session is: user, team, task, machine. What is left out is nobody."""
    context.require_own(session_id)
    given = decode(data, Ownership)
    _refuse_controls("", given, _OWNERSHIP)
    context.store.change_owner(session_id, context.ownership(given) or given)
    return _item(request, context, session_id)


@router.delete("/sessions/{session_id}", tags=["native sessions"], status_code=204, responses=responds_with(None))
def delete_session(context: ContextOf, session_id: str) -> Response:
    """Remove a native session for good: its id cannot be used again."""
    context.require_own(session_id)
    if not context.store.session(session_id).native:
        raise HTTPException(409, f"{session_id} comes from logs: `turnlog forget` removes it")
    context.store.forget(session_id)
    context.live_topics.wake()
    return Response(status_code=204)


def _item(request: Request, context: Context, session_id: str) -> Response:
    context.live_topics.wake()
    (item,) = context.items.of([context.store.session(session_id)])
    return write(request, item)


_OWNERSHIP = ("user", "team", "task", "machine")

_SEPARATOR = "\x1f"
"""What no machine may push either: a copy that is searched puts it behind ids."""


def _refuse_controls(place: str, body: SessionBody | Ownership, fields: Sequence[str]) -> None:
    """Raise InvalidParameterError for a name with a control character."""
    for field in fields:
        name: str | None = getattr(body, field)
        if name is not None:
            with judging(f"{place}{field}"):
                refuse_controls(name)


def decode(data: bytes, kind: type[BodyT]) -> BodyT:
    """A body of a type; InvalidBodyError (400) for what is no JSON, InvalidParameterError (422) with the place."""
    try:
        try:
            return msgspec.json.decode(data, type=kind)
        except msgspec.ValidationError as error:
            # A wrong field is found first, also in a body that breaks off behind it.
            msgspec.json.decode(data)
            _blame(str(error))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidBodyError(str(error)) from error


def _blame(text: str) -> NoReturn:
    """Raise InvalidParameterError for what msgspec says: `Expected … - at `$.messages[0].id``."""
    found = _PLACE.fullmatch(text)
    assert found is not None
    steps: list[str] = _STEP.findall(found["path"] or "")
    if named := _FIELD.search(found["reason"]):
        steps.append(named["name"])
    raise InvalidParameterError(".".join(steps) or "body", found["reason"])
