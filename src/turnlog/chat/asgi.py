"""The endpoint as an ASGI application of no framework: any ASGI server runs it, any framework can mount it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import TypeAlias

from turnlog.aisdk.asgi import Receive, Scope, Send, send_stream
from turnlog.aisdk.versions import Version
from turnlog.chat.endpoint import Chat
from turnlog.chat.http import MOST_BYTES, ChatHttp, ChatKey, HttpAnswer

ScopeKey: TypeAlias = Callable[[Scope, str], Awaitable[str]]
"""The request's scope and the page's id of a chat -> the server's id of it; raises where the user may not."""


class ChatApp:
    """Answers the requests below `path`; see `turnlog.chat.http`. Closes its chats when the server shuts down."""

    def __init__(
        self,
        chat: Chat,
        path: str = "/api/chat",
        *,
        version: Version = 7,
        most_bytes: int = MOST_BYTES,
        key: ScopeKey | None = None,
    ) -> None:
        """Serve chats; `version` and `most_bytes` as for `ChatHttp`."""
        self._chat = chat
        self._path = path.rstrip("/")
        self._http = ChatHttp(chat, version=version, most_bytes=most_bytes)
        self._key = key

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or see to the start and the end of the server."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            await send_answer(await self._answer(scope, receive), receive, send)

    async def _live(self, receive: Receive, send: Send) -> None:
        while (await receive())["type"] != "lifespan.shutdown":
            await send({"type": "lifespan.startup.complete"})
        await self._chat.close()
        await send({"type": "lifespan.shutdown.complete"})

    async def _answer(self, scope: Scope, receive: Receive) -> HttpAnswer:
        # A server that mounts it tells the whole path, and what of it is above.
        path: str = scope["path"].removeprefix(scope.get("root_path", ""))
        if not path.startswith(self._path):
            return HttpAnswer(404, {})
        chat_id, name = _split(path.removeprefix(self._path).removeprefix("/"))
        asked = (scope["method"], name)
        if asked == ("POST", "") and not chat_id:
            headers: dict[bytes, bytes] = dict(scope["headers"])
            kind = headers.get(b"content-type", b"").decode("latin-1")
            return await self._http.post(_body(receive), kind, self._key_of(scope))
        answer = {
            ("GET", "stream"): self._http.resume,
            ("POST", "stop"): self._http.stop,
            ("GET", ""): self._http.messages,
        }.get(asked)
        if answer is None or not chat_id:
            return HttpAnswer(405 if path.rstrip("/") == self._path else 404, {})
        key = self._key_of(scope)
        return await answer(chat_id if key is None else await key(chat_id))

    def _key_of(self, scope: Scope) -> ChatKey | None:
        key = self._key
        if key is None:
            return None

        async def find(chat_id: str) -> str:
            return await key(scope, chat_id)

        return find


def _split(rest: str) -> tuple[str, str]:
    """The id of the chat, which may hold slashes, and what is asked of it."""
    chat_id, _, name = rest.rpartition("/")
    return (chat_id, name) if chat_id and name in ("stream", "stop") else (rest, "")


async def _body(receive: Receive) -> AsyncGenerator[bytes, None]:
    while True:
        event = await receive()
        if event["type"] == "http.disconnect":
            return
        yield event.get("body", b"")
        if not event.get("more_body", False):
            return


async def send_answer(answer: HttpAnswer, receive: Receive, send: Send) -> None:
    """Send an answer, a stream until it ends or the client goes."""
    headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in answer.headers.items()]
    if answer.stream is not None:
        await send_stream(answer.stream, receive, send, status=answer.status, headers=headers)
        return
    if answer.status != 204:
        headers.append((b"content-length", str(len(answer.body)).encode()))
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": answer.body})
