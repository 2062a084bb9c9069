"""The sessions that the person of a machine sees on the hub, for questions that need them whole.

Everything comes from the HTTP API, which answers about what is shown to the person and nothing else, and notes for its
owner what was read.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, TypeVar
from urllib.parse import quote, urlencode

import msgspec

from turnlog.errors import NotFoundError, StoreError
from turnlog.hub.machine.client import HubClient
from turnlog.model import Message, Part, Session, TextPart, ToolCallPart
from turnlog.model.codec import decode_membership, decode_message, decode_part, decode_session
from turnlog.model.message import part_ids
from turnlog.store.base import ToolCallFilter
from turnlog.store.search.base import Hit, HitPlace, SearchFilter, SearchPage
from turnlog.store.usage_report import AgentSummary
from turnlog.store.values import FileHistory, FileTouch, OutlineEntry, Page, PlacedMessage, ToolCall

ValueT = TypeVar("ValueT")

_LONGEST_LIST: Final = 200
"""The most items of a page that the API gives."""


class HubHistory:
    """What links are found in (`turnlog.commits.history`), on a hub. One thread at a time uses it.

    Questions raise StoreError where the hub does not answer or refuses, and NotFoundError, as a store does, for what is
    not there or not shown.
    """

    def __init__(self, client: HubClient) -> None:
        """Ask with the token of this client."""
        self._client = client
        self._messages: dict[tuple[str, str | None], tuple[Message, Sequence[Any]]] = {}
        self._outlines: dict[str, list[OutlineEntry]] = {}
        self._files: dict[tuple[str, bool, int], FileHistory] = {}

    def agents(self) -> list[AgentSummary]:
        """Agents of which something is shown."""
        return [_convert(each, AgentSummary) for each in self._get("agents")["items"]]

    def session(self, session_id: str) -> Session:
        """A session."""
        return decode_session(json.dumps(self._get(f"sessions/{quote(session_id)}")["session"]).encode())

    def find_session(self, agent: str, external_id: str) -> Session | None:
        """A session by the id that its agent gave it; None if there is none, or it is not shown."""
        try:
            return self.session(f"{agent}:{external_id}")
        except NotFoundError:
            return None

    def messages(
        self, session_id: str, *, limit: int | None = None, resolve_blobs: bool = False
    ) -> list[PlacedMessage]:
        """The first messages of a session, at most so many, with previews of large contents."""
        window = self._get(f"sessions/{quote(session_id)}/window", {"after": -1, "limit": limit})
        found: list[PlacedMessage] = []
        for item in window["items"]:
            message, memberships = self._message(item["id"], session_id)
            places = (decode_membership(json.dumps(each).encode()) for each in memberships)
            found += [PlacedMessage(message, place) for place in places if place.session_id == session_id]
        return found

    def message(self, message_id: str, *, session_id: str | None = None, structured: bool = False) -> Message:
        """A message with its large contents and structured results, whether they are asked for or not."""
        return self._message(message_id, session_id)[0]

    def outline(self, session_id: str) -> list[OutlineEntry]:
        """The landmarks of a session."""
        if session_id not in self._outlines:
            items = self._get(f"sessions/{quote(session_id)}/outline")["items"]
            self._outlines[session_id] = [_convert(item, OutlineEntry) for item in items]
        return self._outlines[session_id]

    def tool_calls(self, filter: ToolCallFilter, *, limit: int, cursor: str | None) -> Page[ToolCall]:
        """A page of calls, the newest first."""
        wanted = {**filter._asdict(), "limit": min(limit, _LONGEST_LIST), "cursor": cursor}
        page = self._get("tool-calls", wanted)
        return Page(tuple(_convert(item, ToolCall) for item in page["items"]), page["next_cursor"])

    def file_history(self, path: str, *, changed: bool, limit: int) -> FileHistory:
        """The calls that touched a file, the newest first, at most so many; without what each session did to it."""
        key = path, changed, limit
        if key not in self._files:
            self._files[key] = FileHistory((), Page(tuple(self._touches(path, changed=changed, limit=limit))))
        return self._files[key]

    def _touches(self, path: str, *, changed: bool, limit: int) -> list[FileTouch]:
        found: list[FileTouch] = []
        cursor: str | None = None
        while len(found) < limit:
            wanted = {"path": path, "changed": changed, "limit": min(limit - len(found), _LONGEST_LIST)}
            page = self._get("files", {**wanted, "cursor": cursor})
            items = page["items"]
            found += [FileTouch(each["path"], _convert(each["call"], ToolCall), each["index"]) for each in items]
            cursor = page["next_cursor"]
            if cursor is None:
                break
        return found

    def search(self, query: str, filter: SearchFilter, *, limit: int, cursor: str | None) -> SearchPage:
        """A page of hits."""
        wanted = {**filter._asdict(), "q": query, "flat": True, "limit": limit, "cursor": cursor}
        page = self._get("search", wanted)
        return SearchPage(tuple(_hits(page["items"])), page["next_cursor"], unindexed=page["unindexed"])

    def _message(self, message_id: str, session_id: str | None) -> tuple[Message, Sequence[Any]]:
        key = message_id, session_id
        if key not in self._messages:
            body = self._get(f"messages/{quote(message_id)}", {"session": session_id})
            message = decode_message(json.dumps(body["message"]).encode())
            parts = [
                self._part(id, session_id) if _is_cut(part) else part
                for id, part in zip(part_ids(message), message.parts, strict=True)
            ]
            self._messages[key] = msgspec.structs.replace(message, parts=tuple(parts)), body["memberships"]
        return self._messages[key]

    def _part(self, part_id: str, session_id: str | None) -> Part:
        return decode_part(json.dumps(self._get(f"parts/{quote(part_id)}", {"session": session_id})["part"]).encode())

    def _get(self, path: str, parameters: Mapping[str, Any] | None = None) -> Any:
        given = {name: _text(value) for name, value in (parameters or {}).items() if value is not None}
        return self._client.get(f"/api/{path}{'?' if given else ''}{urlencode(given)}")


def _text(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    return str(value).lower() if isinstance(value, bool) else str(value)


def _convert(value: Any, type: type[ValueT]) -> ValueT:
    try:
        return msgspec.convert(value, type)
    except msgspec.ValidationError as error:
        raise StoreError(f"the hub answers with something else than it should: {error}") from error


def _is_cut(part: Part) -> bool:
    """Whether a call's input or output is only a preview."""
    if not isinstance(part, ToolCallPart):
        return False
    outputs = (output for result in part.results for output in result.content)
    return part.input_blob is not None or any(isinstance(each, TextPart) and each.blob is not None for each in outputs)


def _hits(groups: Iterable[Any]) -> Iterable[Hit]:
    for group in groups:
        session = group["session"]
        for hit in group["hits"]:
            yield Hit(
                message_id=hit["message_id"],
                agent=session["agent"],
                role=hit["role"],
                part=hit["part"],
                field=hit["field"],
                tool_name=hit["tool_name"],
                created_at=None,
                snippet="",
                marks=(),
                places=(HitPlace(session["id"], hit["position"], session["title"], session["project"]),),
            )
