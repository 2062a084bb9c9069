"""The endpoint over HTTP, as `useChat` expects it: without a framework (`ChatHttp`) and as an ASGI application.

| request | answer |
|---|---|
| `POST {path}` | the stream of an answer; else a status and a sentence, which is the page's `error.message` |
| `GET {path}/{chat id}/stream` | the stream of the answer that is being made; 204 if there is none (R-O22) |
| `POST {path}/{chat id}/stop` | 200 once the answer has ended and is saved, 204 if none was being made |
| `GET {path}/{chat id}` | the messages, a list, for a page to begin with |
| `GET {path}` | the chats of who asks, the last changed first: `{"chats": […], "nextCursor": …}` |
| `PATCH {path}/{chat id}` | renames a chat: `{"title": …}`, null for none |
| `DELETE {path}/{chat id}` | 204 once the chat is gone for good |

The last segment of an address counts as it was sent: `a%2Fstream` is the chat `a/stream`, `a/stream` the stream of `a`.

`ChatApp` runs on any ASGI server and can be mounted in any framework; FastAPI's routes are in `turnlog.chat.fastapi`.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar, cast
from urllib.parse import parse_qsl

from msgspec.structs import replace

from turnlog.aisdk.codec import encode
from turnlog.aisdk.json_text import parse_json
from turnlog.aisdk.sse import HEADERS
from turnlog.aisdk.streaming import Receive, Scope, Send, send_stream
from turnlog.aisdk.versions import Version, sdk_version
from turnlog.arguments import check_fields, checked, shown_value
from turnlog.chat.endpoint import Chat
from turnlog.chat.numbers import check_numbers
from turnlog.chat.requests import parse_chat_request
from turnlog.chat.runtime import resolved
from turnlog.errors import ConflictError, NotFoundError, ShapeError, StoreBusyError
from turnlog.model import Ownership

logger = logging.getLogger(__name__)

MAX_BYTES: Final = 32_000_000
"""The default limit of a request: a page sends its whole chat, with pictures."""


class HttpResponse(NamedTuple):
    """A response, with a whole body or with a stream."""

    status: int
    headers: Mapping[str, str]
    body: bytes = b""
    stream: AsyncGenerator[bytes, None] | None = None


class RequestTooLargeError(Exception):
    """The request has too many bytes (HTTP 413)."""


class WrongTypeError(Exception):
    """The request's content type is not JSON (HTTP 415)."""


class CallerError(TypeError):
    """A function of the application does not say who sent a request, or which chat is meant (HTTP 500)."""


_STATUS: dict[type[Exception], int] = {
    ShapeError: 400,
    NotFoundError: 404,
    ConflictError: 409,
    RequestTooLargeError: 413,
    WrongTypeError: 415,
    StoreBusyError: 503,
}


ChatKey: TypeAlias = Callable[[str], Awaitable[str]]
"""The page's id of a chat -> the server's, for the user of the request; raises if the user has no access."""


class ChatCaller(NamedTuple):
    """Who sent a request, as the server knows them."""

    owner: Ownership | None = None
    """None: all users share them."""
    dependencies: Any = None


NOBODY: Final = ChatCaller()

Caller: TypeAlias = Callable[[], Awaitable[ChatCaller]]
"""Says who sent a request; raises if nobody is known. Asked only where the address takes the method."""

METHODS: Final = {
    "chats": ("GET", "POST"),
    "chat": ("DELETE", "GET", "PATCH"),
    "stream": ("GET",),
    "stop": ("POST",),
}
"""What an address names -> the methods that it takes."""

_OF_DIRECTORY: Final = {"chats": frozenset({"GET"}), "chat": frozenset({"DELETE", "PATCH"})}
"""The methods among them that need a keeper that knows whose chats are."""

LARGEST_PAGE: Final = 200

_LONGEST_TITLE: Final = 1000

_TEXT: Final = {"content-type": "text/plain; charset=utf-8"}


