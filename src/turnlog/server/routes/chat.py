"""`/api/sessions/{id}/chat/stream`: the turn that an agent is in, as the stream that a `useChat` page follows."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from turnlog.aisdk.starlette import UIMessageStreamResponse
from turnlog.aisdk.versions import Version
from turnlog.chat.tail import Tail, open_tail
from turnlog.server.context import ContextOf
from turnlog.server.live.hub import Hub
from turnlog.server.live.topic import LaggedError
from turnlog.server.openapi import CHUNKS
from turnlog.server.parameters.messages import ChatStreamQuery

LOOK_SECONDS = 5.0
"""Changes are told of; this is for turns that end in silence."""

router = APIRouter(prefix="/sessions/{session_id}", default_response_class=Response, tags=["sessions"])


@router.get("/chat/stream", responses=CHUNKS)
async def get_chat_stream(context: ContextOf, session_id: str, query: Annotated[ChatStreamQuery, Query()]) -> Response:
    """The last turn from its start until it ends, as AI SDK's chunks; 204 when it has ended."""
    tail = await open_tail(context.store, session_id)
    if tail is None:
        return Response(status_code=204)
    return UIMessageStreamResponse(_stream(context.hub, session_id, tail, query.version))


async def _stream(hub: Hub, session_id: str, tail: Tail, version: Version) -> AsyncGenerator[bytes]:
    with hub.watch(session_id) as reader:

        async def wait(_: float) -> bool:
            try:
                return not (await reader.read(LOOK_SECONDS)).is_over
            except LaggedError:  # What was missed is in the store.
                return True

        async with aclosing(tail.stream(version=version, wait=wait)) as stream:
            async for piece in stream:
                yield piece
