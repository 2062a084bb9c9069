"""Files are found by where they lie, and known by what stands in them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from support.claude_files import AGENT, DATA, SESSION, Log, gather, lines, read, sources, text
from turnlog.agents import detect, fold_bytes
from turnlog.agents.base import Source, SourceKind
from turnlog.agents.changes import Link, Spill

PROJECT = "-home-dev-proj"
ID = f"claude-code:{SESSION}"


@pytest.fixture
def root(home: Path) -> Path:
    """A configuration folder with one of every kind of file."""
    folder = home / ".claude"
    project = folder / "projects" / PROJECT
    for name in (
        f"{SESSION}.jsonl",
        f"{SESSION}/subagents/agent-a1.jsonl",
        f"{SESSION}/subagents/agent-a1.meta.json",
        f"{SESSION}/subagents/workflows/w1/agent-b2.jsonl",
        f"{SESSION}/tool-results/b8vcrgm1a.txt",
        f"{SESSION}/tool-results/mcp-mock-blob-1.png",
        f"{SESSION}/custom-title.json",
        f"{SESSION}/subagents/workflows/w1/journal.jsonl",
        f"{SESSION}/workflows/w1.json",
        f"{SESSION}/workflows/scripts/two-w1.js",
        "agent-04eb1f60.jsonl",
    ):
        path = project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")
    return folder


def found(*roots: Path) -> dict[str, Source]:
    return {Path(source.path).name: source for source in AGENT.discover(roots or None)}


def test_every_kind_of_file_is_found_with_its_session(root: Path) -> None:
    """R-S20: sessions, subagents in both layouts, sidecars and spilled outputs, with project and session id."""
    expected = {
        f"{SESSION}.jsonl": (SourceKind.SESSION, ID, True),
        "agent-a1.jsonl": (SourceKind.SUBAGENT, f"{ID}.a1", True),
        "agent-a1.meta.json": (SourceKind.SIDECAR, f"{ID}.a1", False),
        "agent-b2.jsonl": (SourceKind.SUBAGENT, f"{ID}.b2", True),
        "b8vcrgm1a.txt": (SourceKind.SPILL, ID, False),
        "mcp-mock-blob-1.png": (SourceKind.SPILL, ID, False),
        "custom-title.json": (SourceKind.SIDECAR, ID, False),
        "journal.jsonl": (SourceKind.SIDECAR, ID, False),
        "w1.json": (SourceKind.SIDECAR, ID, False),
        "two-w1.js": (SourceKind.SIDECAR, ID, False),
        "agent-04eb1f60.jsonl": (SourceKind.SUBAGENT, None, True),
    }
    sources = found(root)
    assert {name: (source.kind, source.session_id, source.appendable) for name, source in sources.items()} == expected
    for source in sources.values():
        assert (source.agent, source.root) == ("claude-code", str(root))
        assert Path(source.path).is_absolute()
        assert PROJECT in source.path


def test_a_root_that_is_missing_gives_nothing(home: Path) -> None:
    """R-S20"""
    assert list(AGENT.discover([home / "nowhere"])) == []
    assert list(AGENT.roots()) == []
    assert found() == {}


def test_the_roots_are_those_that_the_environment_names(
    root: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-C2: `~/.claude` and `~/.config/claude`, or what CLAUDE_CONFIG_DIR names, several with commas."""
    other = home / ".config" / "claude"
    (other / "projects").mkdir(parents=True)
    assert list(AGENT.roots()) == [root, other]
    third = home / "elsewhere"
    (third / "projects").mkdir(parents=True)
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", f"{third},{home / 'missing'}, {other}")
    assert list(AGENT.roots()) == [third, other]


def test_what_only_looks_like_a_log_is_left_out(root: Path) -> None:
    project = root / "projects" / PROJECT
    for name in (
        "notes.md",
        "x.jsonl.bak",
        f"{SESSION}/readme.txt",
        f"{SESSION}/subagents/notes.jsonl",
        f"{SESSION}/subagents/journal.jsonl",
    ):
        (project / name).write_bytes(b"x")
    (project / "folder.jsonl").mkdir()
    (root / "projects" / "stray.jsonl").write_bytes(b"x")
    (root / "history.jsonl").write_bytes(b"x")
    assert len(found(root)) == 11


def test_symbolic_links_are_not_followed(root: Path, tmp_path: Path) -> None:
    project = root / "projects" / PROJECT
    (tmp_path / "secret.jsonl").write_bytes(b"{}\n")
    (project / "linked.jsonl").symlink_to(tmp_path / "secret.jsonl")
    (project / "loop").symlink_to(project, target_is_directory=True)
    (project / SESSION / "subagents" / "loop").symlink_to(project / SESSION, target_is_directory=True)
    (root / "projects" / "away").symlink_to(tmp_path, target_is_directory=True)
    assert len(found(root)) == 11


