"""The commits and pull requests of a session, as its own commands printed them. No clone is needed."""

from __future__ import annotations

from datetime import datetime
from operator import itemgetter
from typing import Any, Final

import msgspec
from msgspec import UNSET

from turnlog.commits.links import PlaceReader
from turnlog.commits.printed import QUERY, Deed, Printed, opens_pull_request, printed_by, pull_request
from turnlog.model import Message, RunMetadataEvent, ToolCallPart
from turnlog.store.base import Store, ToolCallFilter
from turnlog.store.search.base import SearchFilter
from turnlog.store.search.searcher import Searcher
from turnlog.store.values import StoreValue

_MOST_CALLS: Final = 2_000
"""Calls of `git` and `gh` that are looked at, the newest first."""


class MadeCommit(StoreValue, frozen=True, kw_only=True):
    """A commit that a session made or pushed."""

    hash: str
    """As it was printed: usually the first 7 to 12 characters."""
    subject: str | None
    branch: str | None
    deed: Deed
    """`pushed`: only the newest commit of the push was printed; the session may not have made it."""
    message_id: str
    position: int
    turn: int | None
    at: datetime | None


class OpenedPullRequest(StoreValue, frozen=True, kw_only=True):
    """A pull or merge request that a session opened."""

    url: str
    repository: str
    """`host/owner/name`, in lower case."""
    number: int
    message_id: str | None
    """None where only a record of the agent names it."""
    position: int
    turn: int | None
    at: datetime | None


class SessionWork(StoreValue, frozen=True, kw_only=True):
    """The commits and pull requests of a session, in the order of its messages, each once."""

    commits: tuple[MadeCommit, ...]
    pull_requests: tuple[OpenedPullRequest, ...]
    unindexed: int
    """Messages that changed and are not indexed yet: a commit that they contain is missing."""


def session_work(store: Store, searcher: Searcher, session_id: str) -> SessionWork:
    """What a session committed, pushed and opened. Raises NotFoundError if there is no such session."""
    positions, unindexed = _candidates(store, searcher, session_id)
    gathered = _Gathered(store, session_id)
    for message_id, position in sorted(positions.items(), key=itemgetter(1)):
        gathered.add_message(store.message(message_id, session_id=session_id), position)
    for event in store.events(session_id, type="run-metadata"):
        if isinstance(event, RunMetadataEvent):
            gathered.add_event(event)
    return SessionWork(
        commits=tuple(gathered.commits.values()),
        pull_requests=tuple(gathered.requests.values()),
        unindexed=unindexed,
    )


def _candidates(store: Store, searcher: Searcher, session_id: str) -> tuple[dict[str, int], int]:
    """Messages with a call that may have made a commit or pull request, with their positions; messages not indexed."""
    found: dict[str, int] = {}
    cursor: str | None = None
    while True:
        wanted = SearchFilter(session=session_id, field="input")
        page = searcher.search(QUERY, wanted, limit=200, cursor=cursor)
        for hit in page.hits:
            place = next((place for place in hit.places if place.session_id == session_id), None)
            if place is not None:
                found[hit.message_id] = place.position
        cursor = page.next_cursor
        if cursor is None or len(found) >= _MOST_CALLS:
            break
    # The name of a tool is not among its input's words.
    for usage in store.tool_usage(ToolCallFilter(session=session_id)):
        if opens_pull_request(usage.tool_name):
            calls = store.tool_calls(ToolCallFilter(session=session_id, tool=usage.tool_name), limit=_MOST_CALLS)
            found |= {call.message_id: call.position for call in calls.items}
    return found, page.unindexed


class _Gathered:
    """The commits and pull requests that were found so far: what is printed again, as by a push, is the same."""

    def __init__(self, store: Store, session_id: str) -> None:
        self.commits: dict[str, MadeCommit] = {}
        self.requests: dict[str, OpenedPullRequest] = {}
        self._session_id = session_id
        self._places = PlaceReader(store)

    def add_message(self, message: Message, position: int) -> None:
        for call in message.parts:
            if not isinstance(call, ToolCallPart):
                continue
            at = call.started_at or message.created_at
            for printed in printed_by(call):
                if printed.url is not None:
                    self._add_request(printed.url, message.id, position, at)
                elif printed.hash is not None:
                    self._add_commit(printed, printed.hash, message.id, position, at)

    def add_event(self, event: RunMetadataEvent) -> None:
        """A record of the agent that names a pull request."""
        try:
            named = _record_decoder.decode(event.data) if event.data is not UNSET else _Record()
        except msgspec.MsgspecError:
            return
        if isinstance(named.prUrl, str):
            self._add_request(named.prUrl, None, event.position, event.created_at)

    def _add_commit(self, printed: Printed, hash: str, message_id: str, position: int, at: datetime | None) -> None:
        known = next((name for name in self.commits if name.startswith(hash) or hash.startswith(name)), None)
        if known is None:
            self.commits[hash] = MadeCommit(
                hash=hash,
                subject=printed.subject,
                branch=printed.branch,
                deed=printed.deed,
                message_id=message_id,
                position=position,
                turn=self._places.turn(self._session_id, position)[0],
                at=at,
            )

    def _add_request(self, url: str, message_id: str | None, position: int, at: datetime | None) -> None:
        named = pull_request(url)
        if named is not None and url not in self.requests:
            self.requests[url] = OpenedPullRequest(
                url=url,
                repository=named.repository,
                number=named.number,
                message_id=message_id,
                position=position,
                turn=self._places.turn(self._session_id, position)[0],
                at=at,
            )


class _Record(msgspec.Struct):
    """The field of a record that names a pull request; all others are skipped."""

    prUrl: Any = None


_record_decoder = msgspec.json.Decoder(_Record)
