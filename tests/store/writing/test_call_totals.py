"""Totals of calls and edits: however calls come, change and go, they are what the rows of the calls add up to."""

from __future__ import annotations

import sqlite3
from collections import Counter
from contextlib import closing
from importlib import resources
from pathlib import Path

import msgspec
import pytest

from support.plain_agent import Log, PlainAgent
from support.plain_store import at, read_home
from turnlog import paths
from turnlog.model import Message, ToolCallPart, ToolKind, ToolResult, ToolState
from turnlog.server.sample import ensure_sample
from turnlog.store import open_store
from turnlog.store.base import ToolCallFilter
from turnlog.store.sqlite.forget import forget_for_good
from turnlog.sync.rebuild import rebuild

TOTALS = ("call_totals", "edit_totals")


def totals(path: Path) -> dict[str, list[tuple[object, ...]]]:
    with closing(sqlite3.connect(path)) as connection:
        return {name: sorted(connection.execute(f"SELECT * FROM {name}").fetchall()) for name in TOTALS}


def totals_of_the_calls(path: Path) -> dict[str, list[tuple[object, ...]]]:
    """What the migration makes of the rows, in a copy."""
    script = (resources.files("turnlog.store") / "migrations" / "0025_call_totals.sql").read_text(encoding="utf-8")
    with closing(sqlite3.connect(path)) as stored, closing(sqlite3.connect(":memory:")) as copy:
        stored.backup(copy)
        for name in TOTALS:
            copy.execute(f"DROP TABLE {name}")
        copy.executescript(script)
        return {name: sorted(copy.execute(f"SELECT * FROM {name}").fetchall()) for name in TOTALS}


def run(id: str, minute: float | None, state: ToolState = ToolState.INPUT_AVAILABLE) -> ToolCallPart:
    return ToolCallPart(
        tool_call_id=id,
        tool_name="Bash",
        kind=ToolKind.EXECUTE,
        state=state,
        input=msgspec.Raw(b'{"command": "npm test"}'),
        started_at=None if minute is None else at(minute),
    )


def edit(id: str, minute: float, path: str) -> ToolCallPart:
    return ToolCallPart(
        tool_call_id=id,
        tool_name="Edit",
        kind=ToolKind.EDIT,
        state=ToolState.OUTPUT_AVAILABLE,
        input=msgspec.Raw(msgspec.json.encode({"file_path": path})),
        started_at=at(minute),
    )


def patch(id: str, minute: float) -> ToolCallPart:
    text = "*** Begin Patch\n*** Update File: a.py\n@@\n-1\n+2\n*** Add File: b.py\n+3\n*** End Patch"
    return ToolCallPart(
        tool_call_id=id,
        tool_name="apply_patch",
        kind=ToolKind.EDIT,
        state=ToolState.OUTPUT_AVAILABLE,
        input=msgspec.Raw(msgspec.json.encode({"input": text})),
        started_at=at(minute),
    )


def answer(id: str, *calls: ToolCallPart, model: str | None = "large") -> Message:
    return Message(id=id, role="assistant", model=model, created_at=at(0), parts=calls)


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "turnlog.db"


def calls_of(store: Path) -> list[tuple[object, ...]]:
    """Tool, calls, failed, open, milliseconds and calls without them."""
    return [(row[0], row[6], row[7], row[10], row[11], row[12]) for row in totals(store)["call_totals"]]


def test_calls_of_a_quarter_hour_are_one_row(logs: Path, store: Path) -> None:
    calls = (run("c1", 1), run("c2", 14, ToolState.OUTPUT_ERROR), run("c3", 16, ToolState.ABORTED))
    Log(logs, "one").message(answer("a", *calls, edit("e1", 2, "a.py"), edit("e2", 3, "a.py"), patch("p", 4)))
    read_home(store, logs)
    assert totals(store) == totals_of_the_calls(store)
    assert calls_of(store) == [
        ("Bash", 2, 1, 1, 0, 2),
        ("Bash", 1, 0, 0, 0, 1),
        ("Edit", 2, 0, 0, 0, 2),
        ("apply_patch", 1, 0, 0, 0, 1),
    ]
    assert [(path, edits) for path, *_, edits in totals(store)["edit_totals"]] == [("a.py", 3), ("b.py", 1)]


def test_a_late_result_counts_instead_of_the_open_call(logs: Path, store: Path) -> None:
    log = Log(logs, "one")
    log.message(answer("a", run("c", 1)))
    read_home(store, logs)
    assert calls_of(store) == [("Bash", 1, 0, 1, 0, 1)]
    log.result("c", ToolResult(id="r", status="error", completed_at=at(2)))
    read_home(store, logs)
    assert calls_of(store) == [("Bash", 1, 1, 0, 60_000, 0)]
    assert totals(store) == totals_of_the_calls(store)


def test_a_message_that_gets_a_model_and_a_time_leaves_no_row_behind(logs: Path, store: Path) -> None:
    log = Log(logs, "one")
    log.message(answer("a", run("c", None), model=None))
    read_home(store, logs)
    log.message(answer("a", run("c", 30)))
    read_home(store, logs)
    assert len(calls_of(store)) == 1
    assert totals(store) == totals_of_the_calls(store)


def test_a_copy_counts_once_and_stays_when_its_original_is_forgotten(logs: Path, store: Path) -> None:
    shared = answer("shared", run("c", 1), edit("e", 1, "a.py"))
    log = Log(logs, "one")
    log.message(shared)
    log.message(answer("own", run("d", 2)))
    read_home(store, logs)
    Log(logs, "two").message(shared, copied=True)
    read_home(store, logs)
    assert [(name, calls) for name, calls, *_ in calls_of(store)] == [("Bash", 2), ("Edit", 1)]
    forget_for_good(store, "plain:one")
    assert [(name, calls) for name, calls, *_ in calls_of(store)] == [("Bash", 1), ("Edit", 1)]
    assert totals(store) == totals_of_the_calls(store)
    rebuild(store, agents=[PlainAgent()])
    assert totals(store) == totals_of_the_calls(store)


def test_every_agent_of_the_sample_adds_up() -> None:
    path = paths.sample_path()
    ensure_sample(path)
    found = totals(path)
    assert all(found.values())
    assert found == totals_of_the_calls(path)
    with open_store(path) as store:
        assert store.insights().tools == store.tool_usage()
        counted = Counter[str]()
        for failed in (True, False):  # counted call by call
            for each in store.tool_usage(ToolCallFilter(failed=failed)):
                counted[each.tool_name] += each.calls
        assert counted == {name: sum(u.calls for u in store.tool_usage(ToolCallFilter(tool=name))) for name in counted}
        assert counted.total() == sum(each.calls for each in store.tool_usage())
