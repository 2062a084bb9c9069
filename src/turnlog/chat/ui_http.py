"""Stored sessions as UI messages over HTTP, for an application of one's own (R-H16).

| request | answer |
|---|---|
| `GET {path}/{session id}/ui-messages` | a page: `{"messages": […], "has_more": …, "next_cursor": …, "losses": […]}` |
| the same with `?all=true` | the whole session in the same form |

`offset` and `limit` (50, at most 200) count UI messages; `cursor` is the `next_cursor` of the page before. FastAPI's
routes are in `turnlog.chat.fastapi`.
"""

from __future__ import annotations

import asyncio
from typing import Any, cast
from urllib.parse import parse_qsl

from turnlog.aisdk.streaming import Receive, Scope, Send
from turnlog.arguments import checked
from turnlog.chat.conversion import PRIVATE_KEY
from turnlog.chat.http import (
    LARGEST_PAGE,
    CallerError,
    HttpResponse,
    ScopeOwner,
    answer_lifespan,
    checked_path,
    failure,
    flag_in,
    json_response,
    number_in,
    owner_of,
    send_response,
)
from turnlog.chat.keepers import is_of
from turnlog.chat.loading import EVERYTHING, UIMessageStore
from turnlog.errors import NotFoundError, ShapeError
from turnlog.model import Ownership
from turnlog.model.codec import to_json
from turnlog.model.lenient_json import parse_json

_NAME = "/ui-messages"


class UIMessagesHttp:
    """Answers requests for the UI messages of sessions."""

    @checked
    def __init__(self, sessions: UIMessageStore) -> None:
        """Serve sessions with the options of `sessions`. Raises TypeError for anything else."""
        self._sessions = sessions

    async def messages(self, session_id: str, query: bytes, owner: Ownership | None = None) -> HttpResponse:
        """A page of a session, or all of it; 404 also for a session that is somebody else's.

        Args:
            session_id: The session's id, `<agent>:<external id>`.
            query: The query string.
            owner: Who asks. None reads the sessions that nobody owns.
        """
        try:
            # The store reads from the disk: the event loop must not wait for it.
            return json_response(await asyncio.to_thread(self._load, session_id, query, owner))
        except Exception as error:
            return failure(error)

    def _load(self, session_id: str, query: bytes, owner: Ownership | None) -> bytes:
        if not is_of(self._sessions.session(session_id), owner):
            raise NotFoundError(f"there is no session {session_id}")
        given = dict(parse_qsl(query.decode("latin-1")))
        if flag_in(given, "all"):
            return _for_pages(self._sessions.load_json(session_id, limit=EVERYTHING).to_json())
        limit = min(number_in(given, "limit", 50, least=1), LARGEST_PAGE)
        try:
            page = self._sessions.load_json(
                session_id, number_in(given, "offset", 0), limit, cursor=given.get("cursor")
            )
        except ValueError as error:
            raise ShapeError(str(error), json_path="cursor") from error
        return _for_pages(page.to_json())


def _for_pages(data: bytes) -> bytes:
    """The JSON without what chats keep for their next run."""
    if PRIVATE_KEY.encode() not in data:
        return data
    return bytes(to_json(_without_private(parse_json(data))))


def _without_private(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_private(each) for each in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    fields = cast("dict[str, Any]", value)
    return {name: _without_private(each) for name, each in fields.items() if name != PRIVATE_KEY}


class UIMessagesApp:
    """The same as an ASGI application, on its own or mounted in any framework."""

    @checked
    def __init__(
        self, sessions: UIMessageStore, path: str = "/api/sessions", *, owner: ScopeOwner | None = None
    ) -> None:
        """Serve sessions.

        Args:
            sessions: The store, with the options of every page.
            path: What comes before the id of a session.
            owner: Says who asks. Without it, everybody who reaches the server reads the sessions that nobody owns.

        Raises:
            ValueError: `path` does not begin with a slash.
        """
        self._http = UIMessagesHttp(sessions)
        self._path = checked_path(path) + "/"
        self._owner = owner

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or the server's lifespan events."""
        if scope["type"] == "lifespan":
            await answer_lifespan(receive, send)
        elif scope["type"] == "http":
            await send_response(await self._answer(scope), receive, send)

    async def _answer(self, scope: Scope) -> HttpResponse:
        # If the application is mounted, `path` is the whole path and `root_path` the part above the mount.
        path: str = scope["path"].removeprefix(scope.get("root_path", ""))
        session_id = path.removeprefix(self._path).removesuffix(_NAME)
        if f"{self._path}{session_id}{_NAME}" != path or not session_id:
            return HttpResponse(404, {})
        if scope["method"] != "GET":
            return HttpResponse(405, {"allow": "GET"})
        try:
            owner = await owner_of(self._owner, scope)
        except CallerError as error:
            return failure(error)
        return await self._http.messages(session_id, scope["query_string"], owner)