def test_nothing_is_opened(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: Any, **options: Any) -> None:
        raise AssertionError(f"opened {arguments}")

    monkeypatch.setattr("builtins.open", refuse)
    monkeypatch.setattr("io.open", refuse)
    monkeypatch.setattr(os, "open", refuse)
    assert len(found(root)) == 11


def test_a_folder_that_may_not_be_read_hides_only_itself(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listed = os.scandir

    def scandir(path: str) -> Any:
        if path.endswith("subagents"):
            raise PermissionError(13, "Permission denied", path)
        return listed(path)

    monkeypatch.setattr(os, "scandir", scandir)
    assert set(found(root)) == {
        f"{SESSION}.jsonl",
        "b8vcrgm1a.txt",
        "mcp-mock-blob-1.png",
        "custom-title.json",
        "w1.json",
        "two-w1.js",
        "agent-04eb1f60.jsonl",
    }


# By content

LOG = lines(Log("2.1.100").user("hi"), Log("2.1.329").assistant("msg_1", text("hello")))


def test_a_log_is_known_by_its_records_wherever_it_lies(tmp_path: Path) -> None:
    """R-S21: the agent and the version of the first record that names one."""
    path = tmp_path / "renamed.txt"
    path.write_bytes(b'{"type":"file-history-snapshot","messageId":"m"}\n' + LOG)
    detection = detect(path)
    assert (detection.agent, detection.version, detection.reason) == ("claude-code", "2.1.100", None)
    assert detection.source is not None
    assert (detection.source.kind, detection.source.session_id) == (SourceKind.SESSION, None)
    changes = fold_bytes(AGENT, detection.source, path.read_bytes())
    assert set(changes.sessions) == {ID}


def test_a_subagents_log_is_known_as_one(tmp_path: Path) -> None:
    path = tmp_path / "agent-a1.jsonl"
    path.write_bytes(lines(Log(isSidechain=True, agentId="a1").user("count")))
    detection = detect(path)
    assert detection.source is not None
    assert detection.source.kind is SourceKind.SUBAGENT
    assert set(fold_bytes(AGENT, detection.source, path.read_bytes()).sessions) == {f"{ID}.a1"}


def test_a_log_in_its_place_is_the_source_that_discovery_finds(root: Path) -> None:
    path = root / "projects" / PROJECT / f"{SESSION}.jsonl"
    path.write_bytes(LOG)
    assert detect(path).source == found(root)[path.name]


def test_sidecars_are_known_by_their_place(root: Path) -> None:
    for name in ("agent-a1.meta.json", "custom-title.json", "b8vcrgm1a.txt", "journal.jsonl", "w1.json", "two-w1.js"):
        source = found(root)[name]
        Path(source.path).write_bytes(b"{}")
        assert detect(Path(source.path)).source == source


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "empty"),
        (b"hello\n", "no line is a JSON object"),
        (b'{"a":1}\n', "no record has a known type and a sessionId"),
        (b'{"type":"session_header","payload":{"id":"x"}}\n', "no record has a known type and a sessionId"),
        (b'{"type":"system","subtype":"init","sessionid":"x"}\n', "no record has a known type and a sessionId"),
    ],
)
def test_why_a_file_is_nobodys(content: bytes, reason: str, tmp_path: Path) -> None:
    """R-S21: other formats, and Claude Code's own stream of events, are not its logs."""
    path = tmp_path / "log.jsonl"
    path.write_bytes(content)
    detection = detect(path)
    assert detection.agent is None
    assert detection.reason is not None
    assert reason in detection.reason


def test_a_file_that_cannot_be_read_is_a_diagnostic(tmp_path: Path) -> None:
    assert "No such file" in str(detect(tmp_path / "missing.jsonl").reason)
    assert "this is a folder" in str(detect(tmp_path).reason)


def test_a_long_first_line_is_enough(tmp_path: Path) -> None:
    path = tmp_path / "big.jsonl"
    path.write_bytes(LOG + lines(Log().user("x" * 200_000)))
    assert detect(path).agent == "claude-code"


# Sidecars

META = {
    "agentType": "Explore",
    "description": "List branches",
    "toolUseId": "t2",
    "spawnDepth": 1,
    "model": "claude-opus-5-5",
    "finished": True,
}
FACTS = {"agent_type": "Explore", "description": "List branches", "spawn_depth": 1, "model": "claude-opus-5-5"}


