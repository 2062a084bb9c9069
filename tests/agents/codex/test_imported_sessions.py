"""Threads that Codex made from sessions of other agents: no model call is counted for what they copied."""

from __future__ import annotations

import json
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from support.codex_files import AGENT, OTHER, THREAD, answer, counts, event, fold, fold_in_pieces, line, meta, prompt
from support.codex_files import token_count as count_tokens
from turnlog.agents import fold_bytes
from turnlog.agents.base import SourceKind
from turnlog.agents.codex.sources import source_of
from turnlog.model import TextPart
from turnlog.store import open_store
from turnlog.store.base import SessionFilter
from turnlog.sync.syncer import sync

ORIGIN = "ffffffff-0000-4000-8000-000000000001"
NOTHING = {**counts(0, 0, 0, 0), "total_tokens": 47}
MARK = "<EXTERNAL SESSION IMPORTED>"


def imported_turn(number: int, text: str, *answers: str, ends: bool = False) -> bytes:
    """A turn as Codex copies it, with what ends the copy."""
    turn_id = f"external-import-turn-{number}"
    lines = [event("task_started", turn_id=turn_id), event("user_message", message=text), prompt(text)]
    for each in answers:
        lines += [event("agent_message", message=each), answer(each)]
    if ends:
        lines += [event("agent_message", message=MARK), count_tokens(NOTHING, NOTHING)]
    return b"".join([*lines, event("task_complete", turn_id=turn_id)])


def own_turn(number: int, text: str, total: int) -> bytes:
    return b"".join(
        [
            event("task_started", turn_id=f"own-{number}"),
            line("turn_context", {"turn_id": f"own-{number}", "model": "gpt-5.5"}),
            prompt(text),
            answer(f"to {text}"),
            count_tokens(counts(100 * total, 0, 10 * total, 0), counts(100, 0, 10, 0)),
            event("task_complete", turn_id=f"own-{number}"),
        ]
    )


COPY = imported_turn(1, "one", "[external_agent_tool_call: Bash]\nls\n[/external_agent_tool_call]") + imported_turn(
    2, "two", "to two", ends=True
)
LOG = meta() + COPY + own_turn(1, "three", 1)


def imports(*records: dict[str, str]) -> str:
    return json.dumps({"records": records})


def write(home: Path, *, with_list: bool = True, log: bytes = LOG) -> None:
    folder = home / "sessions/2026/11/21"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"rollout-2026-11-21T10-00-00-{THREAD}.jsonl").write_bytes(log)
    if with_list:
        record = {"source_path": f"/home/dev/.claude/projects/-x/{ORIGIN}.jsonl", "imported_thread_id": THREAD}
        (home / "external_agent_session_imports.json").write_text(imports(record))


