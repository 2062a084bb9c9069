"""Tool calls over many sessions, how they ended, what they touched, how much was thought."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from support.plain_agent import Log
from support.plain_store import START, at, read_home
from turnlog.model import (
    Message,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolKind,
    ToolResult,
    ToolState,
    Usage,
)
from turnlog.model.codec import to_json
from turnlog.store import open_store
from turnlog.store.base import Store, ToolCallFilter
from turnlog.store.sqlite.reading import Connections
from turnlog.store.values import ReasoningVolume, ToolCall, ToolUsage

DAY = 24 * 60


def call(id: str, minute: float | None, tool: str, state: ToolState, path: str | None = None) -> ToolCallPart:
    kinds = {"Bash": ToolKind.EXECUTE, "Read": ToolKind.READ, "Edit": ToolKind.EDIT}
    ended = state is ToolState.OUTPUT_AVAILABLE and minute is not None
    results = (ToolResult(id=f"{id}:1", completed_at=at(minute + 1), exit_code=0),) if ended and minute else ()
    return ToolCallPart(
        id=f"part.{id}",
        tool_call_id=id,
        tool_name=tool,
        kind=kinds[tool],
        input=to_json({"file_path": path} if path else {"command": "ls"}),
        state=state,
        started_at=None if minute is None else at(minute),
        results=results,
    )


def answer(id: str, minute: float | None, *parts: ToolCallPart | ReasoningPart) -> Message:
    created_at = None if minute is None else at(minute)
    return Message(id=id, role="assistant", model="large", created_at=created_at, parts=parts)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    home = tmp_path / "home"
    home.mkdir()
    failed, done = ToolState.OUTPUT_ERROR, ToolState.OUTPUT_AVAILABLE
    shop = Log(home, "shop")
    shop.session(project_path="/w/shop")
    shop.message(
        answer(
            "s1",
            1,
            ReasoningPart(text="Hm. " * 5),
            call("bash-old", 1, "Bash", failed),
            call("read-old", 1, "Read", done, "/w/shop/till.py"),
        )
    )
    shop.message(
        answer(
            "s2",
            8 * DAY,
            call("bash-failed", 8 * DAY, "Bash", failed),
            call("bash-done", 8 * DAY + 1, "Bash", done),
            call("bash-denied", 8 * DAY + 2, "Bash", ToolState.OUTPUT_DENIED),
            call("bash-aborted", 8 * DAY + 3, "Bash", ToolState.ABORTED),
        )
    )
    shop.message(answer("s3", 9 * DAY, call("bash-open", 9 * DAY, "Bash", ToolState.INPUT_AVAILABLE)))
    site = Log(home, "site")
    site.session(project_path="/w/site")
    site.message(answer("t1", 8.5 * DAY, call("edit", 8.5 * DAY, "Edit", done, "/w/shop/till.py")))
    site.message(answer("t2", None, call("timeless", None, "Bash", failed), ReasoningPart(text="", redacted=True)))
    fork = Log(home, "fork")
    fork.message(answer("s1", 1), copied=True)
    fork.message(answer("f1", 10 * DAY, call("bash-fork", 10 * DAY, "Bash", failed)))
    read_home(tmp_path / "turnlog.db", home)
    with open_store(tmp_path / "turnlog.db") as opened:
        yield opened


def ids(store: Store, wanted: ToolCallFilter) -> list[str]:
    return [found.tool_call_id for found in store.tool_calls(wanted).items]


def test_all_failed_bash_calls_of_last_week(store: Store) -> None:
    """R-S27, R-S41: newest first; an aborted or denied call did not fail."""
    week = ToolCallFilter(tool="Bash", failed=True, since=START + timedelta(days=5), until=START + timedelta(days=12))
    assert ids(store, week) == ["bash-fork", "bash-failed"]


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (
            ToolCallFilter(tool="Bash"),
            [
                "bash-fork",
                "bash-open",
                "bash-aborted",
                "bash-denied",
                "bash-done",
                "bash-failed",
                "bash-old",
                "timeless",
            ],
        ),
        (ToolCallFilter(tool="Bash", failed=True), ["bash-fork", "bash-failed", "bash-old", "timeless"]),
        (ToolCallFilter(tool="Bash", failed=False), ["bash-open", "bash-aborted", "bash-denied", "bash-done"]),
        (ToolCallFilter(tool="Bash", state="output-denied"), ["bash-denied"]),
        (ToolCallFilter(tool="Bash", state=ToolState.ABORTED, failed=True), []),
        (ToolCallFilter(tool="Nothing"), []),
        (ToolCallFilter(kind="edit"), ["edit"]),
        (ToolCallFilter(kind=ToolKind.READ), ["read-old"]),
        (ToolCallFilter(failed=True), ["bash-fork", "bash-failed", "bash-old", "timeless"]),
        (ToolCallFilter(path="/w/shop/till.py"), ["edit", "read-old"]),
        (ToolCallFilter(path="/w/shop/till.py", tool="Read"), ["read-old"]),
        (ToolCallFilter(path="/w/shop"), []),
        (ToolCallFilter(project="site", tool="Bash"), ["timeless"]),
        (ToolCallFilter(agent="other", tool="Bash"), []),
        (ToolCallFilter(session="plain:site"), ["edit", "timeless"]),
        (ToolCallFilter(session="plain:fork"), ["bash-old", "read-old", "bash-fork"]),
        (ToolCallFilter(session="plain:shop", tool="Bash", state="output-error"), ["bash-old", "bash-failed"]),
        (ToolCallFilter(tool="Bash", since=at(9 * DAY)), ["bash-fork", "bash-open"]),
        (ToolCallFilter(tool="Bash", until=at(8 * DAY)), ["bash-old"]),
    ],
)
def test_filters(store: Store, wanted: ToolCallFilter, found: list[str]) -> None:
    """R-C12: those of one session in its order, all others newest first, those without a time last."""
    assert ids(store, wanted) == found


def test_all_calls_newest_message_first(store: Store) -> None:
    """R-S28: a row a part."""
    assert ids(store, ToolCallFilter()) == [
        "bash-fork",
        "bash-open",
        "edit",
        "bash-aborted",
        "bash-denied",
        "bash-done",
        "bash-failed",
        "read-old",
        "bash-old",
        "timeless",
    ]


def test_a_call_says_where_it_is(store: Store) -> None:
    """R-C8, R-C9, R-S26."""
    found = store.tool_calls(ToolCallFilter(tool="Bash", state="output-available")).items
    assert found == (
        ToolCall(
            tool_call_id="bash-done",
            tool_name="Bash",
            kind="execute",
            state="output-available",
            message_id="s2",
            session_id="plain:shop",
            position=store.messages("plain:shop")[1].membership.position,
            agent="plain",
            started_at=at(8 * DAY + 1),
            completed_at=at(8 * DAY + 2),
            duration_ms=60_000,
            exit_code=0,
            path=None,
            input_size=len('{"command":"ls"}'),
            output_size=0,
        ),
    )


@pytest.mark.parametrize(
    "wanted", [ToolCallFilter(), ToolCallFilter(tool="Bash"), ToolCallFilter(session="plain:shop")]
)
@pytest.mark.parametrize("limit", [1, 2, 3])
def test_pages_hold_every_call_once_in_order(store: Store, wanted: ToolCallFilter, limit: int) -> None:
    whole = ids(store, wanted)
    pages: list[str] = []
    cursor: str | None = None
    while True:
        page = store.tool_calls(wanted, limit=limit, cursor=cursor)
        pages += [found.tool_call_id for found in page.items]
        cursor = page.next_cursor
        if cursor is None:
            break
    assert pages == whole


@pytest.mark.parametrize(
    ("wanted", "index"),
    [
        (ToolCallFilter(tool="Bash"), "parts_by_tool (tool_name=? AND tool_state=?"),
        (
            ToolCallFilter(tool="Bash", failed=True, since=START),
            "parts_by_tool (tool_name=? AND tool_state=? AND started_at>? AND started_at<?)",
        ),
        (ToolCallFilter(path="/w/shop/till.py", tool="Read"), "parts_by_path (path=?)"),
        (ToolCallFilter(kind="edit"), "messages_with_tools"),
        (ToolCallFilter(since=START), "messages_with_tools (created_at>? AND created_at<?)"),
        (ToolCallFilter(session="plain:shop"), "PRIMARY KEY (session_key=? AND position>?)"),
    ],
)
def test_questions_walk_an_index(store: Store, wanted: ToolCallFilter, index: str) -> None:
    """R-S27: and along it, so that the newest are there without sorting all."""
    second_page = store.tool_calls(wanted, limit=1).next_cursor
    for statement in statements_of(store, wanted, second_page):
        plan = plan_of(store, statement)
        if "IS NULL AND" not in statement and "IS NULL ORDER" not in statement:
            assert index in plan
        assert "SCAN p" not in plan
        assert "SCAN m\n" not in f"{plan}\n"
        if wanted.path is None:
            assert "USE TEMP B-TREE FOR ORDER BY" not in plan


def statements_of(store: Store, wanted: ToolCallFilter, cursor: str | None) -> list[str]:
    assert isinstance(store, Connections)
    connection = store._connection()  # pyright: ignore[reportPrivateUsage]  # looks inside on purpose
    seen: list[str] = []
    connection.set_trace_callback(seen.append)
    store.tool_calls(wanted, limit=1, cursor=cursor)
    connection.set_trace_callback(None)
    found = [statement for statement in seen if statement.startswith("SELECT p.tool_call_id")]
    assert found
    return found


def plan_of(store: Store, statement: str) -> str:
    assert isinstance(store, Connections)
    connection = store._connection()  # pyright: ignore[reportPrivateUsage]  # looks inside on purpose
    return "\n".join(row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}"))


def test_how_often_tools_are_called_and_how_that_ends(store: Store) -> None:
    """R-S41."""
    bash, *others = store.tool_usage()
    assert bash == ToolUsage(
        "Bash", "execute", calls=8, failed=4, denied=1, aborted=1, unanswered=1, duration_ms=60_000, unknown_durations=7
    )
    assert [(usage.tool_name, usage.calls, usage.failed) for usage in others] == [("Edit", 1, 0), ("Read", 1, 0)]


@pytest.mark.parametrize(
    ("wanted", "calls"),
    [
        (ToolCallFilter(session="plain:shop"), {"Bash": 6, "Read": 1}),
        (ToolCallFilter(session="plain:fork"), {"Bash": 2, "Read": 1}),
        (ToolCallFilter(project="site"), {"Bash": 1, "Edit": 1}),
        (ToolCallFilter(agent="plain", failed=True), {"Bash": 4}),
        (ToolCallFilter(agent="other"), {}),
        (ToolCallFilter(since=at(9 * DAY)), {"Bash": 2}),
    ],
)
def test_tool_usage_of_some(store: Store, wanted: ToolCallFilter, calls: dict[str, int]) -> None:
    """R-S41."""
    assert {usage.tool_name: usage.calls for usage in store.tool_usage(wanted)} == calls


def test_how_much_was_thought(tmp_path: Path, store: Store) -> None:
    """R-S17, R-S41: withheld thinking counts as a part without characters."""
    assert store.reasoning() == ReasoningVolume(parts=2, characters=20, messages=2, tokens=0)
    assert store.reasoning("plain:shop") == ReasoningVolume(parts=1, characters=20, messages=1, tokens=0)
    assert store.reasoning("plain:fork") == ReasoningVolume(parts=1, characters=20, messages=1, tokens=0)
    home = tmp_path / "more"
    home.mkdir()
    usage = Usage(input=1, output=2, reasoning=40)
    Log(home, "one").message(Message(id="m", role="assistant", usage=usage, parts=(TextPart(text="a"),)))
    read_home(tmp_path / "more.db", home)
    with open_store(tmp_path / "more.db") as other:
        assert other.reasoning().tokens == other.reasoning("plain:one").tokens == 40
