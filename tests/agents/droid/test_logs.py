"""What no recorded run shows: titles, rewinds, cancelled turns, later settings, a lost anchor, damage."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.droid_files import (
    AGENT,
    SESSION,
    SESSION_ID,
    answer,
    call,
    calls_of,
    compaction,
    fold,
    lines,
    result,
    start,
    user,
)
from turnlog.agents.commands import prompted_command, resume_command
from turnlog.model import CompactionEvent, ErrorEvent, Fate, InterruptEvent, Origin, RewindEvent
from turnlog.store import open_store
from turnlog.sync.syncer import sync


def home_with(folder: Path, *records: Any, settings: dict[str, Any] | None = None) -> Path:
    log = folder / ".factory" / "sessions" / "-home-dev-work" / f"{SESSION}.jsonl"
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_bytes(lines(*records))
    if settings is not None:
        log.with_suffix(".settings.json").write_text(json.dumps(settings))
    return folder / ".factory"


@pytest.mark.parametrize(
    ("fields", "titles"),
    [
        ({"title": "Fix the"}, {"prompt": "Fix the bug"}),
        ({"title": "A better title"}, {"prompt": "Fix the bug", "generated": "A better title"}),
        ({"title": "Mine", "isSessionTitleManuallySet": True}, {"prompt": "Fix the bug", "custom": "Mine"}),
        ({"title": "Fix the bug", "sessionTitle": "Bug"}, {"prompt": "Fix the bug", "generated": "Bug"}),
    ],
)
def test_a_title_is_the_users_or_generated_or_the_prompt(fields: dict[str, Any], titles: dict[str, str]) -> None:
    found = fold(start(**fields), user("u1", None, "Fix the bug"))
    assert found.sessions[SESSION_ID].titles == titles


def test_a_new_title_in_the_first_line_is_taken_over(tmp_path: Path) -> None:
    """Droid writes the first line anew, so the offsets of all others change."""
    home = home_with(tmp_path, start(title="Fix"), user("u1", None, "Fix the bug"), answer("a1", "u1", "Done"))
    sync(tmp_path / "store.db", roots=[home], agents=[AGENT])
    home_with(tmp_path, start(title="A longer title"), user("u1", None, "Fix the bug"), answer("a1", "u1", "Done"))
    sync(tmp_path / "store.db", roots=[home], agents=[AGENT])
    with open_store(tmp_path / "store.db") as store:
        session = store.session(SESSION_ID)
        assert (session.title, session.counts.messages) == ("A longer title", 2)


def test_totals_that_grow_count_once(tmp_path: Path) -> None:
    for tokens in (100, 250):
        usage = {"inputTokens": tokens, "outputTokens": 10, "cacheReadTokens": 5, "thinkingTokens": 4}
        records = (start(), user("u1", None, "Hi"), answer("a1", "u1", "Hello"))
        home = home_with(tmp_path, *records, settings={"model": "m", "tokenUsage": usage})
        sync(tmp_path / "store.db", roots=[home], agents=[AGENT])
    with open_store(tmp_path / "store.db") as store:
        usage = store.session(SESSION_ID).usage.usage
        assert (usage.input, usage.cache_read, usage.output, usage.reasoning) == (250, 5, 6, 4)


def test_settings_that_are_cut_off_are_a_diagnostic(tmp_path: Path) -> None:
    home = home_with(tmp_path, start(), settings={})
    next(home.rglob("*.settings.json")).write_text('{"model": "m", "tokenUsage": {')
    assert sync(tmp_path / "store.db", roots=[home], agents=[AGENT]).diagnostics == 1


def test_a_message_after_an_earlier_one_is_a_rewind(tmp_path: Path) -> None:
    records = (
        start(),
        user("u1", None, "First"),
        answer("a1", "u1", "One"),
        user("u2", "a1", "Second"),
        answer("a2", "u2", "Two"),
        user("u3", "a1", "Third"),
    )
    [event] = [each.event for each in fold(*records).events.values() if isinstance(each.event, RewindEvent)]
    assert event.to_message_id == "a1"
    home = home_with(tmp_path, *records)
    sync(tmp_path / "store.db", roots=[home], agents=[AGENT])
    with open_store(tmp_path / "store.db") as store:
        fates = {each.message.id: each.membership.fate for each in store.messages(SESSION_ID)}
    active, rewound = Fate.ACTIVE, Fate.REWOUND
    assert fates == {"u1": active, "a1": active, "u2": rewound, "a2": rewound, "u3": active}


def test_a_compaction_whose_anchor_is_lost_keeps_nothing_and_says_so() -> None:
    found = fold(start(), user("u1", None, "First"), answer("a1", "u1", "One"), compaction("c1", "gone"))
    [event] = [each.event for each in found.events.values() if isinstance(each.event, CompactionEvent)]
    assert event.kept_message_ids == ()
    [note] = found.diagnostics
    assert (note.severity, note.line) == ("note", 4)


@pytest.mark.parametrize(
    ("reason", "kinds"), [("completed", []), ("cancelled", [InterruptEvent]), ("process_exit", [ErrorEvent])]
)
def test_the_reason_of_an_end_is_an_interrupt_or_an_error(reason: str, kinds: list[type]) -> None:
    end = {"type": "agent_turn_outcome", "turnId": "u1", "reason": reason, "resultKind": "text"}
    found = fold(start(), user("u1", None, "First"), answer("a1", "u1", "One"), end)
    told = [type(each.event) for each in found.events.values()]
    assert [kind for kind in told if kind in (InterruptEvent, ErrorEvent)] == kinds
    assert found.counts.total == 4


def test_words_beside_a_result_are_a_prompt_of_their_own() -> None:
    found = fold(
        start(),
        user("u1", None, "First"),
        answer("a1", "u1", call("c1", command="ls")),
        user("r1", "a1", result("c1", "done"), "And now this"),
        answer("a2", "r1", "Well"),
    )
    assert [message.origin for message in found.messages.values()] == [Origin.PROMPT, None, Origin.PROMPT, None]
    assert calls_of(found.messages["a1"])[0].results[0].output_text == "done"
    assert found.placements[(SESSION_ID, "a2")].parent_id == "r1.input"
    assert found.counts.total == 5


def test_fields_that_nobody_knows_are_kept() -> None:
    """R-C11"""
    found = fold(start(), user("u1", None, "First", colour="red"))
    assert found.messages["u1"].metadata == {"droid": {"other_fields": {"colour": "red"}}}


def test_a_session_is_resumed_by_its_id() -> None:
    assert AGENT.command is not None
    assert resume_command(AGENT.command, SESSION) == ["droid", "--resume", SESSION]
    assert prompted_command(AGENT.command, SESSION) == ["droid", "exec", "--session-id", SESSION]
