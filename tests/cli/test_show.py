import json
from pathlib import Path
from typing import Any

import click
import pytest

from support.cli_runner import Command, in_pipe, on_terminal
from support.plain_history import OTHER, SESSION, SUBAGENT
from support.plain_store import at
from turnlog.agents.commands import CommandForm
from turnlog.cli.transcript import Detail, part_lines
from turnlog.cli.transcript import transcript as transcript_lines
from turnlog.model import Membership, Message, Session, ToolCallPart, ToolKind, ToolResult, ToolState
from turnlog.model.codec import decode_event, decode_session, to_json
from turnlog.store.values import PlacedMessage

pytestmark = pytest.mark.usefixtures("store")


def transcript(run: Command, *arguments: str) -> str:
    result = run("show", SESSION, *arguments)
    assert result.exit_code == 0, result.stderr
    return result.stdout


def test_the_head_counts_failures_where_there_are_some(run: Command) -> None:
    assert "5 tool calls (1 failed), " in transcript(run)
    assert "0 tool calls, " in run("show", OTHER).stdout


def test_the_head_says_how_long_a_session_was_active(run: Command) -> None:
    (times,) = [line for line in transcript(run).splitlines() if " to " in line and "active" in line]
    assert times.endswith("09:08 (8 min 0 s in all, 8 min 0 s active)")


