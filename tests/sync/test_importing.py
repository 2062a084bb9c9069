"""Files handed over one by one: recognised by content, kept, read once, and remade without the original."""

from __future__ import annotations

import errno
import io
import json
from itertools import permutations
from pathlib import Path

import pytest

from support.agent_cases import CASES
from support.claude_files import AGENT, DATA, SESSION, Log, call, lines, text
from support.database_rows import databases_in
from turnlog.agents import agent
from turnlog.errors import FormatError
from turnlog.model import Session
from turnlog.store import open_store
from turnlog.store.base import SessionFilter
from turnlog.store.sources import imports_folder
from turnlog.sync.importing import ImportSummary, import_file, import_stream
from turnlog.sync.rebuild import rebuild
from turnlog.sync.syncer import sync

STREAM = DATA / "streams" / "basic.jsonl"
LOG = next((DATA / "scenarios" / "basic" / "projects").glob(f"*/{SESSION}.jsonl"))


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "data" / "turnlog.db"


def give(store: Path, path: Path) -> ImportSummary:
    with path.open("rb") as file:
        return import_stream(store, file, path.name)


def messages(store: Path) -> list[str]:
    with open_store(store) as opened:
        return [placed.message.id for placed in opened.messages(f"claude-code:{SESSION}")]


def listed(store: Path) -> list[str]:
    with open_store(store) as opened:
        return sorted(session.id for session in opened.sessions(SessionFilter(subagents=True)).items)


def known(store: Path) -> dict[str, Session]:
    """All that is known about each session."""
    with open_store(store) as opened:
        return {each.id: each for each in opened.sessions(SessionFilter(subagents=True)).items}


class Unreadable(io.BytesIO):
    """A file on a broken disk."""

    def read(self, size: int | None = -1, /) -> bytes:
        raise OSError(errno.EIO, "Input/output error")


def test_an_error_names_the_file_that_cannot_be_read(store: Path) -> None:
    with pytest.raises(OSError, match="Input/output error") as failed:
        import_stream(store, Unreadable(), "log.jsonl")
    assert failed.value.filename == "log.jsonl"
    assert list(imports_folder(store).iterdir()) == []


