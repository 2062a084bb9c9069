"""What no recorded run shows: rewinds, records of the program, refused calls, other ways to count tokens, damage."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec import Raw

from support.claude_files import gather
from support.qwen_files import (
    AGENT,
    SESSION,
    SESSION_ID,
    answer,
    call,
    calls_of,
    fold,
    lines,
    log_source,
    record,
    result,
    user,
)
from turnlog.agents import agent
from turnlog.agents.base import Source
from turnlog.agents.commands import resume_command
from turnlog.agents.gemini_cli.records import FunctionResult
from turnlog.agents.qwen_code.results import make_result
from turnlog.model import Fate, Origin, ReasoningPart, RewindEvent, TextPart
from turnlog.store import open_store
from turnlog.sync.syncer import sync

REWOUND = (
    user("u1", None, "First"),
    answer("a1", "u1", "One"),
    record("system/slash_command", "s1", "a1", systemPayload={"phase": "invocation", "rawCommand": "/rewind"}),
    user("u2", "s1", "Second"),
    answer("a2", "u2", "Two"),
    record("system/rewind", "r1", "s1", systemPayload={"truncatedCount": 2}),
    user("u3", "r1", "Third"),
    answer("a3", "u3", "Three"),
)
"""As `rewindRecording` of 0.24.4 writes it: the rewind's parent is the record before the prompt."""


def home_with(folder: Path, *records: Any) -> Path:
    log = folder / ".qwen" / "projects" / "-home-dev-work" / "chats" / f"{SESSION}.jsonl"
    log.parent.mkdir(parents=True)
    log.write_bytes(lines(*records))
    return folder / ".qwen"


@pytest.mark.parametrize("cut", range(len(REWOUND) + 1))
def test_a_rewind_takes_what_followed_out_of_the_conversation(cut: int, tmp_path: Path) -> None:
    """However the log is split."""
    home = home_with(tmp_path, *REWOUND[:cut])
    sync(tmp_path / "store.db", roots=[home], agents=[AGENT])
    [log] = home.rglob("*.jsonl")
    log.write_bytes(lines(*REWOUND))
    sync(tmp_path / "store.db", roots=[home], agents=[AGENT])
    with open_store(tmp_path / "store.db") as store:
        fates = {placed.message.id: placed.membership.fate for placed in store.messages(SESSION_ID)}
        parents = {placed.message.id: placed.membership.parent_id for placed in store.messages(SESSION_ID)}
        [event] = [event for event in store.events(SESSION_ID) if isinstance(event, RewindEvent)]
    assert event.to_message_id == "a1"
    assert parents["u3"] == "a1"
    assert [fates[name] for name in ("u1", "a1", "u2", "a2", "u3", "a3")] == [
        *(Fate.ACTIVE, Fate.ACTIVE, Fate.REWOUND, Fate.REWOUND, Fate.ACTIVE, Fate.ACTIVE),
    ]


def test_a_rewind_to_the_beginning_leaves_nothing_before_it(tmp_path: Path) -> None:
    home = home_with(
        tmp_path,
        user("u1", None, "First"),
        answer("a1", "u1", "One"),
        record("system/rewind", "r1", None, systemPayload={"truncatedCount": 2}),
        user("u2", "r1", "Second"),
    )
    sync(tmp_path / "store.db", roots=[home], agents=[AGENT])
    with open_store(tmp_path / "store.db") as store:
        fates = [placed.membership.fate for placed in store.messages(SESSION_ID)]
    assert fates == [Fate.REWOUND, Fate.REWOUND, Fate.ACTIVE]


def test_only_a_persons_words_begin_a_turn() -> None:
    found = fold(
        user("n", None, "A task has ended", subtype="notification", provenance="system"),
        user("p", "n", "Go on", provenance="real_user"),
        user("s", "p", "Reminder", provenance="system"),
        user("m", "s", "And this", subtype="mid_turn_user_message"),
        user("x", "m", "New", subtype="of_tomorrow"),
    )
    assert {name: message.origin for name, message in found.messages.items()} == {
        "n": Origin.NOTIFICATION,
        "p": Origin.PROMPT,
        "s": Origin.HARNESS,
        "m": Origin.PROMPT,
        "x": Origin.HARNESS,
    }
    turns = [found.placements[SESSION_ID, name].turn for name in ("n", "p", "s", "m", "x")]
    assert turns == [None, 1, 1, 2, 2]