def test_the_head_has_the_command_that_continues_a_session(run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "resume:" not in transcript(run)

    def form_of(name: str) -> CommandForm:
        return CommandForm(program=name, resume=("--resume",))

    monkeypatch.setattr("turnlog.runs.resuming._command_form", form_of)
    assert f"resume: cd /work/webshop && plain --resume {SESSION.removeprefix('plain:')}\n" in transcript(run)
    assert "resume:" not in run("show", SUBAGENT).stdout


def test_a_transcript_has_everything_in_its_order(run: Command) -> None:
    """R-S19."""
    expected = [
        "Repair the webshop",
        SESSION,
        "/work/webshop (main)",
        "── turn 1 · ",
        "> Please repair",
        "> the webshop",
        "· harness: <system-reminder> be nice </system-reminder>",
        "step 1  large  ",
        "∴ reasoning: First thought. Then a second one.",
        "I look at it. redbell tail",
        "• Bash pytest -q  done · 300 ms",
        "• Read missing.py  failed (exit 2)",
        "  no such file: missing.py",
        "• Bash sleep 100  aborted · 30 s",
        "• Bash rm -rf /  denied",
        "  too dangerous",
        "• Task scout it  no result",
        f"  ↳ subagent: turnlog show {SUBAGENT}",
        "■ interrupted during tool",
        "── turn 2 · ",
        "> Another way [rewound]",
        "── rewound ──",
        "── context compacted · auto · 150k to 12k ──",
        "── turn 3 · ",
        "> This picture?",
        "[image: shop.png · image/png · 8 bytes]",
        "answer  secret  ",
        "∴ reasoning, withheld by the provider",
        "A shop.",
        "! overloaded",
        "· unknown record: hologram",
    ]
    lines = iter(transcript(run).splitlines())
    for beginning in expected:
        assert any(line.startswith(beginning) for line in lines), beginning


def test_reasoning_opens(run: Command) -> None:
    """R-S17."""
    lines = transcript(run, "--reasoning").splitlines()
    start = lines.index("∴ reasoning")
    assert lines[start + 1 : start + 3] == ["  First thought.", "  Then a second one."]


def test_full_shows_inputs_outputs_and_the_harness(run: Command) -> None:
    text = transcript(run, "--full")
    for part in (
        '  ◂ {\n      "command": "pytest -q"\n    }\n  ▸ all\n    green\n',
        "  ▸ no such file: missing.py\n",
        "· <system-reminder>\n· be nice\n",
        "∴ reasoning\n  First thought.\n",
        "· duration\n",
    ):
        assert part in text


def test_full_shows_an_edit_as_a_diff() -> None:
    value = {"file_path": "a.py", "old_string": "x = 1\ny = 2\n", "new_string": "x = 1\ny = 3\x1b[31m\n"}
    call = ToolCallPart(tool_call_id="c", tool_name="Edit", kind=ToolKind.EDIT, input=to_json(value))
    lines = list(part_lines(call, Detail(full=True)))
    assert [click.unstyle(line)[4:] for line in lines[1:]] == [
        "--- a.py",
        "+++ a.py",
        "@@",
        " x = 1",
        "-y = 2",
        "+y = 3",
    ]
    assert lines[6].startswith("\x1b[32m")


def test_no_word_of_a_log_reaches_a_terminal_unharmed(run: Command) -> None:
    for arguments in ([], ["--full"], ["--reasoning"]):
        assert not set(transcript(run, *arguments)) & set("\x1b\x07\x08\x9b")
    code, written = on_terminal("show", SESSION)
    assert code == 0
    assert "\x1b]0;" not in written
    assert "\x1b[31mred" not in written
    assert "\x9b" not in written


def test_json_is_the_session_and_its_events(run: Command) -> None:
    text = transcript(run, "--json")
    assert not set(text) & set("\x1b\x07\x9b")
    document = json.loads(text)
    assert decode_session(json.dumps(document["session"]).encode()).id == SESSION
    events = [decode_event(json.dumps(event).encode()) for event in document["events"]]
    kinds = [event["type"] for event in document["events"]]
    assert len(events) == len(kinds) == 13
    assert {"message", "interrupt", "rewind", "compaction", "error", "record", "run-metadata"} == set(kinds)


def test_raw_is_the_log_byte_for_byte(logs: Path) -> None:
    log = logs / f"{SESSION.partition(':')[2]}.jsonl"
    assert in_pipe("show", SESSION, "--raw").stdout == log.read_text()
    log.unlink()
    assert in_pipe("show", SESSION, "--raw").stdout.endswith("{this is no record\n")


def test_raw_on_a_terminal_is_harmless(logs: Path) -> None:
    code, written = on_terminal("show", SESSION, "--raw")
    assert code == 0
    assert "\x9b" not in written
    assert "pytest -q" in written


def test_raw_and_json_cannot_be_combined(run: Command) -> None:
    assert run("show", SESSION, "--raw", "--json").exit_code == 2


def test_around_is_wrong_use_without_a_message(run: Command) -> None:
    result = run("show", SESSION, "--around", "3")
    assert (result.exit_code, "--around needs --at MESSAGE" in result.stderr) == (2, True)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (SESSION, SESSION),
        ("3f2a91c0-1111-4111-8111-000000000001", SESSION),
        ("3f2", SESSION),
        ("plain:77", OTHER),
        (SUBAGENT, SUBAGENT),
        ("3f2a91c0-1111-4111-8111-000000000001.s", SUBAGENT),
        ("plain:3f2.sc", SUBAGENT),
        ("scou", SUBAGENT),
        ("agent-scout", SUBAGENT),
        ("plain:scout", SUBAGENT),
    ],
)
def test_a_session_is_found_by_the_beginning_of_its_id(text: str, found: str, run: Command) -> None:
    assert json.loads(run("show", text, "--json").stdout)["session"]["id"] == found


@pytest.mark.parametrize(("text", "reason"), [("", "there is no"), ("zz", "there is no"), ("plain:", "could be any")])
def test_what_is_no_session_or_several_is_not_found(text: str, reason: str, run: Command) -> None:
    result = run("show", text)
    assert (result.exit_code, result.stdout) == (3, "")
    assert reason in result.stderr


def test_a_part_of_a_session_is_shown_around_a_message(run: Command) -> None:
    whole = transcript(run).splitlines()
    part = transcript(run, "--at", "m1", "--around", "1").splitlines()
    assert part == whole[: len(part)]
    assert part[-3:-1] == ["> Please repair", "> the webshop"]
    assert len(part) < len(whole)
    assert "> Please repair" not in transcript(run, "--at", "m6", "--around", "1")
    assert transcript(run, "--at", "m1", "--around", "99").splitlines() == whole


