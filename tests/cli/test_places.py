"""`db path`, `agents` and `doctor`: what is where, and in which state."""

import json
import os
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from support.cli_runner import Command, in_pipe, on_terminal
from support.environment import names_place
from support.opencode_files import recorded, write_database
from support.plain_agent import PlainAgent
from support.plain_history import SESSION
from turnlog import __version__, paths
from turnlog.agents import agents

DOCS = Path(__file__).parents[2] / "docs"
MANUAL = (DOCS / "reference/cli.md").read_text(encoding="utf-8")
FORMATS = DOCS / "formats"
RETENTION = "Claude Code deletes sessions that were not used for {} days"


def is_log(path: Path) -> bool:
    """What the plain agent takes for a log while this replaces `Path.is_file`, links that lead nowhere too."""
    return path.suffix == ".jsonl"


@pytest.fixture
def claude_home(home: Path) -> Path:
    """A home of Claude Code with one log that nobody has read."""
    project = home / ".claude/projects/-work"
    project.mkdir(parents=True)
    (project / "bbbbbbbb-0000-4000-8000-000000000001.jsonl").write_text("{}\n")
    return home / ".claude"


def test_the_path_of_the_store_is_printed_whether_it_exists_or_not(run: Command) -> None:
    assert run("db", "path").stdout == f"{paths.database_path()}\n"
    assert json.loads(run("db", "path", "--json").stdout) == {"path": str(paths.database_path()), "exists": False}


def test_the_store_follows_the_environment(tmp_path: Path) -> None:
    assert in_pipe("db", "path", TURNLOG_DATA_DIR=str(tmp_path)).stdout == f"{tmp_path / 'turnlog.db'}\n"


def test_every_variable_that_is_read_is_documented_and_unset_in_tests() -> None:
    package = Path(paths.__file__).parent
    sources = [package / "paths.py", package / "agents/built_in.py", *package.glob("agents/*/__init__.py")]
    pattern = re.compile(r"""(?:get\(|_named_by\(|variable=)"([A-Z_]+)\"""")
    read = {name for source in sources for name in pattern.findall(source.read_text(encoding="utf-8"))}
    documented = MANUAL + "".join(page.read_text(encoding="utf-8") for page in FORMATS.glob("*.md"))
    assert {name for name in read if f"`{name}`" not in documented} == set()
    assert "CODEX_HOME" in read
    assert [name for name in read - {"PATH", "PATHEXT", "TERM", "NO_COLOR", "TZ"} if not names_place(name)] == []


@pytest.mark.usefixtures("store", "plain_agent")
def test_agents_are_listed_with_their_homes_and_sessions(run: Command, logs: Path) -> None:
    [item] = json.loads(run("agents", "--json").stdout)["items"]
    assert (item["agent"], item["display_name"], item["roots"]) == ("plain", "Plain", [str(logs)])
    assert (item["sources"], item["sessions"], item["subagents"]) == (3, 2, 1)
    assert str(logs) in run("agents").stdout


@pytest.mark.usefixtures("store")
def test_agents_that_only_the_store_knows_are_listed_too(run: Command) -> None:
    items = {item["agent"]: item for item in json.loads(run("agents", "--json").stdout)["items"]}
    assert items["plain"]["display_name"] is None
    assert items["claude-code"]["sessions"] == 0


def test_without_a_store_agents_are_listed_with_the_places_of_their_logs(run: Command, home: Path) -> None:
    lines = run("agents").stdout.splitlines()
    assert any(f"none at {home / '.codex'}" in line for line in lines)
    assert max(map(len, lines)) < 250


def test_an_agent_that_logs_into_projects_is_looked_for_there(run: Command, home: Path) -> None:
    """R-S41: nothing is in `~/.aider` unless somebody puts it there."""
    (line,) = [line for line in run("agents").stdout.splitlines() if line.startswith("aider ")]
    assert line.endswith("in your projects: name their folders in TURNLOG_AIDER_DIR")
    (home / ".aider").mkdir()
    (home / ".aider" / ".aider.chat.history.md").write_text(
        "\n# aider chat started at 2026-11-21 10:00:00\n\n#### Hi\n"
    )
    (line,) = [line for line in run("agents").stdout.splitlines() if line.startswith("aider ")]
    assert line.endswith(str(home / ".aider"))


def test_on_a_terminal_an_agent_that_is_not_here_has_one_place(home: Path) -> None:
    """Editors have dozens of places, of every system."""
    code, written = on_terminal("agents", columns=100)
    assert code == 0
    assert re.search(r"\+\d+ more", written)
    assert max(map(len, written.splitlines())) <= 400


@pytest.mark.usefixtures("store", "plain_agent")
def test_doctor_says_what_could_not_be_read_and_where(run: Command, logs: Path) -> None:
    """R-S34."""
    result = run("doctor", "--json")
    assert result.exit_code == 6
    document = json.loads(result.stdout)
    [found] = document["diagnostics"]
    assert (found["path"], found["severity"]) == (str(logs / f"{SESSION.partition(':')[2]}.jsonl"), "error")
    assert found["offset"] > 0
    assert document["unknown_kinds"] == [{"agent": "plain", "kind": "hologram", "count": 1}]
    assert document["versions"]["turnlog"] == __version__
    assert (document["store"]["sessions"], document["store"]["subagents"]) == (2, 1)
    assert document["agents"][0]["roots"] == [{"path": str(logs), "sources": 3, "pending": 0, "retention_days": None}]
    text = run("doctor").stdout
    assert f"  {found['reason']}\n    {found['path']} at byte {found['offset']}\n" in text
    assert "plain: hologram (1)" in text


