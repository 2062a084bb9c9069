"""The line that Claude Code shows below its prompt."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from datetime import UTC, datetime, tzinfo
from pathlib import Path

import pytest

from support.cli_runner import Command
from support.plain_agent import Log
from support.plain_store import read_home
from turnlog import paths
from turnlog.cli import status_text
from turnlog.model import Message, Usage
from turnlog.store import open_store

GIVEN = {
    "hook_event_name": "Status",
    "session_id": "abc",
    "model": {"id": "claude-opus", "display_name": "Opus"},
    "cost": {"total_cost_usd": 1.234, "total_duration_ms": 45000},
    "context_window": {"used_percentage": 41.6},
}


def line(run: Command, given: object) -> str:
    result = run("statusline", input=json.dumps(given))
    assert result.exit_code == 0, result.stderr
    return result.stdout.removesuffix("\n")


@pytest.mark.usefixtures("home")
def test_without_a_store_it_says_what_claude_code_says(run: Command) -> None:
    assert line(run, GIVEN) == "Opus · $1.23 session · 42 % context"
    assert not paths.database_path().exists()


@pytest.mark.parametrize(
    "given",
    [{}, [], None, {"model": "x", "cost": 3}, {"cost": {"total_cost_usd": True}}, {"model": {"display_name": 1}}],
)
@pytest.mark.usefixtures("home")
def test_a_field_that_is_missing_or_odd_is_left_out(given: object, run: Command) -> None:
    assert line(run, given) == ""


@pytest.mark.usefixtures("home")
def test_a_number_that_cannot_be_money_is_left_out(run: Command) -> None:
    for number in ("NaN", "Infinity", "1e400"):
        result = run("statusline", input=f'{{"cost": {{"total_cost_usd": {number}}}}}')
        assert (result.exit_code, result.stdout) == (0, "\n")


@pytest.mark.usefixtures("home")
def test_a_long_name_is_cut_and_a_negative_number_left_out(run: Command) -> None:
    given = {"model": {"display_name": "Opus " * 20}, "cost": {"total_cost_usd": -0.5}}
    assert line(run, given) == "Opus Opus Opus Opus Opus Opus Opus Opus…"
    assert line(run, {"context_window": {"used_percentage": -4}}) == ""


@pytest.mark.usefixtures("home")
def test_no_control_sequence_reaches_the_terminal(run: Command) -> None:
    assert "\x1b" not in line(run, {"model": {"display_name": "Opus\x1b[31m\n"}})


@pytest.mark.parametrize("text", ["", "{", "\xff"])
@pytest.mark.usefixtures("home")
def test_what_is_no_json_is_an_error(text: str, run: Command) -> None:
    result = run("statusline", input=text)
    assert result.exit_code == 1
    assert "standard input" in result.stderr


def test_what_today_cost_is_added_from_the_store(home: Path, run: Command) -> None:
    folder = home / "now"
    folder.mkdir()
    log = Log(folder, "now")
    now = datetime.now(UTC)
    log.message(Message(id="a", role="assistant", model="large", created_at=now, usage=Usage(input=60, output=40)))
    read_home(paths.database_path(), folder)
    assert line(run, GIVEN) == "Opus · $1.23 session · 42 % context · $0.10 today"


class NoonOfSummerTime(datetime):
    """The clock on a day on which clocks were put forward, after that."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> datetime:
        return datetime(2026, 3, 29, 10, tzinfo=UTC).astimezone(tz)


def test_today_begins_at_midnight_also_where_clocks_were_changed_since(
    home: Path, run: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(status_text, "datetime", NoonOfSummerTime)
    folder = home / "now"
    folder.mkdir()
    log = Log(folder, "now")
    yesterday = datetime(2026, 3, 28, 22, 30, tzinfo=UTC)
    log.message(Message(id="a", role="assistant", model="large", created_at=yesterday, usage=Usage(input=60)))
    read_home(paths.database_path(), folder)
    with monkeypatch.context() as berlin:
        berlin.setenv("TZ", "Europe/Berlin")
        time.tzset()
        assert line(run, {}) == "$0 today"
    time.tzset()


@pytest.mark.usefixtures("store")
def test_a_store_that_cannot_be_used_is_left_out(run: Command) -> None:
    paths.database_path().write_bytes(b"no database" * 100)
    assert line(run, GIVEN) == "Opus · $1.23 session · 42 % context"


def test_the_running_block_is_that_of_claude_code(home: Path, run: Command) -> None:
    folder = home / ".claude" / "projects" / "-work"
    folder.mkdir(parents=True)
    message = {
        "id": "msg_1",
        "role": "assistant",
        "model": "claude-opus-4-5-20251101",
        "content": [{"type": "text", "text": "Hi"}],
        "usage": {"input_tokens": 1_000_000, "output_tokens": 0},
    }
    record = {
        "type": "assistant",
        "uuid": "u1",
        "sessionId": "s1",
        "requestId": "r1",
        "timestamp": datetime.now(UTC).isoformat(),
        "message": message,
    }
    (folder / "s1.jsonl").write_text(json.dumps(record) + "\n")
    assert run("sync").exit_code == 0
    assert re.search(r" · \$5\.00 today · \$5\.00 block, 4 h \d+ min left", line(run, GIVEN))


def started(script: str, given: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", script, "statusline"],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        check=False,
    )


TOO_SLOW = ("click", "dataclasses", "msgspec", "platformdirs", "turnlog.store.base", "turnlog.store.usage_report")
"""What most other commands import; each takes several milliseconds."""

RUN = "from turnlog.__main__ import main; main()"


@pytest.mark.usefixtures("home")
def test_without_options_it_imports_little(run: Command) -> None:
    """It has 60 ms over bare Python, and each module that it imports takes about half of one."""
    assert run("sync").exit_code == 0
    absent = f"import sys; sys.modules.update({dict.fromkeys(TOO_SLOW)})"
    counted = "print(len([name for name, module in sys.modules.items() if module]))"
    found = started(f"{absent}; {RUN}; {counted}", GIVEN).stdout.splitlines()
    assert found[0] == line(run, GIVEN)
    assert int(found[1]) < 125


@pytest.mark.usefixtures("home")
def test_what_is_in_the_way_is_reported_as_by_every_command() -> None:
    for given in ("", "no JSON", "[" * 5000):
        result = subprocess.run(
            [sys.executable, "-m", "turnlog", "statusline"], input=given, capture_output=True, text=True, check=False
        )
        assert (result.returncode, result.stdout) == (1, "")
        assert result.stderr.startswith("turnlog: standard input is not the JSON")


@pytest.mark.usefixtures("home")
def test_a_sync_notes_whose_usage_has_blocks(run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run("sync").exit_code == 0
    with monkeypatch.context() as patched, open_store(paths.database_path()) as store:
        patched.setattr("turnlog.agents.agents", pytest.fail)
        assert store.usage("block").rows == ()
