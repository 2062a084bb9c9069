"""The endpoints as FastAPI's routes, which only this module imports.

A Starlette application mounts `http.ChatApp` and `ui_http.UIMessagesApp`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, TypeAlias

from fastapi import APIRouter, Request
from fastapi.routing import APIRoute
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from turnlog.aisdk.starlette import UIMessageStreamResponse
from turnlog.aisdk.versions import Version
from turnlog.arguments import checked
from turnlog.chat.endpoint import Chat
from turnlog.chat.http import (
    MAX_BYTES,
    CallerError,
    ChatCaller,
    ChatHttp,
    HttpResponse,
    caller_of,
    checked_path,
    failure,
    mapped_id,
    owner_of,
)
from turnlog.chat.loading import UIMessageStore
from turnlog.chat.ui_http import UIMessagesHttp
from turnlog.model import Ownership

RequestKey: TypeAlias = Callable[[Request, str], Awaitable[str] | str]
"""A request and the page's id of a chat -> the server's id (`f"{user}.{chat_id}"`); raises if the user has no access
(`HTTPException(403)`)."""


RequestOwner: TypeAlias = Callable[[Request], Awaitable[Ownership] | Ownership]
"""A request -> who sent it (`Ownership(user=…, team=…)`, or `Ownership()` for somebody without a name); raises if
nobody is let in (`HTTPException(401)`). It may be async, as the other two."""

RequestDependencies: TypeAlias = Callable[[Request], Any]
"""A request -> what answers and tools get as `RunRequest.dependencies`."""


@checked
def chat_endpoint(
    chat: Chat,
    path: str = "/api/chat",
    *,
    version: Version = 7,
    max_bytes: int = MAX_BYTES,
    owner: RequestOwner | None = None,
    key: RequestKey | None = None,
    dependencies: RequestDependencies | None = None,
) -> APIRouter:
    """The routes of a chat page, for `app.include_router`; the chats are closed when the application shuts down.

    Args:
        chat: The backend.
        path: Where pages post to (`new DefaultChatTransport({api: path})`); the other routes are below it.
        version: The pages' AI SDK: 5, 6, 7 or an exact release.
        max_bytes: How large a request may be.
        owner: Says who sends a request. A chat belongs to who began it; others get 404. Who has no name (`Ownership()`)
            has the chats that nobody owns; None is refused. Without `owner` and `key`, everybody who reaches the server
            has the same chats.
        key: Maps ids to the user's own, for keepers that know no owners.
        dependencies: Makes what answers and tools get as `RunRequest.dependencies`; None for none.

    Raises:
        TypeError: `chat` is none, or there is an `owner` and its keeper knows none.
        ValueError: There is no such version, or `path` does not begin with a slash.
    """
    if owner is not None:
        chat.directory  # noqa: B018  # raises for a keeper that knows no owners
    path = checked_path(path)
    http = ChatHttp(chat, version=version, max_bytes=max_bytes, has_list=key is None or owner is not None)

    @asynccontextmanager
    async def lifespan(_: object) -> AsyncGenerator[None]:
        yield
        await chat.close()

    async def answer(request: Request, rest: str) -> Response:
        async def caller() -> ChatCaller:
            return await caller_of(owner, dependencies, request)

        find = None if key is None else partial(mapped_id, key, request)
        return _response(await http.answer(rest, request.scope, request.stream(), find, caller))

    class ChatRoute(APIRoute):
        """A route that refuses a method by naming all that its address takes; Starlette names those of one route."""

        async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
            if scope["method"] in (self.methods or ()):
                await super().handle(scope, receive, send)
                return
            chat_id: str | None = scope["path_params"].get("chat_id")
            rest = "" if chat_id is None else chat_id + self.path.rpartition("}")[2]
            # Never an answer: the dependencies of the router, which may say who is let in, are not asked here.
            await _response(http.refuse(rest, scope))(scope, receive, send)

    router = APIRouter(tags=["chat"], lifespan=lifespan, route_class=ChatRoute)

    @router.post(path + "/", include_in_schema=False)
    @router.post(path)
    async def post_message(request: Request) -> Response:
        """Answer a message: the stream of a UI message."""
        return await answer(request, "")

    @router.get(path)
    async def list_chats(request: Request) -> Response:
        """The chats of who asks, the last changed first; `limit` and `cursor` page."""
        return await answer(request, "")

    @router.get(path + "/{chat_id:path}/stream")
    async def resume_stream(request: Request, chat_id: str) -> Response:
        """The stream of the running answer; 204 if there is none."""
        return await answer(request, f"{chat_id}/stream")

    @router.post(path + "/{chat_id:path}/stop")
    async def stop_answer(request: Request, chat_id: str) -> Response:
        """End the running answer; 204 if there is none."""
        return await answer(request, f"{chat_id}/stop")

    @router.get(path + "/{chat_id:path}")
    async def read_messages(request: Request, chat_id: str) -> Response:
        """The messages of a chat."""
        return await answer(request, chat_id)

    @router.patch(path + "/{chat_id:path}")
    async def rename_chat(request: Request, chat_id: str) -> Response:
        """Give a chat a title: `{"title": …}`."""
        return await answer(request, chat_id)

    @router.delete(path + "/{chat_id:path}")
    async def delete_chat(request: Request, chat_id: str) -> Response:
        """Remove a chat for good."""
        return await answer(request, chat_id)

    return router


@checked
def ui_messages_endpoint(
    sessions: UIMessageStore, path: str = "/api/sessions", *, owner: RequestOwner | None = None
) -> APIRouter:
    """The route of stored sessions as UI messages, for `app.include_router`; see `turnlog.chat.ui_http`.

    Args:
        sessions: The store, with the options of every page.
        path: What comes before the id of a session.
        owner: Says who sends a request; sessions of others are 404. Without it, everybody who reaches the server reads
            the sessions that nobody owns.

    Raises:
        TypeError: `sessions` is none.
        ValueError: `path` does not begin with a slash.
    """
    path = checked_path(path)
    http = UIMessagesHttp(sessions)
    router = APIRouter(tags=["chat"])

    @router.get(path + "/{session_id:path}/ui-messages")
    async def read_ui_messages(request: Request, session_id: str) -> Response:
        """A page of a session (`offset`, `limit`, `cursor`), or all of it (`all=true`)."""
        query: bytes = request.scope["query_string"]
        try:
            known = await owner_of(owner, request)
        except CallerError as error:
            return _response(failure(error))
        return _response(await http.messages(session_id, query, known))

    return router


def _response(answer: HttpResponse) -> Response:
    if answer.stream is not None:
        return UIMessageStreamResponse(answer.stream, answer.status)
    return Response(answer.body, answer.status, dict(answer.headers))