class ChatHttp:
    """Answers the requests of a chat page."""

    @checked
    def __init__(self, chat: Chat, *, version: Version = 7, max_bytes: int = MAX_BYTES, has_list: bool = True) -> None:
        """Serve chats to pages of one version of AI SDK.

        Args:
            chat: The backend.
            version: The pages' AI SDK: 5, 6, 7 or an exact release.
            max_bytes: How large a request may be.
            has_list: Whether the chats of who asks can be listed: False where a `key` makes their ids and no `owner`
                says whose they are.

        Raises:
            TypeError: `chat` is none.
            ValueError: There is no such version, or `max_bytes` is below 1.
        """
        chat.check_version(version)
        check_numbers("ChatHttp", max_bytes=max_bytes)
        self._has_list = has_list
        self._chat = chat
        self._version = sdk_version(version)
        self._most_bytes = max_bytes

    async def answer(
        self, rest: str, scope: Scope, body: AsyncIterable[bytes], key: ChatKey | None, caller: Caller
    ) -> HttpResponse:
        """Answer any request to the chats. Raises what `key` and `caller` raise.

        Args:
            rest: The decoded path behind that of the chats, without the slash between them.
            scope: The request's.
            body: The request's.
            key: Maps the page's id of a chat.
            caller: Says who sent the request.
        """
        chat_id, place = find_place(rest, scope)
        method: str = scope["method"]
        if method not in METHODS[place]:
            return self.refuse(rest, scope)
        headers: dict[bytes, bytes] = dict(scope["headers"])
        kind = headers.get(b"content-type", b"").decode("latin-1")
        try:
            who = await caller()
            own_id = chat_id if key is None or place == "chats" else await key(chat_id)
        except CallerError as error:
            return failure(error)
        if place == "chats":
            if method == "POST":
                return await self.post(body, kind, key, who)
            return await self.chats(scope["query_string"], who, is_mapped=key is not None)
        if method == "PATCH":
            return await self.rename(own_id, body, kind, who)
        of_chat = {"stream": self.resume, "stop": self.stop, "chat": self.messages}
        return await (self.delete if method == "DELETE" else of_chat[place])(own_id, who)

    def refuse(self, rest: str, scope: Scope) -> HttpResponse:
        """The response to a method that the address does not take; arguments as for `answer`."""
        _, place = find_place(rest, scope)
        is_known = _knows_owners(self._chat) and (place != "chats" or self._has_list)
        return _refusal(place, None, knows_owners=is_known)

    async def post(
        self, body: AsyncIterable[bytes], content_type: str, key: ChatKey | None = None, caller: ChatCaller = NOBODY
    ) -> HttpResponse:
        """Answer a message, continue one, or regenerate one. Raises what `key` raises."""
        try:
            _check_type(content_type)
            request = parse_chat_request(await self._read(body), version=self._version)
        except Exception as error:
            return failure(error)
        try:
            own_id = request.chat_id if key is None else await key(request.chat_id)
        except CallerError as error:
            return failure(error)
        try:
            request = replace(request, chat_id=own_id)
            stream = await self._chat.answer(
                request, version=self._version, owner=caller.owner, dependencies=caller.dependencies
            )
            return _streaming(stream)
        except Exception as error:
            return failure(error)

    async def resume(self, chat_id: str, caller: ChatCaller = NOBODY) -> HttpResponse:
        """The running stream; 204 for somebody else's chat too."""
        try:
            stream = await self._chat.resume(chat_id, owner=caller.owner)
        except NotFoundError:
            stream = None  # It ended and was deleted between two queries, or is not for the caller to know of.
        return HttpResponse(204, {}) if stream is None else _streaming(stream)

    async def stop(self, chat_id: str, caller: ChatCaller = NOBODY) -> HttpResponse:
        """End the running answer."""
        try:
            return HttpResponse(200 if await self._chat.stop(chat_id, owner=caller.owner) else 204, {})
        except Exception as error:
            return failure(error)

    async def messages(self, chat_id: str, caller: ChatCaller = NOBODY) -> HttpResponse:
        """The messages of the chat; none for an unknown one."""
        try:
            messages = await self._chat.messages(chat_id, version=self._version, owner=caller.owner)
        except Exception as error:
            return failure(error)
        return json_response(b"[%b]" % b",".join([encode(message) for message in messages]))

    async def chats(self, query: bytes, caller: ChatCaller = NOBODY, *, is_mapped: bool = False) -> HttpResponse:
        """The caller's chats, page by page (`limit`, 50 and at most 200, and `cursor`).

        Args:
            query: The query string.
            caller: Who asks.
            is_mapped: Whether a `key` makes the ids of chats, so that only `owner` could say whose they are.
        """
        try:
            if is_mapped and caller.owner is None:
                raise TypeError("whose chats these are is not known: the endpoint needs owner= beside key=")
            given = dict(parse_qsl(query.decode("latin-1")))
            limit = number_in(given, "limit", 50, least=1)
            try:
                page = await self._chat.chats(
                    owner=caller.owner, limit=min(limit, LARGEST_PAGE), cursor=given.get("cursor")
                )
            except ValueError as error:
                raise ShapeError(str(error), json_path="cursor") from error
            return json_response(encode(page))
        except TypeError as error:
            return _without_owners(error, "chats", "this server keeps no list of chats")
        except Exception as error:
            return failure(error)

    async def rename(
        self, chat_id: str, body: AsyncIterable[bytes], content_type: str, caller: ChatCaller = NOBODY
    ) -> HttpResponse:
        """Give a chat a title."""
        try:
            _check_type(content_type)
            title = _parse_title(await self._read(body))
            return json_response(encode(await self._chat.rename(chat_id, title, owner=caller.owner)))
        except TypeError as error:
            return _without_owners(error, "chat", "this server cannot rename chats")
        except Exception as error:
            return failure(error)

    async def delete(self, chat_id: str, caller: ChatCaller = NOBODY) -> HttpResponse:
        """Remove a chat for good."""
        try:
            await self._chat.delete(chat_id, owner=caller.owner)
        except TypeError as error:
            return _without_owners(error, "chat", "this server cannot delete chats")
        except Exception as error:
            return failure(error)
        return HttpResponse(204, {})

    async def _read(self, body: AsyncIterable[bytes]) -> bytes:
        chunks, size = list[bytes](), 0
        async for chunk in body:
            size += len(chunk)
            if size > self._most_bytes:
                raise RequestTooLargeError(f"a request may have {self._most_bytes} bytes")
            chunks.append(chunk)
        return b"".join(chunks)