def source(kind: SourceKind, name: str, external: str = SESSION) -> Source:
    return Source(
        agent="claude-code",
        path=f"/home/dev/{name}",
        root="/home/dev",
        kind=kind,
        session_id=f"claude-code:{external}",
        appendable=False,
    )


def meta(content: dict[str, Any]) -> Any:
    place = source(SourceKind.SIDECAR, "agent-a1.meta.json", f"{SESSION}.a1")
    return gather(fold_bytes(AGENT, place, json.dumps(content).encode()))


def test_a_subagents_meta_links_it_to_its_call() -> None:
    """R-C10"""
    gathered = meta(META)
    assert list(gathered.links.values()) == [
        Link(
            kind="subagent",
            parent_session_id=ID,
            child_session_id=f"{ID}.a1",
            tool_call_id="t2",
            metadata={"claude-code": FACTS},
        )
    ]
    change = gathered.sessions[f"{ID}.a1"]
    assert (change.titles, change.metadata) == ({"generated": "List branches"}, {"claude-code": FACTS})


def test_a_meta_may_name_the_subagent_that_started_another() -> None:
    """2.1.330 names the parent of a subagent of a subagent."""
    gathered = meta({**META, "spawnDepth": 2, "parentAgentId": "a0"})
    (link,) = gathered.links.values()
    assert (link.parent_session_id, link.child_session_id, link.inferred) == (f"{ID}.a0", f"{ID}.a1", False)


@pytest.mark.parametrize("content", [{"agentType": "Explore"}, {**META, "spawnDepth": 2}])
def test_a_meta_without_a_call_only_infers_the_parent(content: dict[str, Any]) -> None:
    (link,) = meta(content).links.values()
    assert link.inferred


def test_a_title_sidecar_titles_its_session() -> None:
    place = source(SourceKind.SIDECAR, "custom-title.json")
    changes = fold_bytes(AGENT, place, b'{"customTitle":"my-session"}')
    assert changes.sessions[ID].titles == {"custom": "my-session"}
    assert changes.counts.events == 1


def test_the_files_of_a_workflow_are_only_kept() -> None:
    """2.1.330: the journal, the summary and the script of a run."""
    left = [
        found
        for found in sources("versions", "2.1.330-workflow")
        if found.kind is SourceKind.SIDECAR and not found.path.endswith(".meta.json")
    ]
    assert sorted(Path(found.path).name for found in left) == [
        "journal.jsonl",
        "two-wf_521c10a9-ac4.js",
        "wf_521c10a9-ac4.json",
    ]
    gathered = read(left)
    assert (gathered.sessions, gathered.messages, gathered.events, gathered.diagnostics) == ({}, {}, {}, [])
    assert gathered.counts.events == gathered.counts.total == 3


def test_a_folder_of_workflows_is_claude_codes_only_in_a_session(tmp_path: Path) -> None:
    elsewhere = tmp_path / ".github" / "workflows" / "build.json"
    elsewhere.parent.mkdir(parents=True)
    elsewhere.write_bytes(b"{}")
    assert detect(elsewhere).agent is None


@pytest.mark.parametrize("content", [b"{torn", b"[]", b"\xff", b'{"customTitle":5}'])
def test_a_broken_sidecar_is_a_diagnostic(content: bytes) -> None:
    changes = fold_bytes(AGENT, source(SourceKind.SIDECAR, "custom-title.json"), content)
    (found,) = changes.diagnostics
    assert (found.offset, found.length, found.line, found.severity) == (0, len(content), 1, "error")
    assert changes.counts.unreadable == 1


@pytest.mark.parametrize(
    ("name", "media_type"), [("b8.txt", "text/plain"), ("m.png", "image/png"), ("x", "application/octet-stream")]
)
def test_a_spilled_output_has_name_and_size(name: str, media_type: str) -> None:
    changes = fold_bytes(AGENT, source(SourceKind.SPILL, name), b"12345")
    assert changes.spills == [Spill(session_id=ID, name=name, media_type=media_type, size=5)]


def test_recorded_sidecars_meet_their_results() -> None:
    """A recorded run: the spilled output and its result name the same file."""
    sources = list(AGENT.discover([DATA / "scenarios" / "tools"]))
    gathered = gather(*(fold_bytes(AGENT, found, Path(found.path).read_bytes()) for found in sources))
    named = {result.spilled_to for call in gathered.calls() for result in call.results} - {None}
    assert named <= {spill.name for spill in gathered.spills}
    assert gathered.spills
    assert msgspec.json.encode(gathered.spills)
