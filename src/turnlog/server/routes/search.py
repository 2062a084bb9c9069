"""What to find, and where."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated, cast

import msgspec
from fastapi import Query, Request
from pydantic import Field
from starlette.responses import Response

from turnlog.model import Role
from turnlog.server.context import ContextOf, write
from turnlog.server.errors import judging
from turnlog.server.openapi import responds_with
from turnlog.server.responses import (
    FoundName,
    SearchedSession,
    SearchGroup,
    SearchHit,
    SearchResponse,
    SessionPosition,
    SnippetPiece,
)
from turnlog.server.routes.parameters import Moment, QueryParameters, SmallPage, explain_nothing
from turnlog.server.routes.router import api_router
from turnlog.store.search.base import Hit, HitPlace, SearchField, SearchFilter, SearchSort, SessionHits
from turnlog.store.search.query import QueryError


class SearchQuery(QueryParameters):
    """What to find, and where."""

    q: str = Field(
        "",
        max_length=1000,
        description='Words, "phrases", prefix*, OR, -word and field:value; see the syntax of queries.',
    )
    agent: str | None = None
    project: str | None = Field(None, description="Path of the project, or its name.")
    session: str | None = None
    role: Role | None = None
    field: SearchField | None = None
    tool: str | None = None
    failed: bool | None = Field(None, description="Whether the tool call ended in an error.")
    has_image: bool | None = None
    since: Moment | None = None
    until: Moment | None = None
    user: str | None = Field(None, description="Whose the session is.")
    machine: str | None = None
    sort: SearchSort = Field("relevance", description="`relevance`: sessions, best first; `newest`: every hit.")
    flat: bool = Field(False, description="With `relevance`: every hit instead of one for each session.")
    limit: SmallPage = 20
    cursor: str | None = None

    def to_filter(self) -> SearchFilter:
        """The same for the index."""
        return SearchFilter(**self.model_dump(include=set(SearchFilter._fields)))


router = api_router(tags=["search"])


@router.get("/search", responses=responds_with(SearchResponse))
def search(request: Request, context: ContextOf, query: Annotated[SearchQuery, Query()]) -> Response:
    """Sessions that match the query, the best match first with its best hit; or every hit, newest or best first.

    Without words, everything that the filters leave.
    """
    with judging("cursor"), judging("q", QueryError):
        body = _hits(context, query) if query.flat or query.sort == "newest" else _sessions(context, query)
    if not body.items and not query.cursor:
        explain_nothing(context, query)
    return write(request, _with_owners(context, body))


def _with_owners(context: ContextOf, body: SearchResponse) -> SearchResponse:
    owners = context.owners([group.session.id for group in body.items])
    if not owners:
        return body
    items = [
        msgspec.structs.replace(
            group, session=msgspec.structs.replace(group.session, user=owners.get(group.session.id))
        )
        for group in body.items
    ]
    return msgspec.structs.replace(body, items=items)


def _sessions(context: ContextOf, query: SearchQuery) -> SearchResponse:
    page = context.searcher.sessions(query.q, query.to_filter(), limit=query.limit, cursor=query.cursor)
    return SearchResponse(
        items=[_session(found, query.session) for found in page.sessions],
        next_cursor=page.next_cursor,
        total=page.total,
        total_is_exact=page.total_is_exact,
        counted="sessions",
        unindexed=page.unindexed,
        suggestion=page.suggestion,
        note=page.note,
    )


def _hits(context: ContextOf, query: SearchQuery) -> SearchResponse:
    page = context.searcher.search(query.q, query.to_filter(), sort=query.sort, limit=query.limit, cursor=query.cursor)
    return SearchResponse(
        items=group_hits(page.hits, query.session),
        next_cursor=page.next_cursor,
        total=page.total,
        total_is_exact=page.total_is_exact,
        counted="hits",
        unindexed=page.unindexed,
        suggestion=page.suggestion,
        note=page.note,
    )


def _session(found: SessionHits, session_id: str | None) -> SearchGroup:
    hits: list[SearchHit] = []
    if found.hit is not None:
        # Of the sessions that share the message, the one that was found.
        wanted = session_id or found.session_id
        places = sorted(found.hit.places, key=lambda place: place.session_id != wanted)
        hits = [_hit(found.hit, places[0], places[1:])] if places else []
    return SearchGroup(
        session=SearchedSession(
            id=found.session_id,
            agent=found.agent,
            title=found.title,
            project=found.project,
            project_name=found.project_name,
        ),
        hits=hits,
        names=[FoundName(field=name.field, text=list(_pieces(name.text, name.marks))) for name in found.names],
        matches=found.matches,
        matches_is_exact=found.matches_is_exact,
    )


def group_hits(hits: Iterable[Hit], session_id: str | None) -> list[SearchGroup]:
    """Hits by session, in the order of their first hit.

    A hit that several sessions share is shown in the one that the filter names, else in the one that is billed for it.
    """
    groups: dict[str, tuple[Hit, HitPlace, list[SearchHit]]] = {}
    for hit in hits:
        places = sorted(hit.places, key=lambda place: place.session_id != session_id)
        if places:
            first = places[0]
            _, _, found = groups.setdefault(first.session_id, (hit, first, []))
            found.append(_hit(hit, first, places[1:]))
    return [
        SearchGroup(
            session=SearchedSession(
                id=place.session_id,
                agent=hit.agent,
                title=place.title,
                project=place.project,
                project_name=place.project_name,
            ),
            hits=found,
            names=[],
            matches=None,
            matches_is_exact=False,
        )
        for hit, place, found in groups.values()
    ]


def _hit(hit: Hit, place: HitPlace, others: Iterable[HitPlace]) -> SearchHit:
    return SearchHit(
        message_id=hit.message_id,
        position=place.position,
        part=hit.part,
        field=hit.field,
        role=cast("Role", hit.role),
        tool_name=hit.tool_name,
        created_at=hit.created_at,
        snippet=list(_pieces(hit.snippet, hit.marks)),
        also_in=[SessionPosition.of(other) for other in others],
    )


def _pieces(snippet: str, marks: Iterable[tuple[int, int]]) -> Iterator[SnippetPiece]:
    """The snippet cut at its marks: JavaScript counts characters in another way, so no offsets are sent."""
    end = 0
    for start, stop in marks:
        if start > end:
            yield SnippetPiece(text=snippet[end:start], marked=False)
        yield SnippetPiece(text=snippet[start:stop], marked=True)
        end = stop
    if end < len(snippet):
        yield SnippetPiece(text=snippet[end:], marked=False)