def _check_type(content_type: str) -> None:
    """Refuse other types than JSON: a page of another site can send text and forms here without a CORS preflight."""
    if content_type.partition(";")[0].strip().lower() != "application/json":
        raise WrongTypeError("a request is application/json")


def number_in(query: Mapping[str, str], name: str, default: int, *, least: int = 0) -> int:
    """A number of a query string. Raises ShapeError."""
    given = query.get(name, str(default))
    if not (given.isascii() and given.isdecimal() and int(given[:9]) >= least):
        raise ShapeError(f"expected a number from {least} on", json_path=name)
    return int(given[:9])


def flag_in(query: Mapping[str, str], name: str) -> bool:
    """A yes or no of a query string, `true` or `false`; no if it is absent. Raises ShapeError."""
    given = query.get(name, "false")
    if given not in ("true", "false"):
        raise ShapeError("expected true or false", json_path=name)
    return given == "true"


def _streaming(stream: AsyncGenerator[bytes, None]) -> HttpResponse:
    return HttpResponse(200, HEADERS, stream=stream)


def json_response(body: bytes) -> HttpResponse:
    """A response with this JSON, which nobody keeps."""
    return HttpResponse(200, {"content-type": "application/json", "cache-control": "no-store"}, body)


def _parse_title(body: bytes) -> str | None:
    try:
        given: Any = parse_json(body)
    except ValueError as error:
        raise ShapeError(f"not JSON: {error}") from error
    if not isinstance(given, dict) or set(cast("dict[str, Any]", given)) != {"title"}:
        raise ShapeError('expected {"title": …}')
    title = cast("dict[str, Any]", given)["title"]
    if title is not None and (not isinstance(title, str) or len(title) > _LONGEST_TITLE):
        raise ShapeError(f"expected null or a text of at most {_LONGEST_TITLE} characters", json_path="$.title")
    return title


