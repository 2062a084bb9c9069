"""Sessions, messages and calls of a store one after the other, however many there are, and as a table in memory.

`Store.sessions` and the like answer with pages, for lists that people look at. Here a loop goes through all of them: a
page, or a piece of a session, is in memory at a time.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final, Generic, Literal, TypeVar

from turnlog.arguments import checked
from turnlog.errors import TurnlogError
from turnlog.model import Cost, Session, TextPart, Usage
from turnlog.model.usage import BUCKETS
from turnlog.store.base import EVERY_SESSION, EVERY_TOOL_CALL, SessionFilter, Store, ToolCallFilter
from turnlog.store.values import Page, PlacedMessage, ToolCall

FrameLibrary = Literal["pandas", "polars"]

_LIBRARIES: Final[tuple[FrameLibrary, ...]] = ("polars", "pandas")

_PAGE: Final = 200

_BEFORE_ALL: Final = -(1 << 62)
"""Smaller than every position: what a fork shares without copying it comes before its own log."""

_OPEN: Final = "an open store, as open_store(path) returns it"

ItemT = TypeVar("ItemT")

Row = dict[str, Any]


class Rows(Generic[ItemT]):
    """What a store has of a kind. Each loop over it asks the store again, so the store has to be open."""

    def __init__(self, read: Callable[[], Iterator[ItemT]], columns: Callable[[ItemT], Row], names: list[str]) -> None:
        """Take a function that reads all items, one that makes the columns of one, and their names."""
        self._read = read
        self._columns = columns
        self._names = names

    def __iter__(self) -> Iterator[ItemT]:
        """All items, read as they are needed."""
        return self._read()

    def to_frame(self, library: FrameLibrary | None = None) -> Any:
        """All of them as a `DataFrame`, one row each; the whole table is in memory.

        Columns have the names that the Parquet tables have (docs/reference/tables.md). What is unknown is null.

        Args:
            library: `polars` or `pandas`; None for the one that the program has imported, else the one that is there.

        Raises:
            TurnlogError: Neither is installed, or not the one that was asked for.
        """
        found = import_module(_library(library))
        columns: dict[str, list[Any]] = {name: [] for name in self._names}
        for item in self:
            row = self._columns(item)
            for name, values in columns.items():
                values.append(row[name])
        return found.DataFrame(columns)


def _library(wanted: FrameLibrary | None) -> str:
    for name in _LIBRARIES if wanted is None else (wanted,):
        if name in sys.modules:
            return name
    for name in _LIBRARIES if wanted is None else (wanted,):
        if find_spec(name) is not None:
            return name
    if wanted is not None:
        raise TurnlogError(f"{wanted} is not installed: pip install {wanted}")
    raise TurnlogError("a table needs polars or pandas, and neither is installed: pip install polars")


@checked(store=_OPEN)
def every_session(store: Store, filter: SessionFilter = EVERY_SESSION) -> Rows[Session]:
    """All sessions of a filter, the one that changed last first. `SessionFilter(subagents=True)` has subagents too."""
    return Rows(lambda: _sessions(store, filter), _session_row, _SESSION_COLUMNS)


@checked(store=_OPEN)
def every_message(store: Store, filter: SessionFilter = EVERY_SESSION) -> Rows[PlacedMessage]:
    """All messages of the sessions of a filter, session by session, each in its order.

    A message that a fork shares comes with each session; `membership.is_billed` is true in the one that pays.
    """
    return Rows(lambda: _messages(store, filter), _message_row, _MESSAGE_COLUMNS)


@checked(store=_OPEN)
def every_tool_call(store: Store, filter: ToolCallFilter = EVERY_TOOL_CALL) -> Rows[ToolCall]:
    """All tool calls of a filter, newest first."""
    return Rows(lambda: _calls(store, filter), _call_row, _CALL_COLUMNS)


# -- reading


def _pages(read: Callable[[str | None], Page[ItemT]]) -> Iterator[ItemT]:
    cursor: str | None = None
    while True:
        page = read(cursor)
        yield from page.items
        cursor = page.next_cursor
        if cursor is None:
            return


def _sessions(store: Store, filter: SessionFilter) -> Iterator[Session]:
    return _pages(lambda cursor: store.sessions(filter, limit=_PAGE, cursor=cursor))


def _messages(store: Store, filter: SessionFilter) -> Iterator[PlacedMessage]:
    for session in _sessions(store, filter):
        after = _BEFORE_ALL
        while True:
            found = store.messages(session.id, after=after, limit=_PAGE)
            yield from found
            if len(found) < _PAGE:
                break
            after = found[-1].membership.position


def _calls(store: Store, filter: ToolCallFilter) -> Iterator[ToolCall]:
    return _pages(lambda cursor: store.tool_calls(filter, limit=_PAGE, cursor=cursor))


# -- columns

_TOKENS: Final = list(BUCKETS)

_SESSION_COLUMNS: Final = [
    *("session_id", "agent", "project", "project_path", "title", "cwd", "git_branch", "agent_version"),
    *("created_at", "updated_at", "turns", "messages", "prompts", "steps", "tool_calls", "failed_tool_calls"),
    *("calls", "unknown_calls", "unpriced_calls", *_TOKENS, "cost", "reported_cost"),
]

_MESSAGE_COLUMNS: Final = [
    *("session_id", "position", "message_id", "is_billed_here", "role", "origin", "turn", "step", "fate", "model"),
    *("created_at", "completed_at", "stop_reason", *_TOKENS, "cost", "text"),
]

_CALL_COLUMNS: Final = [
    *("session_id", "position", "agent", "message_id", "tool_call_id", "tool_name", "kind", "state", "path"),
    *("started_at", "completed_at", "duration_ms", "exit_code", "input_size", "output_size"),
]


def _session_row(session: Session) -> Row:
    counts = session.counts
    return {
        "session_id": session.id,
        "project": None if session.project is None else session.project.name,
        "project_path": None if session.project is None else session.project.path,
        **_same(session, "agent", "title", "cwd", "git_branch", "agent_version", "created_at", "updated_at"),
        **_same(counts, "turns", "messages", "prompts", "steps", "tool_calls", "failed_tool_calls"),
        **_same(session.usage, "calls", "unknown_calls"),
        "unpriced_calls": session.unpriced_calls,
        **_tokens(session.usage.usage),
        "cost": _dollars(session.cost),
        "reported_cost": _dollars(session.reported_cost),
    }


def _message_row(placed: PlacedMessage) -> Row:
    message, place = placed.message, placed.membership
    return {
        **_same(place, "session_id", "position", "message_id", "turn", "step"),
        "is_billed_here": place.is_billed,
        "fate": place.fate.value,
        **_same(message, "role", "model", "created_at", "completed_at", "stop_reason"),
        "origin": None if message.origin is None else message.origin.value,
        **_tokens(message.usage),
        "cost": _dollars(placed.cost),
        "text": "\n".join([part.text for part in message.parts if isinstance(part, TextPart)]),
    }


def _call_row(call: ToolCall) -> Row:
    return _same(call, *_CALL_COLUMNS)


def _same(value: object, *names: str) -> Row:
    return {name: getattr(value, name) for name in names}


def _tokens(usage: Usage | None) -> Mapping[str, int | None]:
    return dict.fromkeys(_TOKENS) if usage is None else _same(usage, *_TOKENS)


def _dollars(cost: Cost | None) -> float | None:
    return None if cost is None else float(cost.amount)
