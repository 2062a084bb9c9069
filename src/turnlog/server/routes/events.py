"""`/api/events` and `/api/sessions/{id}/events`: what changes, as it changes, as server-sent events.

What changed since the reader's last event comes first, then what changes from then on, each once.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response, StreamingResponse

from turnlog.server.context import ContextOf
from turnlog.server.live.frames import KEEP_ALIVE, word
from turnlog.server.live.hub import Hub
from turnlog.server.live.topic import LaggedError
from turnlog.server.openapi import streams
from turnlog.server.parameters.messages import EventsQuery
from turnlog.server.responses import ChangePlace, SessionChange, SessionsChange

KEEP_ALIVE_SECONDS = 15.0

_NOWHERE = -1
"""The place of a reader whose last event is none of ours."""

_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
"""Kept by nobody, and passed on at once by a proxy."""

router = APIRouter(default_response_class=Response, tags=["events"])


@router.get("/events", responses=streams(SessionsChange, ChangePlace))
async def get_all_events(request: Request, context: ContextOf, query: Annotated[EventsQuery, Query()]) -> Response:
    """The summaries of sessions that are new or have changed."""
    return _stream(context.hub, None, _last_event(request, query))


@router.get("/sessions/{session_id}/events", responses=streams(SessionChange, ChangePlace))
async def get_session_events(
    request: Request, context: ContextOf, session_id: str, query: Annotated[EventsQuery, Query()]
) -> Response:
    """Messages of a session that are new or have changed, with their places, and what else happened."""
    await run_in_threadpool(context.store.session, session_id)
    return _stream(context.hub, session_id, _last_event(request, query))


def _last_event(request: Request, query: EventsQuery) -> int | None:
    told = request.headers.get("last-event-id")
    if told is None:
        return query.after
    return int(told) if told.isascii() and told.isdecimal() and len(told) < 20 else _NOWHERE


def _stream(hub: Hub, session_id: str | None, after: int | None) -> Response:
    return StreamingResponse(_events(hub, session_id, after), headers=_HEADERS, media_type="text/event-stream")


async def _events(hub: Hub, session_id: str | None, after: int | None) -> AsyncGenerator[bytes]:
    with hub.watch(session_id) as reader:
        now = reader.sequence
        if after is not None:
            yield await run_in_threadpool(hub.replay, session_id, after, now)
        yield word("ready", now)
        while True:
            try:
                piece = await reader.read(KEEP_ALIVE_SECONDS)
            except LaggedError:
                yield word("resync", reader.sequence)
                continue
            if piece.data or not piece.is_over:
                yield piece.data or KEEP_ALIVE
            if piece.is_over:
                return