@pytest.mark.parametrize(
    ("response", "status", "expected"),
    [
        ({"output": "done"}, "success", "success"),
        ({"error": "no"}, "error", "error"),
        ({"error": "no"}, None, "error"),
        ({"error": "[Operation Cancelled] Reason: User did not allow tool call"}, "cancelled", "denied"),
        ({"error": "[Operation Cancelled] Reason: User cancelled tool execution."}, "cancelled", "aborted"),
        ({"output": "User did not allow tool call"}, "success", "success"),
    ],
)
def test_aborted_is_not_failed_is_not_denied(response: dict[str, str], status: str | None, expected: str) -> None:
    facts = {"toolCallResult": {"callId": "c", "status": status}} if status else {}
    found = fold(
        user("u", None, "Go"),
        answer("a", "u", call("c", command="ls")),
        result("r", "a", "c", response=response, **facts),
    )
    [made] = calls_of(found.messages["a"])
    assert [result.status for result in made.results] == [expected]


@pytest.mark.parametrize(
    ("tokens", "expected"),
    [
        # Like OpenAI: thoughts are part of the output.
        ((100, 30, 10, 130, 20), (80, 20, 20, 10)),
        # Like Gemini: the total is larger than prompt and output.
        ((100, 30, 10, 140, 20), (80, 20, 30, 10)),
        # Nobody counted the thoughts.
        ((100, 30, 0, 130, 0), (100, 0, 30, None)),
        ((100, 30, 10, None, 200), (0, 200, 20, 10)),
    ],
)
def test_tokens_of_any_provider_are_disjoint(tokens: tuple[int | None, ...], expected: tuple[int | None, ...]) -> None:
    """R-C5"""
    names = (
        "promptTokenCount",
        "candidatesTokenCount",
        "thoughtsTokenCount",
        "totalTokenCount",
        "cachedContentTokenCount",
    )
    found = fold(
        answer("a", None, {"text": "Hm", "thought": True}, "Yes", usageMetadata=dict(zip(names, tokens, strict=True)))
    )
    usage = found.messages["a"].usage
    assert usage is not None
    assert (usage.input, usage.cache_read, usage.output, usage.reasoning) == expected
    assert isinstance(found.messages["a"].parts[0], ReasoningPart)


def test_a_reminder_before_a_prompt_was_not_typed() -> None:
    """0.24.4 puts it there when it goes on with a session that has subagents."""
    reminder = "<system-reminder>\n2 background agents were restored.\n</system-reminder>\n\n"
    message = {"role": "user", "parts": [{"text": reminder}, {"text": "And now?"}]}
    found = fold(record("user", "1", None, message=message), user("2", "1", reminder))
    first, second = found.messages.values()
    typed = [[isinstance(part, TextPart) and part.is_synthetic for part in each.parts] for each in (first, second)]
    assert typed == [[True, False], [False]]
    assert [session.titles["prompt"] for session in found.sessions.values()] == ["And now?"]


def test_what_was_not_counted_is_unknown() -> None:
    zeros = {"promptTokenCount": 0, "candidatesTokenCount": 0, "totalTokenCount": 0}
    assert fold(answer("a", None, "Yes", usageMetadata=zeros)).messages["a"].usage is None
    assert fold(answer("a", None, "Yes")).messages["a"].usage is None


def test_fields_of_tomorrow_stay_with_messages_and_results() -> None:
    """R-C11"""
    news = {"of_tomorrow": [1, 2]}
    found = fold(
        user("u", None, "Go", **news), answer("a", "u", call("c", command="ls"), **news), result("r", "a", "c", **news)
    )
    kept = {"qwen-code": {"other_fields": news}}
    assert [found.messages[name].metadata for name in ("u", "a")] == [kept, kept]
    assert calls_of(found.messages["a"])[0].results[0].metadata == kept


def test_a_torn_line_changes_nothing_else() -> None:
    whole = lines(user("u", None, "Go"), answer("a", "u", "Yes"), user("u2", "a", "More"))
    first, second, third = whole.splitlines(keepends=True)
    found = gather(agent("qwen-code").fold(log_source()).feed(first + second[:60] + b"\n" + third, 0))
    assert list(found.messages) == ["u", "u2"]
    assert [diagnostic.line for diagnostic in found.diagnostics] == [2]
    assert found.counts.total == 3