@pytest.mark.usefixtures("store")
def test_doctor_lists_as_much_as_requested(run: Command, logs: Path, plain_agent: PlainAgent) -> None:
    document = json.loads(run("doctor", "--limit", "0", "--json").stdout)
    assert (document["diagnostics"], document["diagnostics_total"]) == ([], 1)


@pytest.mark.usefixtures("store")
def test_doctor_sees_files_that_were_not_read_yet_or_cannot_be(
    run: Command, logs: Path, plain_agent: PlainAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    (logs / "new.jsonl").write_text("")
    loop = logs / "loop.jsonl"
    loop.symlink_to(loop.name)
    monkeypatch.setattr(Path, "is_file", is_log)
    document = json.loads(run("doctor", "--json").stdout)
    assert document["agents"][0]["roots"][0] == {
        "path": str(logs),
        "sources": 5,
        "pending": 2,
        "retention_days": None,
    }
    assert [found["reason"] for found in document["diagnostics"] if found["path"] == str(loop)] == [os.strerror(40)]


def test_doctor_says_when_there_is_no_store(run: Command, home: Path) -> None:
    result = run("doctor")
    assert result.exit_code == 0
    assert "There is no store yet: `turnlog sync` creates it." in result.stdout
    assert list(home.rglob("*.db")) == []


@pytest.mark.parametrize(
    ("settings", "days"),
    [(None, 30), ('{"cleanupPeriodDays": 90}', 90), ("{broken", 30), ('{"cleanupPeriodDays": "x"}', 30), ("[]", 30)],
)
def test_doctor_warns_of_logs_that_the_agent_will_delete(
    settings: str | None, days: int, run: Command, claude_home: Path
) -> None:
    if settings is not None:
        (claude_home / "settings.json").write_text(settings)
    document = json.loads(run("doctor", "--json").stdout)
    [claude] = [agent for agent in document["agents"] if agent["agent"] == "claude-code"]
    assert claude["roots"][0]["retention_days"] == days
    [warning] = [warning for warning in document["warnings"] if RETENTION.format(days) in warning]
    assert warning.endswith("1 file may go unread; run `turnlog sync` now.")


def test_a_recent_sync_turns_the_warning_into_advice(run: Command, claude_home: Path) -> None:
    assert in_pipe("sync").returncode == 0
    [warning] = json.loads(run("doctor", "--json").stdout)["warnings"]
    assert warning.endswith("run `turnlog sync` more often than that.")
    synced = json.loads(run("doctor", "--json").stdout)["store"]["last_sync_at"]
    assert datetime.now(UTC) - datetime.fromisoformat(synced) < timedelta(minutes=5)


def test_doctor_knows_that_sessions_in_a_database_are_no_files(run: Command, home: Path) -> None:
    """Neither unreadable nor unread: what a sync has seen of them is what it goes by."""
    database = home / ".local/share/opencode/opencode.db"
    write_database(recorded("1.18.33", "basic-chat"), database)

    def opencode() -> tuple[list[object], dict[str, object]]:
        document = json.loads(run("doctor", "--json").stdout)
        [found] = [agent for agent in document["agents"] if agent["agent"] == "opencode"]
        return document["diagnostics"], found["roots"][0]

    diagnostics, root = opencode()
    assert (diagnostics, root["sources"], root["pending"]) == ([], 3, 3)
    assert in_pipe("sync").returncode == 0
    diagnostics, root = opencode()
    assert (diagnostics, root["sources"], root["pending"]) == ([], 3, 0)
    database.write_bytes(b"SQLite format 3\0 and then nothing of the kind")
    diagnostics, root = opencode()
    assert [found["path"] for found in diagnostics if isinstance(found, dict)] == [str(database)]
    assert root["pending"] == 1


def test_doctor_names_folders_that_it_cannot_look_into(run: Command, home: Path) -> None:
    projects = home / ".claude/projects"
    projects.parent.mkdir()
    projects.symlink_to("projects")
    result = run("doctor", "--json")
    assert result.exit_code == 6
    [found] = json.loads(result.stdout)["diagnostics"]
    assert (found["path"], found["reason"]) == (str(home / ".claude"), os.strerror(40))


def test_agents_that_are_not_there_take_one_line(run: Command, home: Path) -> None:
    (home / ".claude" / "projects").mkdir(parents=True)
    lines = run("doctor").stdout.splitlines()
    assert "Claude Code (claude-code)" in lines
    others = ", ".join(found.display_name for found in agents() if found.name != "claude-code")
    assert f"Not found on this machine: {others}" in lines


def test_like_problems_are_listed_under_their_reason(run: Command, home: Path) -> None:
    project = home / ".claude" / "projects" / "p"
    project.mkdir(parents=True)
    (project / "00000000-0000-4000-8000-000000000001.jsonl").write_text("{]\n" * 5)
    run("sync")
    lines = run("doctor").stdout.splitlines()
    place = lines.index("Not understood")
    assert lines[place + 1].endswith(" (5 times)")
    assert lines[place + 2].endswith("/p/00000000-0000-4000-8000-000000000001.jsonl:1")
    assert lines[place + 5] == "    … 2 more; --json lists them"
