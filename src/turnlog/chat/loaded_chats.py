"""The chats that were loaded last, so that a request reads only what is new of its chat.

A chat of thousands of messages takes long to load, and every request needs all of it. A loaded chat is kept as pages
with the number of the store's change sequence that they show. The next request asks the store what has changed since,
and reads again from the page before the first change on. So it also sees what other processes wrote.

A chat that an agent answered is not kept: the log of the agent takes the place of its messages, and the change sequence
does not tell of everything that happens to those.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Final, NamedTuple, TypeAlias

import msgspec

from turnlog.aisdk.codec import parse_ui_messages
from turnlog.aisdk.parts import UIMessage
from turnlog.chat.conversion import agent_answer_of
from turnlog.chat.loading import UIJsonPage
from turnlog.store.base import Store
from turnlog.store.values import SessionChanges
from turnlog.store.window import MessageRow

LoadPage: TypeAlias = Callable[[str | None], UIJsonPage]
"""Loads the page that begins at a cursor; at None, the first one."""

_MOST_BYTES: Final = 64 << 20
"""JSON of the messages that are kept, of all chats together. In memory they take a few times as much."""

_BEFORE: Final = -(1 << 62)
_AFTER: Final = 1 << 62
"""Before and after every position."""


class _Page(NamedTuple):
    """Consecutive messages of a chat."""

    cursor: str | None
    start: int
    """Position of the first message; of the first page, before every position."""
    messages: list[UIMessage]
    size: int
    """Bytes of JSON."""


class _LoadedChat(NamedTuple):
    """The pages of a chat, and the last change that they show."""

    change: int
    pages: list[_Page]

    @property
    def size(self) -> int:
        return sum(page.size for page in self.pages)


class LoadedChats:
    """The chats that were loaded last, by session id. Use it in one thread."""

    def __init__(self, store: Store) -> None:
        """Begin with none."""
        self._store = store
        self._chats: OrderedDict[str, _LoadedChat] = OrderedDict()

    def load(self, session_id: str, load_page: LoadPage) -> list[UIMessage]:
        """All messages of a chat. Raises NotFoundError if there is no such session."""
        # The number is taken before the pages are read: what is written meanwhile is asked for again next time.
        change = self._store.last_change()
        known = self._chats.pop(session_id, _LoadedChat(0, []))
        kept = self._unchanged(session_id, known, change)
        fresh = [] if kept and len(kept) == len(known.pages) else _load_from(known.pages[len(kept) :][:1], load_page)
        if all(agent_answer_of(message) is None for page in fresh for message in page.messages):
            self._keep(session_id, _LoadedChat(change, [*kept, *fresh]))
        return [message for page in (*kept, *fresh) for message in page.messages]

    def forget(self, session_id: str) -> None:
        """Drop a chat, for instance because it was deleted."""
        self._chats.pop(session_id, None)

    def _unchanged(self, session_id: str, known: _LoadedChat, change: int) -> list[_Page]:
        """The first pages of a chat, as far as nothing in them has changed."""
        if not known.pages or change == known.change:
            return known.pages
        first = _first_change(self._store.session_changes(session_id, known.change, change))
        if first == _AFTER:
            return known.pages
        # A cursor names the first message of its page, which may be what changed: begin with the page before.
        return [page for page in known.pages if page.start < first][:-1]

    def _keep(self, session_id: str, chat: _LoadedChat) -> None:
        self._chats[session_id] = chat
        total = sum(each.size for each in self._chats.values())
        while total > _MOST_BYTES:
            total -= self._chats.popitem(last=False)[1].size


def _first_change(changes: SessionChanges | None) -> int:
    """The position of the first message that changed; before all of them if a message may have left the chat."""
    if changes is None or changes.gone_messages:
        return _BEFORE
    rows = msgspec.json.decode(changes.rows, type=list[MessageRow])
    return min((row.position for row in rows), default=_AFTER)


def _load_from(first: list[_Page], load_page: LoadPage) -> list[_Page]:
    """Load this page again, and all that follow it; without one, all pages."""
    cursor, start = (first[0].cursor, first[0].start) if first else (None, _BEFORE)
    pages: list[_Page] = []
    while True:
        page = load_page(cursor)
        data = page.messages.to_json()
        pages.append(_Page(cursor, start, parse_ui_messages(data, strict=False), len(data)))
        if page.next_cursor is None:
            return pages
        cursor, start = page.next_cursor, page.next_position
