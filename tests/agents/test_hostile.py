"""Logs that no agent ever wrote: whatever stands where, and whatever bytes, the other records are read and kept.

R-S34, for all agents alike, through to the store: on their bundled samples, a value at a time.
"""

from __future__ import annotations

import json
import random
import re
import shutil
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from copy import copy
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias, cast

import msgspec
import pytest

from support.agent_cases import CASES, has_lines, lines_of, names, one_per_package, reads_files
from support.agent_example import EXAMPLE, lacks_of, sample_of
from support.claude_files import Gathered, gather
from support.profiles import some_of
from turnlog.agents import agent
from turnlog.agents.base import Agent, Source, reads_rows
from turnlog.agents.changes import Changes
from turnlog.model import ToolCallPart
from turnlog.pricing import price_nanos, price_version
from turnlog.server.sample import LOGS
from turnlog.store import open_store
from turnlog.store.base import Store
from turnlog.store.connection import connect
from turnlog.store.sqlite.restore import restore_files
from turnlog.store.writing.batch import Batch
from turnlog.store.writing.transaction import SourceRow
from turnlog.sync.syncer import sync

Step: TypeAlias = str | int
Place: TypeAlias = tuple[Step, ...]

LINE_AGENTS = [name for name in names(one_per_package()) if has_lines(name)]
NAMES = [*LINE_AGENTS, EXAMPLE]
FILE_AGENTS = [*(name for name in LINE_AGENTS if reads_files(name)), EXAMPLE]

NESTED: Any = json.loads("[" * 600 + "]" * 600)
"""What one decoder takes and the next may not."""

VALUES: tuple[Any, ...] = (
    *(None, True, -5, 1 << 70, -(1 << 70), (1 << 53) - 1, 1e300, "", "\x00", "\ud800", [], {}, [None], {"type": {}}),
    *(float("inf"), {"unheard_of": [float("inf")]}, NESTED, {"unheard_of": NESTED}),
    *("../../etc/passwd", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "1970-01-01T00:00:00Z"),
)
"""What no agent writes there: wrong shapes, numbers beyond 64 bits and beyond a float, half a character, times that no
clock shows."""


def logs(name: str) -> Iterator[tuple[Source, list[bytes]]]:
    """The lines of an agent's bundled logs; of a database, those that its agent makes of its rows."""
    found = agent(name)
    for source in found.discover([sample_of(name)]):
        if source.appendable or (reads_rows(found, source) and source.session_id is not None):
            yield source, lines_of(source)


def places(value: Any, place: Place = ()) -> Iterator[Place]:
    """Every place in a value, and in each object one that is not there yet."""
    yield place
    if isinstance(value, dict):
        yield (*place, "new")
    for step, inner in items_of(value):
        yield from places(inner, (*place, step))


def items_of(value: Any) -> Iterable[tuple[Step, Any]]:
    if isinstance(value, dict):
        return cast("dict[str, Any]", value).items()
    return enumerate(cast("list[Any]", value)) if isinstance(value, list) else ()


def replaced(value: Any, place: Place, by: Any) -> Any:
    """The value with another one at a place."""
    if not place:
        return by
    step, *rest = place
    changed = copy(value)
    changed[step] = replaced(value[step], tuple(rest), by) if rest else by
    return changed


def kind_of(record: dict[str, Any]) -> tuple[object, ...]:
    payload: dict[str, Any] = record["payload"] if isinstance(record.get("payload"), dict) else {}
    return (record.get("type"), record.get("subtype"), payload.get("type"), record.get("table"))


def shape_of(place: Place) -> Place:
    return tuple("#" if isinstance(step, int) else step for step in place)


def records_of_each_kind(name: str) -> Iterator[tuple[Source, list[bytes], int, Any, Place]]:
    """A record for each kind, and for each of its fields, with its neighbours."""
    seen: set[object] = set()
    for source, lines in logs(name):
        for number, line in enumerate(lines):
            record = json.loads(line)
            for place in places(record):
                known = (source.kind, kind_of(record), shape_of(place))
                # What the archive's own lines of rows say of their place is no agent's.
                if known not in seen and place[:1] != ("place",):
                    seen.add(known)
                    yield source, lines, number, record, place


def read(found: Agent, source: Source, lines: list[bytes]) -> Changes:
    fold = found.fold(source)
    changes = fold.feed(b"".join(lines), 0)
    fold.state()
    return changes