def test_the_message_that_a_search_found_is_shown_in_full(run: Command) -> None:
    """Any word of it may be what was found, and the lines of a summary have few of them."""
    full, short = transcript(run, "--full").splitlines(), transcript(run).splitlines()
    shown = transcript(run, "--at", "m2", "--around", "1").splitlines()
    more = [line for line in shown if line not in short]
    assert len(more) > 3
    assert set(more) <= set(full)


def test_ids_in_upper_case_are_found(run: Command) -> None:
    assert run("show", "PLAIN:3F2A").stdout == run("show", "plain:3f2a").stdout != ""
    part = run("show", "3f2a", "--at", "m2").stdout
    assert run("show", "3F2A", "--at", "M2").stdout == part != ""


def test_a_message_that_a_session_does_not_have_is_not_shown(run: Command) -> None:
    result = run("show", SESSION, "--at", "nothing")
    assert (result.exit_code, result.stdout) == (3, "")
    assert "no message of " in result.stderr
    assert run("show", SESSION, "--at", "m1", "--json").exit_code == 2


def test_an_ambiguous_id_names_the_candidates(run: Command) -> None:
    assert f"  {OTHER}  Write a post\n" in run("show", "plain:").stderr


def test_a_terminal_pages_in_colour(tmp_path: Path) -> None:
    pager = tmp_path / "less"
    pager.write_text("#!/bin/sh\necho paged\ncat\n")
    pager.chmod(0o755)
    code, written = on_terminal("show", SESSION, PAGER=str(pager))
    assert code == 0
    assert written.startswith("paged")
    assert "\x1b[1mRepair the webshop" in written
    assert "paged" not in on_terminal("show", SESSION, "--no-pager", PAGER=str(pager))[1]


def test_a_pipe_gets_no_colour_and_no_pager() -> None:
    result = in_pipe("show", SESSION, PAGER="false")
    assert result.returncode == 0
    assert "\x1b" not in result.stdout


def shown(part: ToolCallPart) -> str:
    message = Message(id="m", role="assistant", parts=(part,))
    placed = PlacedMessage(message, Membership(session_id="s", message_id="m", position=0))
    lines = transcript_lines(Session(id="a:s", agent="a", external_id="s"), [placed], [], Detail())
    return click.unstyle("\n".join(lines))


@pytest.mark.parametrize("state", ToolState)
def test_every_state_of_a_call_has_its_word(state: ToolState) -> None:
    assert "• Tool" in shown(ToolCallPart(tool_call_id="c", tool_name="Tool", state=state))


def test_a_call_that_ends_before_it_began_took_no_time() -> None:
    """R-C9."""
    result = ToolResult(id="c.0", completed_at=at(0))
    part = ToolCallPart(
        tool_call_id="c", tool_name="Tool", state=ToolState.OUTPUT_AVAILABLE, started_at=at(1), results=(result,)
    )
    assert "done · 0 ms" in shown(part)


@pytest.mark.parametrize(
    ("input", "about"),
    [
        ({"description": "why", "command": "ls  -la\n/tmp"}, "• Tool ls -la /tmp "),
        ({"a": 1}, '• Tool {"a":1} '),
        ([1, 2], "• Tool [1,2] "),
        ({"command": ["ls", "-la"]}, "• Tool ls -la "),
        ({"command": ["bash", "-lc", "ls | wc"]}, "• Tool ls | wc "),
        ({"command": "x" * 300}, f"• Tool {'x' * 99}… (300 characters) "),
    ],
)
def test_a_call_says_in_one_line_what_it_is_about(input: Any, about: str) -> None:
    assert about in shown(ToolCallPart(tool_call_id="c", tool_name="Tool", input=to_json(input)))
