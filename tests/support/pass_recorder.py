"""Records what the passes of a transaction touch, as SQLite's authorizer and their own values show it."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import msgspec
import pytest

from turnlog.store.reconcile.passes import AREAS, PASSES, Pass, Reconciliation
from turnlog.store.writing import batch
from turnlog.store.writing.sessions import SessionRows, UsageRows

_FACTS = ("streamed", "forked", "shared", "relinked", "attached")
_PROPERTIES = {"ids": "touched", "keys": "touched", "shared": "sharing"}
"""Properties of `SessionRows`, and the fact that using one reads."""

_AREA_OF = {place: area for area, places in AREAS.items() for place in places}


class Touched(msgspec.Struct):
    """The areas (`passes.AREAS`) that a pass read and wrote; of a table that is in none, its name."""

    reads: set[str] = msgspec.field(default_factory=set[str])
    writes: set[str] = msgspec.field(default_factory=set[str])


_running: list[Touched] = []
"""Of the pass that runs."""


class _Recording(Reconciliation):
    """Notes which pass reads and sets the facts that passes hand on."""

    def __getattribute__(self, name: str) -> Any:
        if name in _FACTS and _running:
            _running[-1].reads.add(name)
        return super().__getattribute__(name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _FACTS and _running:
            _running[-1].writes.add(name)
        super().__setattr__(name, value)


@contextmanager
def recorded_passes() -> Generator[dict[str, Touched]]:
    """What each pass touches while this lasts, by its name."""
    found: dict[str, Touched] = defaultdict(Touched)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batch, "PASSES", tuple(_recorded(step, found[step.name]) for step in PASSES))
        patch.setattr(batch, "Reconciliation", _Recording)
        for name, fact in _PROPERTIES.items():
            patch.setattr(SessionRows, name, property(_noted(vars(SessionRows)[name].fget, fact)))
        patch.setattr(SessionRows, "flush", _noted(SessionRows.flush, "session drafts"))
        patch.setattr(UsageRows, "flush", _noted(UsageRows.flush, "usage drafts"))
        yield found


def _noted(read: Callable[[Any], Any], fact: str) -> Callable[[Any], Any]:
    """The method, which notes that the pass that calls it reads a fact."""

    def noted(rows: object) -> Any:
        if _running:
            _running[-1].reads.add(fact)
        return read(rows)

    return noted


def _recorded(step: Pass, touched: Touched) -> Pass:
    def run(work: Reconciliation) -> None:
        before = _drafts(work)
        # With another authorizer SQLite prepares every cached statement anew, and says what it touches.
        work.transaction.connection.set_authorizer(partial(_note, touched))
        _running.append(touched)
        try:
            step.run(work)
        finally:
            _running.pop()
            work.transaction.connection.set_authorizer(None)
        touched.writes |= {name for name, draft in _drafts(work).items() if draft != before[name]}

    return msgspec.structs.replace(step, run=run)


def _note(
    touched: Touched, action: int, table: str | None, column: str | None, database: str | None, trigger: str | None
) -> int:
    if table is None or table.startswith("sqlite_") or column == "changed_seq":
        return sqlite3.SQLITE_OK
    if trigger is not None and trigger.startswith(("usage_", "kept_")):
        # It keeps the sums of days with the rows that they are of: no pass knows of them.
        return sqlite3.SQLITE_OK
    if action == sqlite3.SQLITE_READ:
        # A count of rows reads no column.
        touched.reads.add(_area(table, column or None))
    elif action in (sqlite3.SQLITE_INSERT, sqlite3.SQLITE_DELETE):
        touched.writes.add(_area(table, None))
    elif action == sqlite3.SQLITE_UPDATE:
        touched.writes.add(_area(table, column))
    return sqlite3.SQLITE_OK


def _area(table: str, column: str | None) -> str:
    names = (f"{table}.{column}", f"{table}.*", table) if column else (table,)
    return next((_AREA_OF[name] for name in names if name in _AREA_OF), table)


def faults(passes: Sequence[Pass], found: Mapping[str, Touched]) -> list[str]:
    """What of the declarations is not so: areas that a pass touched otherwise, and an order that does not follow."""
    return [
        *(fault for step in passes for fault in _wrong_areas(step, found[step.name])),
        *(fault for number, step in enumerate(passes) for fault in _wrong_order(passes[:number], step)),
    ]


def _wrong_areas(step: Pass, touched: Touched) -> Iterator[str]:
    for verb, declared, real in (
        ("reads", step.reads, touched.reads & AREAS.keys()),
        ("writes", step.writes, touched.writes),
    ):
        for area in sorted(declared ^ real):
            yield f"{step.name} {verb} {area} " + ("without saying so" if area in real else "only in its declaration")


def _wrong_order(before: Sequence[Pass], step: Pass) -> Iterator[str]:
    """A pass must follow those that touch the same areas, by its own `follows` or by those of one that it follows."""
    known = {other.name: other for other in before}
    followed: set[str] = set()
    waiting = list(step.follows)
    while waiting:
        name = waiting.pop()
        followed.add(name)
        if name in known:
            waiting += known[name].follows
        else:
            yield f"{step.name} runs before {name}, which it follows"
    for other in before:
        shared = (other.writes & step.reads) | (other.reads & step.writes)
        if shared and other.name not in followed:
            yield f"{step.name} and {other.name} share {sorted(shared)}, and their order is not declared"


def _drafts(work: Reconciliation) -> dict[str, object]:
    """What the transaction has in memory, as values that change when it does."""
    sessions, usage = work.transaction.sessions, work.transaction.usage
    drafts = list(sessions.drafts.values())
    return {
        "session drafts": msgspec.msgpack.encode(drafts),
        "usage drafts": msgspec.msgpack.encode(list(usage.sums.items())),
        "touched": {draft.key for draft in drafts if draft.session_id},
        "sharing": {draft.key for draft in drafts if draft.is_shared},
    }
