"""The registry: built-in agents, and those of other packages."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.agent_cases import CASES, DATA
from turnlog.agents import GROUP, agent, agents, detect, find_sources
from turnlog.agents.base import Agent, Detection
from turnlog.agents.built_in import BUILT_IN
from turnlog.errors import TurnlogError


def install(folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, target: str) -> None:
    """A package that adds an agent, as pip would leave it."""
    package = folder / "some_agent-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: some-agent\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text(f"[{GROUP}]\n{name} = {target}\n")
    monkeypatch.setattr(sys, "path", [str(folder), *sys.path])


def names() -> list[str]:
    return [found.name for found in agents()]


def test_claude_code_is_there_also_when_nothing_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """R-C1"""
    monkeypatch.setattr(sys, "path", [])
    assert agent("claude-code").display_name == "Claude Code"
    assert "claude-code" in names()
    assert isinstance(agent("claude-code"), Agent)


def test_a_package_adds_its_agent_by_entry_point(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built_in = names()
    install(tmp_path, monkeypatch, "plain", "support.plain_agent:PlainAgent")
    assert names() == sorted([*built_in, "plain"])
    assert agent("plain").name == "plain"


def test_a_package_in_a_zip_file_adds_its_agent_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "folder").mkdir()
    install(tmp_path / "folder", monkeypatch, "plain", "support.plain_agent:PlainAgent")
    packed = shutil.make_archive(str(tmp_path / "packages"), "zip", tmp_path / "folder")
    monkeypatch.setattr(sys, "path", [packed, *(place for place in sys.path if place != str(tmp_path / "folder"))])
    assert "plain" in names()


def test_a_package_that_cannot_be_loaded_takes_nothing_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built_in = names()
    install(tmp_path, monkeypatch, "broken", "no_such_module:Agent")
    with pytest.warns(RuntimeWarning, match="broken"):
        assert names() == built_in


def test_an_unknown_name_is_reported_with_those_there_are() -> None:
    with pytest.raises(TurnlogError, match=r"no agent is named 'codecks'; there are .*claude-code"):
        agent("codecks")


def test_below_a_named_root_the_content_says_whose_a_file_is(tmp_path: Path) -> None:
    # Goose and pi would read this folder; Prime Agent, who wrote it, looks only below its own homes.
    shutil.copytree(DATA / "pi/handwritten-prime-agent", tmp_path / "saved")
    [(reader, source)] = find_sources(agents(), [tmp_path / "saved"])
    assert (reader.name, source.agent) == ("prime-agent", "prime-agent")
    assert source.root == str(tmp_path / "saved")
    assert source.session_id == "prime-agent:01a1f000-0000-7000-8000-000000000002"


def test_below_a_named_root_the_content_also_counts_where_one_agent_looks(tmp_path: Path) -> None:
    # Only pi reads this folder; oh-my-pi, who wrote it, looks only below its own homes.
    shutil.copytree(DATA / "pi/handwritten-oh-my-pi", tmp_path / "saved")
    assert {reader.name for reader, _ in find_sources(agents(), [tmp_path / "saved"])} == {"oh-my-pi"}


def test_below_a_named_root_only_the_family_of_the_reader_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A root may have thousands of logs, and to ask every agent of each takes minutes."""

    def ask(*_: object) -> Detection:
        raise AssertionError

    monkeypatch.setattr(type(agent("gemini-cli")), "detect", ask)
    assert {reader.name for reader, _ in find_sources(agents(), [DATA / "pi/handwritten-oh-my-pi"])} == {"oh-my-pi"}


def test_no_agent_is_imported_before_it_is_asked_for() -> None:
    program = "import sys, turnlog.agents; print([name for name in sys.modules if 'claude' in name])"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "[]\n"


@pytest.mark.parametrize("command", [["sync"], ["sessions"], ["sessions", "--no-sync"], ["agents", "--help"]])
def test_without_anything_to_read_no_agent_is_imported(command: list[str], home: Path) -> None:
    run(["sync"])  # The first one of a store notes which agent has blocks of usage, and asks all for it.
    assert packages_imported_by(command) == set()


def test_only_the_agent_that_may_have_something_here_is_imported(home: Path) -> None:
    run(["sync"])
    (home / ".codex").mkdir()
    assert packages_imported_by(["sync"]) == {"codex"}


def test_a_list_of_sessions_imports_nothing_that_writes(home: Path) -> None:
    run(["sync"])
    loaded = run(["sessions", "--no-sync"]).split()
    assert "turnlog.store.sqlite.lists" in loaded
    assert [name for name in loaded if name.startswith(("turnlog.store.writing", "turnlog.store.archive"))] == []


def run(command: list[str]) -> str:
    """What the modules are after a command in a process of its own."""
    script = "import sys\nfrom turnlog.cli.main import main\ntry: main()\nfinally: print(*sys.modules, file=sys.stderr)"
    return subprocess.run([sys.executable, "-c", script, *command], capture_output=True, text=True, check=True).stderr


def packages_imported_by(command: list[str]) -> set[str]:
    packages = {built_in.place.partition(":")[0] for built_in in BUILT_IN.values()}
    return {name.rpartition(".")[2] for name in run(command).split() if name.startswith("turnlog.agents.")} & packages


def test_listing_the_agents_imports_nothing_that_reads_logs() -> None:
    """Every light command lists them."""
    heavy = ("turnlog.model", "turnlog.agents.changes", "sqlite3", "json", "hashlib", "importlib.metadata")
    program = (
        "import sys, turnlog.agents; turnlog.agents.agents_with_hooks();"
        f"print([name for name in sys.modules if name in {heavy} or name.count('.') > 2 and 'turnlog.agents' in name])"
    )
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_describing_agents_and_homes_imports_no_reader(home: Path) -> None:
    program = (
        "import sys; from turnlog.agents import agents\n"
        "for each in agents(): each.home_folders(), each.roots()\n"
        "print(*sys.modules)"
    )
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert {"turnlog.agents.codex", "turnlog.agents.opencode"} <= set(loaded)
    assert [
        name
        for name in loaded
        if name in {"sqlite3", "turnlog.model"} or re.fullmatch(r"turnlog\.agents\.\w+\.(fold|database|records)", name)
    ] == []


LONG = b"x" * 200_000
FIRST_LINES = {case.name: case.first_line for case in CASES.values() if case.first_line is not None}


@pytest.mark.parametrize("name", FIRST_LINES)
@pytest.mark.parametrize("before", [b"", (b"no JSON" * 20 + b"\n") * 340], ids=["at once", "behind damage"])
def test_the_first_line_may_be_longer_than_what_is_looked_at_first(name: str, before: bytes, tmp_path: Path) -> None:
    """R-S21: an image or a long prompt may begin a log."""
    log = tmp_path / "log.jsonl"
    log.write_bytes(before + FIRST_LINES[name] % LONG + b"\n{}\n")
    assert detect(log).agent == name
