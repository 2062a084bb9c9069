"""Sessions of a store as UI messages, page by page (R-H13 to R-H17).

A page counts UI messages, never stored ones, and begins and ends where UI messages do: which messages make one
together follows from roles and ids (`aisdk.view`), before a body is read. The bodies of a page, and
no others, go into `aisdk.convert` as the JSON that they are. Offsets count from the beginning of the session; the
cursor form finds its place without counting.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple, Unpack

import msgspec

from turnlog.aisdk.codec import parse_ui_messages
from turnlog.aisdk.convert import UIJson, to_ui_json
from turnlog.aisdk.parts import UIMessage
from turnlog.aisdk.versions import Loss
from turnlog.aisdk.view import MessageGrouping, UIMessageOptions, View
from turnlog.arguments import checked
from turnlog.errors import NotFoundError
from turnlog.model import Fate, Session, ToolResultEvent
from turnlog.store.base import Store
from turnlog.store.values import MessagePlace

SHOWN_FATES: frozenset[Fate] = frozenset({Fate.ACTIVE, Fate.COMPACTED})
"""The conversation as it went, without the branches that were left."""

EVERYTHING = 2**31
"""A limit that is no limit."""

_CHUNK = 2000
"""How many places are read at once."""


class UIPage(NamedTuple):
    """Some consecutive UI messages of a session."""

    messages: list[UIMessage]
    has_more: bool
    next_cursor: str | None = None
    """Where the next page begins; None on the last page. It stays valid while the session grows."""
    losses: tuple[Loss, ...] = ()
    """What these UI messages cannot hold; `path` counts the stored messages of the page."""


class UIJsonPage(NamedTuple):
    """A `UIPage` whose messages are still JSON."""

    messages: UIJson
    has_more: bool
    next_cursor: str | None
    next_position: int = 0
    """Position of the first message of the next page; 0 on the last page."""

    def to_json(self) -> bytes:
        """`{"messages": […], "has_more": …, "next_cursor": …, "losses": […]}`."""
        rest = msgspec.json.encode(
            {"has_more": self.has_more, "next_cursor": self.next_cursor, "losses": self.messages.losses}
        )
        return b'{"messages":%b,%b' % (self.messages.to_json(), rest[1:])


@checked
def load_ui_messages(
    store: Store,
    session_id: str,
    offset: int = 0,
    limit: int = 50,
    *,
    cursor: str | None = None,
    fates: Iterable[Fate] = SHOWN_FATES,
    resolve_blobs: bool = True,
    **options: Unpack[UIMessageOptions],
) -> UIPage:
    """A page of a session as UI messages (R-H13, R-H15).

    Args:
        store: Where it is.
        session_id: Its id.
        offset: How many UI messages to skip.
        limit: How many UI messages the page has at most.
        cursor: `next_cursor` of the page before; instead of an offset.
        fates: Messages with these fates are shown.
        resolve_blobs: Whether large contents are whole. Otherwise they are previews, and the losses say so.
        options: See `UIMessageOptions`.

    Raises:
        NotFoundError: The store has no such session, or no longer the message of the cursor.
        ValueError: Offset and cursor are both given, the cursor is invalid, or a number is negative.
    """
    page = load_ui_json(
        store, session_id, offset, limit, cursor=cursor, fates=fates, resolve_blobs=resolve_blobs, **options
    )
    messages = parse_ui_messages(page.messages.to_json(), strict=False)
    return UIPage(messages, page.has_more, page.next_cursor, tuple(page.messages.losses))


@checked
def load_all_ui_messages(
    store: Store,
    session_id: str,
    *,
    fates: Iterable[Fate] = SHOWN_FATES,
    resolve_blobs: bool = True,
    **options: Unpack[UIMessageOptions],
) -> list[UIMessage]:
    """All of a session as UI messages, page by page inside (R-H14)."""
    messages: list[UIMessage] = []
    cursor: str | None = None
    while True:
        page = load_ui_messages(
            store, session_id, limit=_PAGE, cursor=cursor, fates=fates, resolve_blobs=resolve_blobs, **options
        )
        messages += page.messages
        if page.next_cursor is None:
            return messages
        cursor = page.next_cursor


_PAGE = 500


@checked
def load_ui_json(
    store: Store,
    session_id: str,
    offset: int = 0,
    limit: int = 50,
    *,
    cursor: str | None = None,
    fates: Iterable[Fate] = SHOWN_FATES,
    resolve_blobs: bool = True,
    **options: Unpack[UIMessageOptions],
) -> UIJsonPage:
    """`load_ui_messages` as JSON, without decoding any message."""
    if offset < 0 or limit < 0:
        raise ValueError("offset and limit are numbers from 0 on")
    if cursor is not None and offset:
        raise ValueError("a page begins at an offset or at a cursor, not at both")
    start = _parse_cursor(cursor)
    shown = frozenset(fates)
    groups = _iter_groups(store, session_id, shown, start, View.of(**options))
    page = list(islice(groups, offset, offset + limit)) if limit else []
    following = next(groups, None)
    index = start.number + offset
    made = to_ui_json(
        _iter_bodies(store, session_id, page, shown, resolve_blobs=resolve_blobs),
        first_index=index,
        children=store.child_sessions(session_id),
        **options,
    )
    _report_orphans(store, session_id, made.losses, page, following)
    if following is None:
        return UIJsonPage(made, has_more=False, next_cursor=None)
    return UIJsonPage(made, True, _cursor(following[0], index + len(page)), following[0].position)


class UIMessageStore:
    """A store whose sessions are loaded as UI messages with fixed options (R-H16).

    `turnlog.chat.fastapi.ui_messages_endpoint` and `turnlog.chat.ui_http.UIMessagesApp` serve it.
    """

    @checked
    def __init__(self, store: Store, **options: Unpack[UIMessageOptions]) -> None:
        """Wrap a store."""
        self._store = store
        self._options = options

    @checked
    def load(self, session_id: str, offset: int = 0, limit: int = 50, *, cursor: str | None = None) -> UIPage:
        """A page; see `load_ui_messages`."""
        return load_ui_messages(self._store, session_id, offset, limit, cursor=cursor, **self._options)

    @checked
    def load_all(self, session_id: str) -> list[UIMessage]:
        """All of a session; see `load_all_ui_messages`."""
        return load_all_ui_messages(self._store, session_id, **self._options)

    @checked
    def load_json(self, session_id: str, offset: int = 0, limit: int = 50, *, cursor: str | None = None) -> UIJsonPage:
        """A page as JSON, without decoding any message; see `load_ui_json`."""
        return load_ui_json(self._store, session_id, offset, limit, cursor=cursor, **self._options)

    @checked
    def session(self, session_id: str) -> Session:
        """What is known of a session. Raises NotFoundError."""
        return self._store.session(session_id)


# -- which messages make one UI message


def _iter_groups(
    store: Store, session_id: str, fates: frozenset[Fate], start: _Start, view: View
) -> Iterator[list[MessagePlace]]:
    """For each UI message, the stored messages that it consists of."""
    grouping = MessageGrouping(view)
    open_: list[MessagePlace] = []
    for place in _iter_places(store, session_id, fates, start):
        if not grouping.includes(place.role):
            # A message that the view does not show stays in its place, so that its page reports the loss.
            open_.append(place)
            continue
        if grouping.starts_ui_message(place.role, place.message_id) and any(
            grouping.includes(known.role) for known in open_
        ):
            yield open_
            open_ = []
        open_.append(place)
    if any(grouping.includes(known.role) for known in open_):
        yield open_


def _iter_places(store: Store, session_id: str, fates: frozenset[Fate], start: _Start) -> Iterator[MessagePlace]:
    """Places from the start on, read in chunks, so that one page does not read the whole list."""
    since, seen = start.position, set[str]()
    waiting = start.message_id
    while True:
        places = store.places(session_id, fates=fates, since=since, limit=_CHUNK)
        fresh = [place for place in places if place.message_id not in seen]
        for place in fresh:
            if waiting is not None and place.message_id != waiting:
                continue
            waiting = None
            yield place
        if len(places) < _CHUNK:
            break
        since = places[-1].position
        # Several messages may have the same position; the next chunk begins with those at the last one again.
        seen = {place.message_id for place in places if place.position == since}
    if waiting is not None:
        # A rewind removed it, or the log was read again by a newer version.
        raise NotFoundError(f"session {session_id} does not hold message {waiting} any more")


def _iter_bodies(
    store: Store, session_id: str, page: list[list[MessagePlace]], fates: frozenset[Fate], *, resolve_blobs: bool
) -> Iterator[bytes]:
    if not page:
        return
    first, last = page[0][0].position, page[-1][-1].position
    found = store.bodies(session_id, first, last, fates=fates, resolve_blobs=resolve_blobs)
    for bubble in page:
        for place in bubble:
            if place.message_id in found:
                yield found[place.message_id]


def _report_orphans(
    store: Store,
    session_id: str,
    losses: list[Loss],
    page: list[list[MessagePlace]],
    following: list[MessagePlace] | None,
) -> None:
    """Report results without a known call, which belong to no message (R-H9)."""
    if not page:
        return
    first, last = page[0][0].position, None if following is None else following[0].position
    for event in store.events(session_id, type="tool-result"):
        if isinstance(event, ToolResultEvent) and first <= event.position and (last is None or event.position < last):
            reason = f"no call {event.tool_call_id} is known that it could answer"
            losses.append(Loss(feature="orphan-result", path="$", reason=reason))


# -- cursors


class _Start(NamedTuple):
    """Where a page begins: a message, and how many UI messages come before it."""

    number: int = 0
    position: int | None = None
    message_id: str | None = None


def _cursor(bubble: MessagePlace, index: int) -> str:
    return f"{index}.{bubble.position}.{bubble.message_id}"


def _parse_cursor(cursor: str | None) -> _Start:
    if cursor is None:
        return _Start()
    index, _, rest = cursor.partition(".")
    position, dot, message_id = rest.partition(".")
    # Messages that a fork shares have negative positions.
    if not (dot and _is_number(index) and _is_number(position.removeprefix("-"))):
        raise ValueError(f"not a cursor: {cursor[:100]!r}")
    return _Start(int(index), int(position), message_id)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 19
