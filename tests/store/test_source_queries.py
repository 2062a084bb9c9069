"""What was read, byte for byte, and what there is of each kind."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.plain_agent import Log, PlainFold
from support.plain_store import at, read_home
from turnlog.agents.changes import Changes, Diagnostic, Link
from turnlog.errors import NotFoundError
from turnlog.model import Message, TextPart, Usage
from turnlog.store import open_store
from turnlog.store.base import DiagnosticFilter, Store
from turnlog.store.sqlite.reading import Connections
from turnlog.store.usage_report import AgentSummary, ModelSummary, ProjectSummary


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """A home with bad lines, a spilled output and a subagent."""
    logs = tmp_path / "logs"
    logs.mkdir()
    shop = Log(logs, "shop")
    shop.session(project_path="/w/shop")
    shop.message(Message(id="m1", role="user", created_at=at(0), parts=(TextPart(text="Grüße"),)))
    shop.line(b"{torn")
    shop.message(Message(id="m2", role="assistant", model="large", created_at=at(1), usage=Usage(input=1, output=1)))
    shop.line(b"\xff\xfe")
    shop.spill("out.txt", b"all of it\n" * 1000)
    child = Log(logs, "shop.scout")
    child.link(Link(kind="subagent", parent_session_id="plain:shop", child_session_id="plain:shop.scout"))
    child.message(Message(id="c1", role="assistant", model="small", created_at=at(5), usage=Usage(input=1, output=1)))
    child.message(Message(id="c2", role="assistant", model="small", created_at=at(6), usage=Usage(input=1, output=1)))
    other = Log(logs, "zoo")
    other.session(project_path="/w/zoo")
    other.message(Message(id="z", role="user", created_at=at(9)))
    other.line(b"[]")
    return logs


@pytest.fixture
def store(logs: Path, tmp_path: Path) -> Iterator[Store]:
    read_home(tmp_path / "turnlog.db", logs)
    with open_store(tmp_path / "turnlog.db") as opened:
        yield opened


def test_diagnostics_lead_to_the_place(store: Store, logs: Path) -> None:
    page = store.diagnostics()
    data = (logs / "shop.jsonl").read_bytes()
    assert page.total == 3
    assert [Path(found.path).name for found in page.items] == ["shop.jsonl", "shop.jsonl", "zoo.jsonl"]
    torn = page.items[0]
    assert data[torn.offset : torn.offset + torn.length] == b"{torn\n"
    assert (torn.agent, torn.session_id, torn.severity) == ("plain", "plain:shop", "error")
    assert torn.reason


@pytest.mark.parametrize(
    ("wanted", "count"),
    [
        (DiagnosticFilter(agent="plain"), 3),
        (DiagnosticFilter(agent="other"), 0),
        (DiagnosticFilter(session="plain:zoo"), 1),
        (DiagnosticFilter(severity="note"), 0),
        (DiagnosticFilter(severity="error"), 3),
    ],
)
def test_diagnostics_of_some(store: Store, wanted: DiagnosticFilter, count: int) -> None:
    page = store.diagnostics(wanted)
    assert (len(page.items), page.total) == (count, count)


def test_diagnostics_of_one_file_page_by_page(store: Store, logs: Path) -> None:
    wanted = DiagnosticFilter(path=str(logs / "shop.jsonl"))
    first = store.diagnostics(wanted, limit=1)
    second = store.diagnostics(wanted, limit=1, cursor=first.next_cursor)
    assert (first.total, second.total, second.next_cursor) == (2, 2, None)
    assert first.items[0].offset < second.items[0].offset


def test_the_raw_bytes_of_a_session_also_when_the_files_are_gone(store: Store, logs: Path) -> None:
    kept = {path: path.read_bytes() for path in logs.rglob("*") if path.is_file()}
    for path in kept:
        path.unlink()
    raw = {Path(each.source.path): b"".join(each.pieces) for each in store.raw("plain:shop")}
    assert list(raw) == [logs / "shop.jsonl", logs / "shop" / "spills" / "out.txt"]
    assert all(kept[path] == data for path, data in raw.items())


def test_any_range_of_a_source(store: Store, logs: Path) -> None:
    path = logs / "shop.jsonl"
    data = path.read_bytes()
    assert store.record(str(path), 10, 20) == data[10:30]
    with pytest.raises(NotFoundError, match="never read"):
        store.record("/etc/passwd", 0, 1)
    with pytest.raises(NotFoundError):
        store.record(str(path), len(data) - 1, 2)


def test_the_whole_of_a_spilled_output(store: Store) -> None:
    assert store.spill("plain:shop", "out.txt") == b"all of it\n" * 1000
    for session, name in [("plain:shop", "../shop.jsonl"), ("plain:zoo", "out.txt")]:
        with pytest.raises(NotFoundError):
            store.spill(session, name)


def test_sources_say_how_far_they_were_read(store: Store, logs: Path) -> None:
    sources = store.sources()
    assert [Path(source.path).relative_to(logs).as_posix() for source in sources] == [
        "shop.jsonl",
        "shop.scout.jsonl",
        "shop/spills/out.txt",
        "zoo.jsonl",
    ]
    shop = store.sources("plain:shop")[0]
    size = (logs / "shop.jsonl").stat().st_size
    assert (shop.kind, shop.size, shop.cursor, shop.generation, shop.problem) == ("session", size, size, 0, None)
    assert shop.read_at is not None


def test_what_there_is(store: Store) -> None:
    assert store.projects() == [
        ProjectSummary("/w/zoo", "zoo", 1, at(9)),
        ProjectSummary("/w/shop", "shop", 1, at(1)),
    ]
    assert store.models() == [ModelSummary("small", 2, 1), ModelSummary("large", 1, 1)]
    assert store.agents() == [AgentSummary("plain", sessions=2, subagents=1, sources=4, updated_at=at(9))]


def test_status(store: Store, logs: Path, tmp_path: Path) -> None:
    status = store.status()
    assert (status.sessions, status.subagents, status.messages, status.sources, status.diagnostics) == (2, 1, 5, 4, 3)
    assert status.source_bytes == sum(path.stat().st_size for path in logs.rglob("*") if path.is_file())
    assert status.file_size is not None
    assert 0 < status.archive_bytes < status.file_size
    assert (status.vanished, status.unreadable) == (0, 0)
    assert status.path == str(tmp_path / "turnlog.db")
    assert status.last_sync_at is not None


def test_the_change_sequence_says_what_is_new(store: Store, logs: Path, tmp_path: Path) -> None:
    before = store.status().change_sequence
    assert store.changes(before) == []
    Log(logs, "zoo").message(Message(id="z2", role="user", created_at=at(10)))
    read_home(tmp_path / "turnlog.db", logs)
    changes = store.changes(before)
    assert {change.session_id for change in changes} == {"plain:zoo"}
    assert changes[-1].sequence == store.status().change_sequence
    assert store.changes(0, limit=1)[0].sequence == 1


def test_an_empty_store_has_nothing(tmp_path: Path) -> None:
    with open_store(tmp_path / "empty.db", create=True) as store:
        assert (store.projects(), store.models(), store.agents(), store.sources()) == ([], [], [], [])
        assert store.diagnostics().items == store.sessions().items == store.tool_calls().items == ()
        assert store.tool_usage() == []
        assert store.usage().rows == ()
        status = store.status()
        assert (status.sessions, status.messages, status.change_sequence, status.last_sync_at) == (0, 0, 0, None)


def test_restoring_and_forgetting_look_up_the_files_of_a_session(store: Store, tmp_path: Path) -> None:
    """A store holds thousands of files: going through all of them, or all messages, would take a second a session."""
    assert isinstance(store, Connections)
    connection = store._connection()  # pyright: ignore[reportPrivateUsage]  # looks inside on purpose
    seen: list[str] = []
    connection.set_trace_callback(seen.append)
    store.restore("plain:shop", tmp_path / "restored")
    store.plan_forgetting("plain:shop")
    connection.set_trace_callback(None)
    statements = [statement for statement in seen if "source_key" in statement]
    assert len(statements) > 2
    for statement in statements:
        plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}")]
        scans = [step for step in plan if step.startswith("SCAN") and not re.search(r"\(subquery|VIRTUAL TABLE", step)]
        assert not scans, statement


def test_equal_reasons_of_one_record_differ_by_place_or_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def feed(fold: PlainFold, data: bytes, offset: int) -> Changes:
        places = ("$.a", "$.b", "$.b", None, None)
        return Changes(
            diagnostics=[Diagnostic(offset=0, length=9, reason="no time", json_path=each) for each in places]
        )

    (tmp_path / "plain").mkdir()
    Log(tmp_path / "plain", "s").line(b"{}")
    monkeypatch.setattr(PlainFold, "feed", feed)
    read_home(tmp_path / "turnlog.db", tmp_path / "plain")
    with open_store(tmp_path / "turnlog.db") as store:
        assert [found.reason for found in store.diagnostics().items] == [
            "no time",
            "no time, 2 times",
            "no time, at $.b, 2 times",
        ]