def save(connection: sqlite3.Connection, source: Source, changes: Changes) -> None:
    """Write it all, and take it back."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        batch = Batch(connection, price_nanos, price_version())
        batch.save(SourceRow(1, source.agent, source.path, 0, source.session_id, source.kind), changes)
        batch.close()
    finally:
        connection.execute("ROLLBACK")


@pytest.mark.parametrize("name", NAMES)
def test_any_value_may_stand_anywhere(name: str, tmp_path: Path) -> None:
    """One value at each place, and each value after a few places; which one is where differs from run to run."""
    found = agent(name)
    first = random.randrange(len(VALUES))
    tried = 0
    with closing(connect(tmp_path / "turnlog.db", checked=False)) as connection:
        for source, lines, number, record, place in some_of([*records_of_each_kind(name)], 60):
            value = VALUES[(first + tried) % len(VALUES)]
            raw = json.dumps(replaced(record, place, value), ensure_ascii=random.random() < 0.5)
            line = raw.replace("Infinity", "1e400").encode("utf-8", "surrogatepass") + b"\n"
            near = [*lines[: min(number, 3)], line, *lines[number + 1 : number + 3]]
            changes = read(found, source, near)
            assert changes.counts.total == len(near), (place, value)
            save(connection, source, changes)
            tried += 1
    assert tried > 30


# -- files that are rewritten whole


def texts(name: str) -> Iterator[tuple[Source, bytes]]:
    """The files of an agent's bundled logs that have no lines of JSON: documents, facts beside logs, plain texts."""
    found = agent(name)
    for source in found.discover([sample_of(name)]):
        if not reads_rows(found, source) and (not source.appendable or name not in LINE_AGENTS):
            yield source, Path(source.path).read_bytes()


def document(data: bytes) -> dict[str, Any]:
    """Its JSON; empty if it is no object of JSON."""
    try:
        found = json.loads(data)
    except ValueError:
        return {}
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


TEXT_AGENTS = [name for name in names(one_per_package()) if any(texts(name))]
DOCUMENT_AGENTS = [name for name in TEXT_AGENTS if any(document(data) for _, data in texts(name))]


@pytest.mark.parametrize("name", DOCUMENT_AGENTS)
def test_any_value_may_stand_anywhere_in_a_document(name: str, tmp_path: Path) -> None:
    found = agent(name)
    first = random.randrange(len(VALUES))
    known = [(source, value) for source, data in texts(name) if (value := document(data))]
    shapes = {
        (source.path, shape_of(place)): (source, value, place) for source, value in known for place in places(value)
    }
    with closing(connect(tmp_path / "turnlog.db", checked=False)) as connection:
        for tried, (source, value, place) in enumerate(some_of([*shapes.values()], 30)):
            odd = replaced(value, place, VALUES[(first + tried) % len(VALUES)])
            raw = json.dumps(odd, ensure_ascii=random.random() < 0.5).replace("Infinity", "1e400")
            save(connection, source, read(found, source, [raw.encode("utf-8", "surrogatepass")]))


@pytest.mark.parametrize("name", TEXT_AGENTS)
def test_any_bytes_may_stand_in_a_text(name: str, tmp_path: Path) -> None:
    """In the place of the text, at its beginning, within it, and with its end cut off."""
    found = agent(name)
    with closing(connect(tmp_path / "turnlog.db", checked=False)) as connection:
        for source, data in texts(name):
            at = random.randrange(len(data) + 1)
            for odd in some_of([*BYTES.values()], 3):
                for text in (odd, odd + data, data[:at] + odd + data[at:], data[:at]):
                    save(connection, source, read(found, source, [text]))


# -- bytes


def with_an_odd_line(lines: list[bytes], odd: bytes) -> bytes:
    """The log with a line of it behind its first."""
    return b"".join([lines[0], odd, *lines[1:]])


def said(store: Store, session_id: str) -> list[object]:
    """A session's messages without their places in the file, which another line moves, also in ids made of them."""
    return [
        (
            without_offset(placed.message.id),
            placed.message.usage,
            placed.membership.turn,
            [
                (part.input, [(result.output_text, result.error_text) for result in part.results])
                if isinstance(part, ToolCallPart)
                else msgspec.structs.replace(part, id=None)
                for part in placed.message.parts
            ],
        )
        for placed in store.messages(session_id)
    ]


def without_offset(id: str) -> str:
    return re.sub(r"@\d+", "@", id)