def failure(error: Exception) -> HttpResponse:
    """The response to a request that failed; what nobody but the server should know is logged."""
    if isinstance(error, RecursionError):
        # Answers are made later: so far there is only the body, of which a page decides how deep it is.
        error = ShapeError("nested too deeply")
    status = next((status for kind, status in _STATUS.items() if isinstance(error, kind)), 500)
    if status == 500:
        # What the application has to change is a sentence of its own; the place in turnlog says nothing more.
        cause = None if isinstance(error, CallerError) else error
        logger.error("a chat's request failed%s", f": {error}" if cause is None else "", exc_info=cause)
    sentence = "the server failed to answer; its log has the reason" if status == 500 else str(error)
    return HttpResponse(status, _TEXT, sentence.encode())


def _without_owners(error: TypeError, place: str, sentence: str) -> HttpResponse:
    """The response where it is not known whose chats are. What to change is for the programmer: it is logged."""
    logger.warning("%s: %s", sentence, error)
    return _refusal(place, sentence, knows_owners=False)


def _refusal(place: str, sentence: str | None, *, knows_owners: bool) -> HttpResponse:
    """The response to a method that an address does not take: it names those that it takes (RFC 9110, 15.5.6)."""
    lacks = frozenset[str]() if knows_owners else _OF_DIRECTORY.get(place, frozenset())
    allowed = ", ".join(method for method in METHODS[place] if method not in lacks)
    return HttpResponse(405, _TEXT | {"allow": allowed}, (sentence or f"this address takes {allowed}").encode())


def _knows_owners(chat: Chat) -> bool:
    try:
        chat.directory  # noqa: B018  # raises for a keeper that knows no owners
    except TypeError:
        return False
    return True


ScopeKey: TypeAlias = Callable[[Scope, str], Awaitable[str] | str]
"""The request's scope and the page's id of a chat -> the server's id; raises if the user has no access."""

ScopeOwner: TypeAlias = Callable[[Scope], Awaitable[Ownership] | Ownership]
"""The request's scope -> who sent it; `Ownership()` for somebody without a name; raises if nobody is let in. It may be
async, as the other two."""

ScopeDependencies: TypeAlias = Callable[[Scope], Any]
"""The request's scope -> what answers and tools get as `RunRequest.dependencies`."""


def checked_path(path: str) -> str:
    """The path of an endpoint, without a slash at its end. Raises ValueError if no request can have it."""
    if path and not path.startswith("/"):
        raise ValueError(f"path cannot be {path!r}: it begins with a slash, as in {f'/{path}'!r}")
    return path.rstrip("/")


class ChatApp:
    """An ASGI application for the requests below `path`; it closes its chats when the server shuts down."""

    @checked
    def __init__(
        self,
        chat: Chat,
        path: str = "/api/chat",
        *,
        version: Version = 7,
        max_bytes: int = MAX_BYTES,
        key: ScopeKey | None = None,
        owner: ScopeOwner | None = None,
        dependencies: ScopeDependencies | None = None,
    ) -> None:
        """Serve chats; `version` and `max_bytes` as for `ChatHttp`. Raises ValueError as `chat_endpoint` does."""
        if owner is not None:
            chat.directory  # noqa: B018  # raises for a keeper that knows no owners
        self._owner = owner
        self._dependencies = dependencies
        self._chat = chat
        self._path = checked_path(path)
        self._http = ChatHttp(chat, version=version, max_bytes=max_bytes, has_list=key is None or owner is not None)
        self._key = key

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or the server's lifespan events."""
        if scope["type"] == "lifespan":
            await answer_lifespan(receive, send, self._chat.close)
        elif scope["type"] == "http":
            await send_response(await self._answer(scope, receive), receive, send)

    async def _answer(self, scope: Scope, receive: Receive) -> HttpResponse:
        # If the application is mounted, `path` is the whole path and `root_path` the part above the mount.
        path: str = scope["path"].removeprefix(scope.get("root_path", ""))
        rest = path.removeprefix(self._path)
        if not path.startswith(self._path) or rest[:1] not in ("", "/"):
            return HttpResponse(404, {})
        return await self._http.answer(
            rest[1:], scope, _body(receive), self._key_of(scope), lambda: self._caller_of(scope)
        )

    async def _caller_of(self, scope: Scope) -> ChatCaller:
        return await caller_of(self._owner, self._dependencies, scope)

    def _key_of(self, scope: Scope) -> ChatKey | None:
        key = self._key
        if key is None:
            return None

        return partial(mapped_id, key, scope)


