"""`turnlog replay`: what is shown, when, and how it ends."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess

import pytest

from support.cli_runner import Command, command, heed_signals, in_pipe, on_terminal
from support.plain_history import SESSION
from support.replay_values import answer, at, call, image, result, user
from turnlog.cli import replay as replay_command
from turnlog.cli.main import INTERRUPTED
from turnlog.cli.replay_lines import lines_of
from turnlog.replay import LONGEST_PAUSE, ErrorShown, ReplayEvent, ToolResultShown, replay

pytestmark = pytest.mark.usefixtures("store")


def shown(run: Command, *arguments: str) -> str:
    outcome = run("replay", SESSION, *arguments)
    assert outcome.exit_code == 0, outcome.stderr
    return outcome.stdout


def test_a_session_is_shown_in_its_order(run: Command) -> None:
    """R-S19, R-K12 to R-K19"""
    expected = [
        "> Please repair",
        "> the webshop",
        "· harness: <system-reminder> be nice </system-reminder>",
        "── turn 1 · step 1 · ",
        "∴ reasoning: First thought. Then a second one.",
        "I look at it.",
        "• Bash pytest -q",
        "  Read failed (exit 2): ",
        "■ interrupted",
        "> Another way",
        "── rewound ──",
        "── context compacted · auto ──",
        "> This picture?",
        "[image/png shop.png]",
        "! overloaded",
    ]
    text, place = shown(run), 0
    for line in expected:
        found = text.find(line, place)
        assert found >= 0, f"{line!r} is not behind what was expected before it in:\n{text}"
        place = found


def test_full_cuts_nothing_off(run: Command) -> None:
    text = shown(run, "--full")
    assert "  ◂ {" in text
    assert "  ▸ " in text
    assert len(text) > len(shown(run))


def test_the_models_view_is_shorter(run: Command) -> None:
    text = shown(run, "--view", "model")
    assert "> This picture?" in text
    assert "> Another way" not in text


def test_json_holds_every_event(run: Command) -> None:
    document = json.loads(shown(run, "--json"))
    assert document["session"]["id"] == SESSION
    kinds = [event["type"] for event in document["events"]]
    assert kinds[:3] == ["user", "developer", "turn-start"]
    assert {"assistant", "tool-call", "tool-result", "interrupt", "error", "compaction", "rewind"} <= set(kinds)


WRONG = ["--speed 0", "--speed -1", "--speed nan", "--max-pause -1", "--max-pause nan", "--max-pause inf", "--view no"]


@pytest.mark.parametrize("arguments", WRONG)
def test_what_makes_no_sense_is_wrong_use(run: Command, arguments: str) -> None:
    assert run("replay", SESSION, *arguments.split()).exit_code == 2


def test_the_pause_is_the_librarys() -> None:
    assert replay_command.LONGEST_PAUSE == LONGEST_PAUSE


def test_only_a_terminal_is_kept_waiting(run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []
    monkeypatch.setattr(replay_command.time, "sleep", waited.append)
    shown(run)
    assert waited == []
    monkeypatch.setattr(replay_command, "is_terminal", lambda: True)
    shown(run, "--max-pause", "2")
    normal = list(waited)
    assert normal
    assert max(normal) == 2
    waited.clear()
    shown(run, "--max-pause", "2", "--speed", "1000")
    assert sum(waited) < sum(normal)


def test_a_pipe_has_no_colour_and_no_pauses() -> None:
    process = in_pipe("replay", SESSION, "--max-pause", "3600", "--speed", "0.001")
    assert process.returncode == 0
    assert "\x1b" not in process.stdout
    assert "■ interrupted" in process.stdout


def test_a_terminal_has_colour() -> None:
    code, text = on_terminal("replay", SESSION, "--max-pause", "0")
    assert code == 0
    assert "\x1b[" in text


def test_ctrl_c_ends_it_in_one_line() -> None:
    controller, terminal = pty.openpty()
    slow = command("replay", SESSION, "--speed", "0.000001", "--max-pause", "3600")
    with subprocess.Popen(
        slow, stdin=terminal, stdout=terminal, stderr=subprocess.PIPE, text=True, preexec_fn=heed_signals
    ) as process:
        os.close(terminal)
        written = b""
        while b"the webshop" not in written:
            written += os.read(controller, 65536)
        printed = interrupted(process)
        os.close(controller)
    assert (process.returncode, printed) == (INTERRUPTED, "turnlog: interrupted\n")


def interrupted(process: subprocess.Popen[str]) -> str:
    """What it says when it is interrupted; as often as somebody at a terminal would try."""
    for _ in range(20):
        process.send_signal(signal.SIGINT)
        try:
            return process.communicate(timeout=3)[1]
        except subprocess.TimeoutExpired:
            continue
    process.kill()
    return f"not interrupted: {process.communicate()[1]}"


HOSTILE = "a\x1b]0;title\x07b\x1b[2Jc\x9b31md\re\x00f"


OWN_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


@pytest.mark.parametrize("full", [False, True])
def test_nothing_of_a_log_reaches_the_terminal_as_a_command(full: bool) -> None:
    events: list[ReplayEvent] = [
        *replay([user(HOSTILE, image(HOSTILE)), answer(HOSTILE, call("c", HOSTILE)), result("c", error_text=HOSTILE)]),
        ErrorShown(error_text=HOSTILE, created_at=at(0)),
        ToolResultShown(tool_call_id="c", tool_name=HOSTILE, result=HOSTILE, status="error", outcome="denied"),
    ]
    lines = [OWN_COLOURS.sub("", line) for event in events for line in lines_of(event, full=full)]
    assert sum("abcd" in line for line in lines) >= 6
    assert [line for line in lines if "title" in line or not line.isprintable()] == []
