"""`/api/hooks/{agent}`: what an agent's hooks tell, as it happens."""

from __future__ import annotations

import json
import time
from functools import cache
from typing import Annotated

import msgspec
from fastapi import APIRouter, Query, Request
from starlette.background import BackgroundTask
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.responses import Response

from turnlog.agents import agents_with_hooks
from turnlog.errors import NotFoundError
from turnlog.hooks.send import LIMIT
from turnlog.server.context import ContextOf
from turnlog.server.errors import InvalidParameterError
from turnlog.server.openapi import accepts_with
from turnlog.server.responses import HookResponse

router = APIRouter(prefix="/hooks", default_response_class=Response, tags=["hooks"])

_BODY = {"required": True, "content": {"application/json": {"schema": {"type": "object"}}}}


@router.post("/{agent}", status_code=202, responses=accepts_with(HookResponse), openapi_extra={"requestBody": _BODY})
async def take_hook(
    request: Request,
    context: ContextOf,
    agent: str,
    at: Annotated[float | None, Query(ge=0, le=4e12, description="When it happened, in Unix milliseconds.")] = None,
) -> Response:
    """The very JSON that the agent gives its hooks. It is kept when the answer comes, and in the store soon after."""
    name = _agents_with_hooks().get(agent)
    if name is None:
        raise NotFoundError(f"no hooks are known of an agent {agent!r}")
    payload = await _read(request)
    moment = time.time() * 1000 if at is None else at
    try:
        source = await run_in_threadpool(context.hooks.keep, name, payload, moment)
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


async def _read(request: Request) -> bytes:
    """The body; 413 as soon as it is too long."""
    pieces: list[bytes] = []
    size = 0
    async for piece in request.stream():
        size += len(piece)
        if size > LIMIT:
            raise HTTPException(413, f"an event has at most {LIMIT} bytes")
        pieces.append(piece)
    return b"".join(pieces)