@pytest.mark.parametrize(
    ("end", "complete"),
    [(None, ["u", "a"]), ("]\n}", ["u", "a"]), ('"functionResponse"', ["u"]), ('"Go"', [])],
)
def test_a_file_of_json_that_was_cut_off_has_its_complete_messages(end: str | None, complete: list[str]) -> None:
    path = "/home/dev/.qwen/tmp/0/chats/session-2026-11-23T20-45-4eb3c138.json"
    source = Source(agent="qwen-code", path=path, root="/home/dev/.qwen", appendable=False)
    log = {
        **{"sessionId": SESSION, "projectHash": "0", "startTime": "2026-11-23T20:45:58.071Z"},
        "messages": [
            {"id": "u", "timestamp": "2026-11-23T20:45:58.071Z", "type": "user", "content": "Go"},
            {
                **{"id": "a", "timestamp": "2026-11-23T20:45:59.071Z", "type": "qwen", "content": "Yes"},
                "toolCalls": [
                    {
                        **{"id": "c", "name": "run_shell_command", "args": {"command": "false"}, "status": "success"},
                        "result": [{"functionResponse": {"id": "c", "response": {"output": "Exit Code: 1"}}}],
                        "timestamp": "2026-11-23T20:46:00.071Z",
                    }
                ],
            },
        ],
    }
    data = json.dumps(log, indent=2)
    found = gather(agent("qwen-code").fold(source).feed(data[: data.rfind(end) if end else None].encode(), 0))
    assert list(found.messages) == complete
    assert (found.diagnostics == []) == (end is None)
    if "a" in found.messages:
        [made] = calls_of(found.messages["a"])
        assert (made.results[0].exit_code, made.state) == (1, "output-available")


def test_answers_after_damage_in_a_file_of_json_are_found() -> None:
    """R-S34"""
    source = Source(
        agent="qwen-code", path="/home/dev/.qwen/tmp/0/chats/s.json", root="/home/dev/.qwen", appendable=False
    )
    data = """{"sessionId": "s", "messages": [
        {"id": "u", "timestamp": "2026-11-23T20:45:58.071Z", "type": us, "content": "Go"},
        {"id": "a", "timestamp": "2026-11-23T20:45:59.071Z", "type": "qwen", "content": "Yes"}]}"""
    assert list(gather(agent("qwen-code").fold(source).feed(data.encode(), 0)).messages) == ["a"]


def test_a_subagent_is_resumed_as_the_session_that_started_it() -> None:
    form = AGENT.command
    assert form is not None
    assert resume_command(form, f"{SESSION}.general-purpose-call_1") == ["qwen", "--resume", SESSION]


def test_homes_are_where_the_variables_point(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """R-C2"""
    assert list(AGENT.home_folders()) == [home / ".qwen"]
    monkeypatch.setenv("QWEN_HOME", "/srv/qwen")
    monkeypatch.setenv("QWEN_RUNTIME_DIR", "/srv/runs")
    assert list(AGENT.home_folders()) == [Path("/srv/qwen"), Path("/srv/runs")]


def test_an_archived_session_is_the_same_session(tmp_path: Path) -> None:
    home = home_with(tmp_path, user("u", None, "Go"))
    [log] = home.rglob("*.jsonl")
    (log.parent / "archive").mkdir()
    log.rename(log.parent / "archive" / log.name)
    [source] = AGENT.discover([home])
    assert source.session_id == SESSION_ID


def test_an_output_that_is_too_long_names_the_file_with_all_of_it() -> None:
    """0.24.4 logs the beginning and the end."""
    text = (
        "Tool output was too large and has been truncated.\n"
        "The full output has been saved to: /home/dev/.qwen/tmp/9f76/run_shell_command_f67e9ca86428.output\n"
        "To read the complete output, use the read_file tool with the absolute file path above.\n"
    )
    found = fold(user("u", None, "Go"), answer("a", "u", call("c")), result("r", "a", "c", response={"output": text}))
    [read] = calls_of(found.messages["a"])[0].results
    assert read.spilled_to == "run_shell_command_f67e9ca86428.output"
    quoted = {"output": f"I read: {text}"}
    found = fold(user("u", None, "Go"), answer("a", "u", call("c")), result("r", "a", "c", response=quoted))
    assert calls_of(found.messages["a"])[0].results[0].spilled_to is None


@pytest.mark.parametrize(("code", "read"), [("3", 3), ("null", None), ("true", None), ('"3"', None), ("1e400", None)])
def test_what_is_no_exit_code_is_none(code: str, read: int | None) -> None:
    found = make_result(
        "c",
        "run_shell_command",
        FunctionResult("c", "run_shell_command", (TextPart(text="Exit Code: 7"),), is_error=False),
        status=None,
        at=None,
        duration_ms=None,
        shown=Raw(f'{{"exitCode": {code}}}'.encode()),
    )
    assert found.exit_code == read