BYTES: dict[str, bytes] = {
    "nul": b"\0" * 4096 + b"\n",
    "not utf-8": b'{"type": "\xff\xfe\xc3"}\n',
    "no json": b"Segmentation fault (core dumped)\n",
    "cut off": b'{"type": "user", "message": {"content": "I was going to sa\n',
    "deep": b"[" * 100_000 + b"]" * 100_000 + b"\n",
    "deep in a record": b'{"type": ' + b'{"a":' * 100_000 + b"1" + b"}" * 100_001 + b"\n",
    "keys twice": b'{"type": "user", "type": "user", "type": null}\n',
    "a long word": b'{"type": "x", "y": "' + b"a" * 1_000_000 + b'"}\n',
    "a long number": b'{"type": ' + b"9" * 5_000 + b"}\n",
    "no number": b'{"type": NaN, "timestamp": Infinity, "n": 1e999}\n',
}


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The store of an agent's logs as they are, made once; nobody writes to it."""
    folder = tmp_path_factory.mktemp("clean")

    @cache
    def store_of(name: str) -> Path:
        store = folder / f"{name}.db"
        sync(store, roots=[sample_of(name)], agents=[agent(name)])
        return store

    return store_of


@pytest.mark.parametrize("name", FILE_AGENTS)
def test_a_line_of_anything_changes_nothing_else_and_is_restored(
    name: str, clean: Callable[[str], Path], tmp_path: Path
) -> None:
    """Between the records of every log, through a sync: reported by its line if it is unreadable, and restored."""
    for number, odd in enumerate(some_of([*BYTES], 3)):
        folder = tmp_path / str(number)
        read_with_an_odd_line(name, odd, clean(name), folder)


def read_with_an_odd_line(name: str, odd: str, expected_store: Path, folder: Path) -> None:
    """Read an agent's bundled logs with a line of `BYTES` in each, and compare with what they are without it."""
    home, database = folder / "home", folder / "odd.db"
    shutil.copytree(sample_of(name), home)
    for source, lines in logs(name):
        Path(source.path.replace(str(sample_of(name)), str(home))).write_bytes(with_an_odd_line(lines, BYTES[odd]))
    assert sync(database, roots=[home], agents=[agent(name)]).problems == [], odd
    with open_store(expected_store) as expected, open_store(database) as store:
        assert store.status().messages == expected.status().messages, odd
        assert {found.line for found in store.diagnostics(limit=200).items} <= {2}, odd
        for session in expected.sessions(limit=200).items:
            assert said(store, session.id) == said(expected, session.id), odd
    with closing(connect(database, read_only=True)) as connection:
        for (session_id,) in connection.execute("SELECT DISTINCT session_id FROM sources WHERE session_id IS NOT NULL"):
            restore_files(connection, session_id, folder / "restored")
    for file in filter(Path.is_file, (folder / "restored").rglob("*")):
        assert file.read_bytes() == (home / file.relative_to(folder / "restored")).read_bytes(), odd


@pytest.mark.parametrize("name", FILE_AGENTS)
def test_windows_line_ends_and_a_mark_of_the_byte_order_change_nothing(
    name: str, clean: Callable[[str], Path], tmp_path: Path
) -> None:
    home = tmp_path / "home"
    shutil.copytree(sample_of(name), home)
    for source, lines in logs(name):
        data = b"\xef\xbb\xbf" + b"".join(line.replace(b"\n", b"\r\n") for line in lines)
        Path(source.path.replace(str(sample_of(name)), str(home))).write_bytes(data)
    summary = sync(tmp_path / "odd.db", roots=[home], agents=[agent(name)])
    assert summary.problems == []
    with open_store(clean(name)) as expected, open_store(tmp_path / "odd.db") as store:
        assert [found for found in store.diagnostics().items if found.severity == "error"] == []
        for session in expected.sessions(limit=200).items:
            assert said(store, session.id) == said(expected, session.id)


@pytest.mark.parametrize("name", FILE_AGENTS)
def test_two_records_on_one_line_are_both_read(name: str, tmp_path: Path) -> None:
    for source, lines in logs(name):
        joined = [lines[0].rstrip(b"\n"), *lines[1:]]
        changes = read(agent(name), source, joined)
        whole = read(agent(name), source, lines)
        ids, expected = ([without_offset(each.message.id) for each in read.messages] for read in (changes, whole))
        assert ids == expected


# -- what once cost a whole file or session


