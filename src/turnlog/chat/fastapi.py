"""The endpoint as FastAPI's routes, which only this module imports; a Starlette application mounts `http.ChatApp`."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeAlias

from fastapi import APIRouter, Request
from starlette.responses import Response

from turnlog.aisdk.starlette import UIMessageStreamResponse
from turnlog.aisdk.versions import Version
from turnlog.chat.endpoint import Chat
from turnlog.chat.http import MAX_BYTES, ChatHttp, HttpResponse

RequestKey: TypeAlias = Callable[[Request, str], Awaitable[str]]
"""A request and the page's id of a chat -> the server's id (`f"{user}.{chat_id}"`); raises if the user has no access
(`HTTPException(403)`)."""


def chat_endpoint(
    chat: Chat,
    path: str = "/api/chat",
    *,
    version: Version = 7,
    max_bytes: int = MAX_BYTES,
    key: RequestKey | None = None,
) -> APIRouter:
    """The routes of a chat page, for `app.include_router`; the chats are closed when the application shuts down.

    Args:
        chat: The backend.
        path: Where pages post to (`new DefaultChatTransport({api: path})`); the other routes are below it.
        version: The pages' AI SDK: 5, 6, 7 or an exact release.
        max_bytes: How large a request may be.
        key: Maps ids to the user's own. Without it, everybody who reaches the server has the same chats.
    """
    http = ChatHttp(chat, version=version, max_bytes=max_bytes)

    @asynccontextmanager
    async def lifespan(_: object) -> AsyncGenerator[None]:
        yield
        await chat.close()

    async def find(request: Request, chat_id: str) -> str:
        return chat_id if key is None else await key(request, chat_id)

    router = APIRouter(tags=["chat"], lifespan=lifespan)

    @router.post(path)
    async def post_message(request: Request) -> Response:
        """Answer a message: the stream of a UI message."""
        kind = request.headers.get("content-type", "")
        return _response(await http.post(request.stream(), kind, lambda chat_id: find(request, chat_id)))

    @router.get(path + "/{chat_id:path}/stream")
    async def resume_stream(request: Request, chat_id: str) -> Response:
        """The stream of the running answer; 204 if there is none."""
        return _response(await http.resume(await find(request, chat_id)))

    @router.post(path + "/{chat_id:path}/stop")
    async def stop_answer(request: Request, chat_id: str) -> Response:
        """End the running answer; 204 if there is none."""
        return _response(await http.stop(await find(request, chat_id)))

    @router.get(path + "/{chat_id:path}")
    async def read_messages(request: Request, chat_id: str) -> Response:
        """The messages of a chat."""
        return _response(await http.messages(await find(request, chat_id)))

    return router


def _response(answer: HttpResponse) -> Response:
    if answer.stream is not None:
        return UIMessageStreamResponse(answer.stream, answer.status)
    return Response(answer.body, answer.status, dict(answer.headers))