def write_origin(home: Path) -> None:
    folder = home / "projects/-x"
    folder.mkdir(parents=True)
    common = {"sessionId": ORIGIN, "cwd": "/x", "version": "2.1.260", "timestamp": "2026-11-20T10:00:00.000Z"}
    usage = {"input_tokens": 7, "output_tokens": 3, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
    message: dict[str, Any] = {"id": "m1", "role": "assistant", "model": "claude-opus-4-5", "content": []}
    message["usage"] = usage
    records: list[dict[str, Any]] = [
        {"type": "user", "uuid": "u1", "parentUuid": None, "message": {"role": "user", "content": "one"}, **common},
        {"type": "assistant", "uuid": "u2", "parentUuid": "u1", "requestId": "r1", "message": message, **common},
    ]
    (folder / f"{ORIGIN}.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))


def test_only_what_follows_an_import_is_a_model_call(tmp_path: Path) -> None:
    """R-C19: the copy has every text, and neither a call nor tokens."""
    write(tmp_path / "home")
    sync(tmp_path / "store.db", roots=[tmp_path / "home"], agents=[AGENT])
    with open_store(tmp_path / "store.db") as store:
        session = store.session(f"codex:{THREAD}")
        assert session is not None
        used = session.usage
        assert (used.calls, used.unknown_calls, used.usage.input, used.usage.output) == (1, 0, 100, 10)
        messages = [placed.message for placed in store.messages(f"codex:{THREAD}")]
    parts = [part.text for message in messages for part in message.parts if isinstance(part, TextPart)]
    assert parts[0] == "one"
    assert parts[-4:] == ["two", "to two", "three", "to three"]
    assert MARK not in "".join(parts)


@pytest.mark.parametrize("order", list(permutations(["log", "list", "origin"])), ids="-".join)
def test_an_import_continues_its_origin_in_any_order(order: tuple[str, ...], tmp_path: Path) -> None:
    """R-C13: whichever of the three files is read first."""
    homes = {"log": tmp_path / "codex", "list": tmp_path / "codex", "origin": tmp_path / "claude"}
    for name in order:
        if name == "log":
            write(homes[name], with_list=(homes[name] / "external_agent_session_imports.json").exists())
        elif name == "list":
            homes[name].mkdir(exist_ok=True)
            record = {"source_path": f"/h/.claude/projects/-x/{ORIGIN}.jsonl", "imported_thread_id": THREAD}
            (homes[name] / "external_agent_session_imports.json").write_text(imports(record))
        else:
            write_origin(homes[name])
        sync(tmp_path / "store.db", roots=[home for home in set(homes.values()) if home.exists()])
    with open_store(tmp_path / "store.db") as store:
        sessions = {session.external_id: session for session in store.sessions(SessionFilter()).items}
    assert {name: session.usage.calls for name, session in sessions.items()} == {ORIGIN: 1, THREAD: 1}
    links = [(link.kind, link.parent_session_id) for link in sessions[THREAD].relationships]
    assert links == [("continuation", f"claude-code:{ORIGIN}")]


def test_an_import_without_its_origin_is_a_session(tmp_path: Path) -> None:
    """The log of the other agent was deleted, or is on another machine."""
    write(tmp_path / "home", log=meta() + COPY)
    sync(tmp_path / "store.db", roots=[tmp_path / "home"], agents=[AGENT])
    with open_store(tmp_path / "store.db") as store:
        found = store.sessions(SessionFilter()).items
    assert [(session.title, session.usage.calls, session.usage.unknown_calls) for session in found] == [("one", 0, 0)]


def test_a_copy_that_is_cut_anywhere_counts_no_call() -> None:
    lines = LOG.splitlines(keepends=True)
    whole = fold(*lines)
    for cut in range(1, len(lines)):
        pieces = fold_in_pieces(b"".join(lines[:cut]), b"".join(lines[cut:]))
        assert pieces.placements.keys() == whole.placements.keys()
        assert sum(not place.handed_over for place in pieces.placements.values()) == 2


def test_a_turn_without_an_id_ends_the_copy() -> None:
    own = [prompt("three"), answer("to three"), count_tokens(counts(9, 0, 1, 0), counts(9, 0, 1, 0))]
    found = fold(meta(), COPY, *own)
    assert [place.handed_over for place in found.placements.values()] == [True] * 4 + [False] * 2


@pytest.mark.parametrize(
    ("path", "parent"),
    [
        (f"/home/dev/.claude/projects/-x/{ORIGIN}.jsonl", f"claude-code:{ORIGIN}"),
        (rf"C:\Users\dev\.claude\projects\-x\{ORIGIN}.jsonl", f"claude-code:{ORIGIN}"),
        (f"/home/dev/.cursor/projects/x/agent-transcripts/{ORIGIN}/{ORIGIN}.jsonl", f"cursor:{ORIGIN}"),
        ("/home/dev/elsewhere.jsonl", None),
        ("/home/dev/projects/shop/.other/session-1.json", None),
    ],
)
def test_the_list_of_imports_names_the_session(path: str, parent: str | None) -> None:
    found = source_of(Path("/h/.codex/external_agent_session_imports.json"))
    assert found is not None
    assert found.kind is SourceKind.SIDECAR
    data = imports({"source_path": path, "imported_thread_id": OTHER})
    links = fold_bytes(AGENT, found, data.encode()).links
    assert [(link.parent_session_id, link.child_session_id) for link in links] == (
        [] if parent is None else [(parent, f"codex:{OTHER}")]
    )


def test_a_damaged_list_of_imports_is_reported() -> None:
    found = source_of(Path("/h/.codex/external_agent_session_imports.json"))
    assert found is not None
    changes = fold_bytes(AGENT, found, b'{"records": [{')
    assert (changes.links, len(changes.diagnostics)) == ([], 1)