@pytest.fixture
def opencode(tmp_path: Path) -> Path:
    """A home of OpenCode with the bundled sample's database."""
    home = tmp_path / "opencode"
    shutil.copytree(LOGS / "opencode", home)
    return home


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE session SET id = x'ff00' WHERE rowid = 1",
        "UPDATE session SET time_updated = 4611686018427387904",
        "UPDATE message SET id = NULL, time_created = 'soon' WHERE rowid = 1",
        "UPDATE part SET message_id = x'ff00' WHERE rowid = 1",
        "UPDATE part SET data = json_set(data, '$.type', json('{}')) WHERE rowid = 1",
        "UPDATE part SET data = '{' WHERE rowid = 2",
        "UPDATE message SET data = x'fffe', session_id = x'00' WHERE rowid = 2",
    ],
)
def test_a_row_of_anything_changes_nothing_else(damage: str, opencode: Path, tmp_path: Path) -> None:
    """In a database that some other program has had a hand in."""
    sync(tmp_path / "clean.db", roots=[opencode], agents=[agent("opencode")])
    with closing(sqlite3.connect(opencode / "opencode.db")) as connection, connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("UPDATE sqlite_schema SET sql = replace(replace(sql, 'NOT NULL', ''), 'STRICT', '')")
    with closing(sqlite3.connect(opencode / "opencode.db")) as connection, connection:
        connection.execute(damage)
    summary = sync(tmp_path / "odd.db", roots=[opencode], agents=[agent("opencode")])
    assert summary.problems == []
    with open_store(tmp_path / "clean.db") as expected, open_store(tmp_path / "odd.db") as store:
        assert store.status().messages >= expected.status().messages - 5
        assert store.status().sessions >= 1


@pytest.mark.parametrize("name", [name for name in FILE_AGENTS if "times as text" not in lacks_of(name)])
@pytest.mark.parametrize("year", [b"9999-", b"0001-"])
def test_a_clock_may_be_any_wrong(name: str, year: bytes, tmp_path: Path) -> None:
    """R-S34: a whole log of another age is read like one of today."""
    home = tmp_path / "home"
    shutil.copytree(sample_of(name), home)
    for log in home.rglob("*.json*"):
        log.write_bytes(log.read_bytes().replace(b"2026-", year))
    summary = sync(tmp_path / "turnlog.db", roots=[home], agents=[agent(name)])
    assert (summary.problems, summary.diagnostics) == ([], 0)
    with open_store(tmp_path / "turnlog.db") as store:
        told = [placed.message for session in store.sessions().items for placed in store.messages(session.id)]
        assert int(year[:4]) in {message.created_at.year for message in told if message.created_at}


def test_tokens_that_no_price_can_be_paid_for_cost_nothing_that_is_known(tmp_path: Path) -> None:
    """Counts that a column holds, and whose price is a sum that it does not."""
    home = tmp_path / "home"
    shutil.copytree(LOGS / "claude-code", home)
    for log in home.rglob("*.jsonl"):
        log.write_bytes(re.sub(rb'"output_tokens": ?\d+', b'"output_tokens": 253402300800000', log.read_bytes()))
    summary = sync(tmp_path / "turnlog.db", roots=[home], agents=[agent("claude-code")])
    assert summary.problems == []
    with open_store(tmp_path / "turnlog.db") as store:
        totals = store.usage(by="model").totals
        assert totals.unpriced_calls + totals.unknown_calls == totals.calls > 0


@pytest.mark.parametrize("name", FILE_AGENTS)
def test_logs_whose_first_record_is_broken_stay_sessions_of_their_own(name: str) -> None:
    """It may be the only one that names the session: those of two files must not become one."""
    seen: set[str] = set()
    for source, lines in logs(name):
        changes = read(agent(name), source, [b"{broken\n", *lines[1:]])
        found = {change.placement.session_id for change in changes.messages}
        assert found
        assert found.isdisjoint(seen)
        assert f"{name}:" not in found
        seen |= found


@pytest.mark.parametrize("name", [case.name for case in CASES.values() if case.repeats_records])
def test_repeated_records_count_once_however_they_are_read(name: str) -> None:
    """Some versions write a line twice; whether one feed or two see both must not matter."""
    for source, lines in logs(name):
        twice = [line for line in lines for _ in range(2)]
        pieces: list[Changes] = []
        state, offset = None, 0
        for line in twice:
            fold = agent(name).fold(source, state)
            pieces.append(fold.feed(line, offset))
            state, offset = fold.state(), offset + len(line)
        whole = gather(read(agent(name), source, twice))
        assert gather(*pieces).as_json() == whole.as_json()
        once = gather(read(agent(name), source, lines))
        assert calls_in(whole) == calls_in(once)


def calls_in(found: Gathered) -> list[str]:
    parts = [part for message in found.messages.values() for part in message.parts]
    return sorted(part.tool_call_id for part in parts if isinstance(part, ToolCallPart))