@pytest.mark.parametrize("name", ["gptme", "kimi-cli", "klaude", "omo"])
def test_a_log_in_its_agents_home_is_the_session_that_a_sync_finds(
    name: str, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-S21, R-S5: a log whose records do not name their session was listed twice, once under a hash."""
    case = CASES[name]
    monkeypatch.setenv("HOME", str(tmp_path))
    home = case.write_home(case.recorded[0], tmp_path / case.home)
    for source in agent(name).find_sources(home):
        if source.kind == "session":
            assert import_file(store, Path(source.path)).agent == name
    imported = listed(store)
    assert imported
    rebuild(store)
    assert listed(store) == imported
    sync(store)
    synced = store.with_name("synced.db")
    sync(synced)
    assert listed(store) == listed(synced) == sorted({*listed(synced), *imported})


@pytest.mark.parametrize("name", [case.name for case in CASES.values() if case.spoilt])
def test_what_other_tables_say_of_a_session_is_imported_too(name: str, tmp_path: Path) -> None:
    """R-S21: titles, folders and totals were lost, which a sync of the same database finds."""
    case = CASES[name]
    home = case.write_home(case.recorded[0], tmp_path / case.home)
    imported, synced = (tmp_path / each / "turnlog.db" for each in ("imported", "synced"))
    sync(synced, roots=[home], agents=[agent(name)])
    for path in databases_in(home):
        assert import_file(imported, path).problems == []
    assert known(imported) == known(synced) != {}


def test_a_log_that_a_sync_read_elsewhere_stays_its_session(store: Path, tmp_path: Path) -> None:
    home = CASES["klaude"].write_home(CASES["klaude"].recorded[0], tmp_path / "backup")
    sync(store, roots=[home])
    known = listed(store)
    log = next(Path(source.path) for source in agent("klaude").find_sources(home) if source.kind == "session")
    assert (import_file(store, log).is_new, listed(store)) == (False, known)
    assert not imports_folder(store).exists()


def test_a_folder_that_only_looks_like_a_home_names_no_session(store: Path, tmp_path: Path) -> None:
    """Two backups may have different sessions at the same place: only the bytes say which."""
    home = CASES["klaude"].write_home(CASES["klaude"].recorded[0], tmp_path / "backup" / ".klaude")
    log = next(source for source in agent("klaude").find_sources(home) if source.kind == "session")
    [session] = import_file(store, Path(log.path)).sessions
    assert session != log.session_id


def test_a_stream_is_recognised_and_read(store: Path) -> None:
    """R-S21"""
    summary = give(store, STREAM)
    assert (summary.agent, summary.version, summary.kind) == ("claude-code", "2.1.329", "stream")
    assert (summary.sessions, summary.new_sessions, summary.messages) == ((f"claude-code:{SESSION}",), 1, 8)
    assert summary.diagnostics == 0
    assert len(messages(store)) == 8


def test_a_log_is_recognised_too_whatever_it_is_called(store: Path, tmp_path: Path) -> None:
    copy = tmp_path / "mail attachment.txt"
    copy.write_bytes(LOG.read_bytes())
    summary = give(store, copy)
    assert (summary.agent, summary.kind, summary.sessions) == ("claude-code", "session", (f"claude-code:{SESSION}",))


def test_the_same_bytes_again_change_nothing(store: Path) -> None:
    give(store, STREAM)
    before = messages(store)
    again = import_stream(store, io.BytesIO(STREAM.read_bytes()), STREAM.name)
    assert (again.is_new, again.sessions, again.messages) == (False, (), 0)
    assert messages(store) == before
    assert len(list(imports_folder(store).iterdir())) == 1


def test_what_was_piped_survives_and_is_remade_without_its_file(store: Path) -> None:
    summary = import_stream(store, io.BytesIO(STREAM.read_bytes()))
    before = messages(store)
    Path(summary.path).unlink()
    rebuild(store)
    assert messages(store) == before
    with open_store(store) as opened:
        (raw,) = opened.raw(f"claude-code:{SESSION}")
        assert b"".join(raw.pieces) == STREAM.read_bytes()


@pytest.mark.parametrize("log_first", [True, False])
def test_a_stream_beside_its_log_adds_nothing(store: Path, tmp_path: Path, log_first: bool) -> None:
    """Every message of it is in the log, under the same id."""
    home = DATA / "scenarios" / "basic"
    alone = tmp_path / "alone.db"
    sync(alone, roots=[home])
    steps = [lambda: sync(store, roots=[home]), lambda: give(store, STREAM)]
    for step in steps if log_first else reversed(steps):
        step()
    with open_store(alone) as one, open_store(store) as other:
        for known in one.sessions().items:
            found = other.session(known.id)
            assert (found.counts, found.usage, found.cost, found.reported_cost, found.title) == (
                *(known.counts, known.usage, known.cost, known.reported_cost, known.title),
            )
            assert [placed.message for placed in other.messages(known.id)] == [
                placed.message for placed in one.messages(known.id)
            ]


@pytest.mark.parametrize("content", [b"", b"hello\n", b'{"a": 1}\n', b"\x00" * 100])
def test_what_is_nobodys_is_refused_with_reasons_and_not_kept(store: Path, content: bytes) -> None:
    with pytest.raises(FormatError, match=r"notes.txt: of no agent that turnlog reads") as caught:
        import_stream(store, io.BytesIO(content), "notes.txt")
    assert caught.value.of_agents or "(empty)" in str(caught.value)
    assert list(imports_folder(store).iterdir()) == []
    assert not store.exists()


def test_a_subagent_that_a_stream_calls_otherwise_is_no_second_one(tmp_path: Path) -> None:
    """R-S43: older streams name a subagent after its call; its log has the agent's id. Whichever comes first."""
    asked = call("toolu_1", "Task", prompt="count", description="c")
    main, sub = Log(), Log(isSidechain=True, agentId="a1b2c3d")
    facts = {"agentId": "a1b2c3d", "status": "completed"}
    home = {
        f"{SESSION}.jsonl": lines(
            main.user("go"),
            main.assistant("msg_1", asked, stop="tool_use"),
            main.result("toolu_1", "two", toolUseResult=facts),
            main.assistant("msg_3", text("Two.")),
        ),
        f"{SESSION}/subagents/agent-a1b2c3d.jsonl": lines(sub.user("count"), sub.assistant("msg_2", text("two"))),
    }
    said = [("msg_1", asked, None), ("msg_2", text("two"), "toolu_1"), ("msg_3", text("Two."), None)]
    stream = [
        {
            "type": "assistant",
            "session_id": SESSION,
            "message": {"id": name, "content": [block]},
            "parent_tool_use_id": by,
        }
        for name, block, by in said
    ]
    stream.insert(1, {**stream[1], "type": "user", "message": {"role": "user", "content": "count"}})
    for number, order in enumerate(permutations([*home, "stream"])):
        folder = tmp_path / str(number)
        store, project = folder / "turnlog.db", folder / "home" / "projects" / "-home-dev-proj"
        for name in order:
            if name == "stream":
                import_stream(store, io.BytesIO("".join(json.dumps(line) + "\n" for line in stream).encode()), name)
                continue
            (project / name).parent.mkdir(parents=True, exist_ok=True)
            (project / name).write_bytes(home[name])
            sync(store, roots=[folder / "home"], agents=[AGENT])
        with open_store(store) as opened:
            found = opened.sessions(SessionFilter(subagents=True)).items
            calls = {session.external_id.removeprefix(SESSION): session.usage.calls for session in found}
            assert calls == {"": 2, ".a1b2c3d": 1}, order
            children = opened.children(f"claude-code:{SESSION}")
            assert [child.external_id for child in children] == [f"{SESSION}.a1b2c3d"]
            (link,) = opened.relationships(f"claude-code:{SESSION}")
            assert link.child_session_id == f"claude-code:{SESSION}.a1b2c3d"
            assert opened.child_sessions(f"claude-code:{SESSION}") == {"toolu_1": f"claude-code:{SESSION}.a1b2c3d"}
