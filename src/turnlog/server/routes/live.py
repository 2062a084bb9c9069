"""`/api/events` and `/api/hooks/{agent}`: changes as server-sent events, and hook events of agents as they come."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncGenerator
from functools import cache
from typing import Annotated

import msgspec
from fastapi import Query, Request
from starlette.background import BackgroundTask
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.responses import Response, StreamingResponse

from turnlog.agents import agents_with_hooks
from turnlog.errors import NotFoundError
from turnlog.hooks.send import LIMIT, LONGEST_TASK, task_of
from turnlog.server.bodies import read_body
from turnlog.server.context import Context, ContextOf, LocalContextOf
from turnlog.server.errors import InvalidParameterError
from turnlog.server.live import KEEP_ALIVE, LaggedError, LiveTopics, word
from turnlog.server.openapi import accepts_with, streams
from turnlog.server.responses import ChangePlace, HookResponse, SessionsUpdate, SessionUpdate
from turnlog.server.routes.messages import EventsQuery
from turnlog.server.routes.router import api_router

KEEP_ALIVE_SECONDS = 15.0

_NOWHERE = -1
"""The place of a reader whose last event is none of ours."""

_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
"""Kept by nobody, and passed on at once by a proxy."""


router = api_router()


@router.get("/events", tags=["events"], responses=streams(SessionsUpdate, ChangePlace))
async def get_all_events(request: Request, context: ContextOf, query: Annotated[EventsQuery, Query()]) -> Response:
    """The summaries of sessions that are new or have changed."""
    return await _stream(context, None, _last_event(request, query))


@router.get("/sessions/{session_id}/events", tags=["events"], responses=streams(SessionUpdate, ChangePlace))
async def get_session_events(
    request: Request, context: ContextOf, session_id: str, query: Annotated[EventsQuery, Query()]
) -> Response:
    """Messages of a session that are new or have changed, with their places, and what else happened."""
    await run_in_threadpool(context.store.session, session_id)
    return await _stream(context, session_id, _last_event(request, query))


def _last_event(request: Request, query: EventsQuery) -> int | None:
    last_id = request.headers.get("last-event-id")
    if last_id is None:
        return query.after
    return int(last_id) if last_id.isascii() and last_id.isdecimal() and len(last_id) < 20 else _NOWHERE


async def _stream(context: Context, session_id: str | None, after: int | None) -> Response:
    # Before the answer begins, and in a thread: a database may not answer, or not at once.
    last_change = await run_in_threadpool(context.store.last_change)
    events = _events(context.live_topics, session_id, after, last_change)
    return StreamingResponse(events, headers=_HEADERS, media_type="text/event-stream")


async def _events(
    topics: LiveTopics, session_id: str | None, after: int | None, last_change: int
) -> AsyncGenerator[bytes]:
    with topics.watch(session_id, last_change) as reader:
        now = reader.sequence
        if after is not None:
            yield await run_in_threadpool(topics.replay, session_id, after, now)
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


hooks_router = api_router()

_BODY = {"required": True, "content": {"application/json": {"schema": {"type": "object"}}}}


@hooks_router.post(
    "/hooks/{agent}",
    tags=["hooks"],
    status_code=202,
    responses=accepts_with(HookResponse),
    openapi_extra={"requestBody": _BODY},
)
async def take_hook(
    request: Request,
    context: LocalContextOf,
    agent: str,
    at: Annotated[float | None, Query(ge=0, le=4e12, description="When it happened, in Unix milliseconds.")] = None,
    task: Annotated[str, Query(max_length=LONGEST_TASK, description="The task that the session belongs to.")] = "",
) -> Response:
    """The very JSON that the agent gives its hooks. It is kept when the answer comes, and in the store soon after."""
    name = _agents_with_hooks().get(agent)
    if name is None:
        raise NotFoundError(f"no hooks are known of an agent {agent!r}")
    payload = await read_body(request, LIMIT)
    moment = time.time() * 1000 if at is None else at
    try:
        source = await run_in_threadpool(context.hooks.keep, name, payload, moment, task_of(task))
    except json.JSONDecodeError as error:
        raise HTTPException(400, "the body is not JSON") from error
    except ValueError as error:
        raise InvalidParameterError("body", str(error)) from error
    answer = msgspec.json.encode(HookResponse(session_id=source.session_id or ""))
    return Response(answer, 202, media_type="application/json", background=BackgroundTask(context.hooks.read))


@cache
def _agents_with_hooks() -> dict[str, str]:
    """Names of agents that have hooks, by what an address may call them: their own names and their programs'."""
    found = agents_with_hooks()
    return {each: agent.name for program, agent in found.items() for each in (program, agent.name)}