GivenT = TypeVar("GivenT")

_WANTED: Final = "return Ownership(user=…), or Ownership() for somebody without a name, or raise"


async def owner_of(
    owner: Callable[[GivenT], Awaitable[Ownership] | Ownership] | None, given: GivenT
) -> Ownership | None:
    """Whose chats a request may see, as an application's `owner` says; None: those that nobody owns.

    In Python, an owner without a name has all chats. A request whose sender has none must not. Who forgets to return
    anything must not give to everybody the chats that nobody owns.

    Args:
        owner: The application's function, async or not; None if it has none.
        given: The request, as the function gets it.

    Raises:
        CallerError: It returned something else.
    """
    if owner is None:
        return None
    found = cast("object", await resolved(owner(given)))
    if not isinstance(found, Ownership):
        raise CallerError(f"owner returned {shown_value(found)}: {_WANTED}")
    try:
        check_fields(found)
    except TypeError as error:
        raise CallerError(f"owner returned a wrong owner: {error}") from error
    return None if found == Ownership() else found


async def caller_of(
    owner: Callable[[GivenT], Awaitable[Ownership] | Ownership] | None,
    dependencies: Callable[[GivenT], Any] | None,
    given: GivenT,
) -> ChatCaller:
    """Who sent a request, as an application's functions say. Raises CallerError as `owner_of`, and what they raise."""
    known = await owner_of(owner, given)
    return ChatCaller(known, None if dependencies is None else await resolved(dependencies(given)))


async def mapped_id(key: Callable[[GivenT, str], Awaitable[str] | str], given: GivenT, chat_id: str) -> str:
    """The server's id of a chat. Raises CallerError if `key` returns none: all users would have one chat."""
    found = cast("object", await resolved(key(given, chat_id)))
    if not isinstance(found, str) or not found:
        raise CallerError(f"key returned {shown_value(found)}: return the server's id of the chat, or raise")
    return found


def find_place(rest: str, scope: Scope) -> tuple[str, str]:
    """The id of the chat, which may hold slashes, and what the address names (a key of `METHODS`).

    Args:
        rest: The decoded path behind that of the chats, without the slash between them.
        scope: The request's; its `raw_path` tells a slash from `%2F`, where the server has it.
    """
    if not rest:
        return "", "chats"
    chat_id, _, name = rest.rpartition("/")
    raw: bytes | None = scope.get("raw_path")
    is_segment = (
        raw is None or raw.rpartition(b"?")[0].endswith(f"/{name}".encode()) or raw.endswith(f"/{name}".encode())
    )
    return (chat_id, name) if chat_id and name in ("stream", "stop") and is_segment else (rest, "chat")


async def answer_lifespan(receive: Receive, send: Send, close: Callable[[], Awaitable[None]] | None = None) -> None:
    """Answer the events of a server that starts and ends; `close` is called at the end."""
    while (await receive())["type"] != "lifespan.shutdown":
        await send({"type": "lifespan.startup.complete"})
    if close is not None:
        await close()
    await send({"type": "lifespan.shutdown.complete"})


async def _body(receive: Receive) -> AsyncGenerator[bytes, None]:
    while True:
        event = await receive()
        if event["type"] == "http.disconnect":
            return
        yield event.get("body", b"")
        if not event.get("more_body", False):
            return


async def send_response(answer: HttpResponse, receive: Receive, send: Send) -> None:
    """Send a response; a stream until it ends or the client disconnects."""
    headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in answer.headers.items()]
    if answer.stream is not None:
        await send_stream(answer.stream, receive, send, status=answer.status, headers=headers)
        return
    if answer.status != 204:
        headers.append((b"content-length", str(len(answer.body)).encode()))
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": answer.body})
