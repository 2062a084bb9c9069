"""Logs that more than one version wrote: gone on with, copied into a fork, or rewritten by a newer one."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from support.claude_files import gather
from support.codex_files import (
    AGENT,
    DATA,
    OTHER,
    THREAD,
    answer,
    counts,
    event,
    line,
    logs,
    meta,
    prompt,
    read,
    source,
    token_count,
)
from turnlog.agents import fold_bytes
from turnlog.model import Message, TextPart, ToolCallPart
from turnlog.store import open_store
from turnlog.store.base import SessionFilter
from turnlog.sync.rebuild import rebuild
from turnlog.sync.syncer import sync

MIGRATED = sorted(path.name for path in (DATA / "migrated").iterdir())
"""Recorded homes that are there before and behind `codex migrate-rollouts --apply` of 0.169."""


def pass_over(store: Path, home: Path) -> None:
    sync(store, roots=[home], agents=[AGENT])


def stored(path: Path) -> dict[str, tuple[list[Message], int, int | None]]:
    """Messages, calls and tokens of every session."""
    with open_store(path) as store:
        return {
            session.id: (
                [item.message for item in store.messages(session.id)],
                session.usage.calls,
                session.usage.usage.total,
            )
            for session in store.sessions(SessionFilter(subagents=True)).items
        }


def said(message: Message) -> list[str]:
    spoken = [part for part in message.parts if not isinstance(part, ToolCallPart)]
    calls = [part.tool_call_id for part in message.parts if isinstance(part, ToolCallPart)]
    return [*[part.text for part in spoken if isinstance(part, TextPart)], *calls]


@pytest.mark.parametrize("name", MIGRATED)
def test_a_migrated_log_has_the_same_history_as_before(name: str) -> None:
    """R-C4, R-C5: recorded; what had no id has a number there, and turns the number of their line."""
    before, after = read(logs("versions", name)), read(logs("migrated", name))
    assert list(after.messages) == list(before.messages)
    assert {key: found.titles for key, found in after.sessions.items()} == {
        key: found.titles for key, found in before.sessions.items()
    }
    for message_id, message in after.messages.items():
        was = before.messages[message_id]
        assert (message.parts, message.origin) == (was.parts, was.origin)
        assert (message.usage and message.usage.total) == (was.usage and was.usage.total)


@pytest.mark.parametrize("name", MIGRATED)
def test_nothing_is_doubled_when_a_log_is_migrated(name: str, tmp_path: Path) -> None:
    """R-C5, R-S23: it is written anew where it lies."""
    path, home = tmp_path / "store.db", tmp_path / "home"
    shutil.copytree(DATA / "versions" / name / "sessions", home / "sessions")
    pass_over(path, home)
    before = stored(path)
    shutil.copytree(DATA / "migrated" / name / "sessions", home / "sessions", dirs_exist_ok=True)
    pass_over(path, home)
    after = stored(path)
    assert {name: (calls, tokens) for name, (_, calls, tokens) in after.items()} == {
        name: (calls, tokens) for name, (_, calls, tokens) in before.items()
    }
    assert {name: [message.id for message in found] for name, (found, *_) in after.items()} == {
        name: [message.id for message in found] for name, (found, *_) in before.items()
    }
    rebuild(path)
    assert stored(path) == after


def test_tokens_alone_are_one_response_whichever_version_copied_them() -> None:
    """R-C5: 0.169 writes zeros into a copy where 0.11x wrote nothing."""
    one, two = counts(100, 0, 20, 0), counts(200, 0, 40, 0)
    zeros = [{**found, "cache_write_input_tokens": 0} for found in (one, two)]
    original, copied = (
        [prompt("a"), answer("b"), token_count(first, first), token_count(second, first)]
        for first, second in ((one, two), zeros)
    )
    summary = line("compacted", {"message": "Summary"})
    told = [b"".join((meta(cli_version="0.110.0"), *original, summary))]
    told.append(b"".join((meta(id=OTHER, forked_from_id=THREAD), meta(cli_version="0.110.0"), *copied, summary)))
    found = [list(read_bytes(data, thread)) for data, thread in zip(told, (THREAD, OTHER), strict=True)]
    assert found[0] == found[1]
    assert len(found[0]) == 3


def read_bytes(data: bytes, thread: str) -> dict[str, Message]:
    return gather(fold_bytes(AGENT, source(thread), data)).messages


ORIGINAL, FORK = (f"codex:01a20437-{rest}" for rest in ("1ee2-7333-982e-830be8e50d38", "2a76-7b00-9561-b7280511598f"))
"""A thread of 0.39 that 0.169 went on with, and the copy that it made of it."""
SAID = [["One.", "c1", "c2"], ["End."], ["Resumed by the new one.", "n1"], ["New end."]]
"""What the model said in both: words, and the calls by their ids."""


@pytest.mark.parametrize("names", [["0.39.0"], ["0.39.0-migrated"], ["0.39.0", "0.39.0-migrated"]], ids=" then ".join)
@pytest.mark.parametrize("order", [1, -1], ids=["original first", "fork first"])
def test_a_copy_by_a_newer_version_has_the_same_history(order: int, names: list[str], tmp_path: Path) -> None:
    """R-C5, R-S15: recorded; 0.169 forked a thread of 0.39, and migrated both. A copy leaves out every `turn_context`
    of 0.39, and one that was migrated also whose version's it is."""
    path, home = tmp_path / "store.db", tmp_path / "home"
    (home / "sessions").mkdir(parents=True)
    for name in names:
        for log in logs("mixed", name)[::order]:
            shutil.copy(log.path, home / "sessions")
            pass_over(path, home)
    found = stored(path)
    answers = {name: [said(x) for x in messages if x.role == "assistant"] for name, (messages, *_) in found.items()}
    assert answers == {ORIGINAL: SAID, FORK: [*SAID, ["Forked old."]]}
    assert [found[name][1] for name in (ORIGINAL, FORK)] == [4, 1]


def test_a_migrated_copy_without_its_original_has_the_same_history(tmp_path: Path) -> None:
    """R-C5: recorded; no record of it names the version that said it."""
    path, home = tmp_path / "store.db", tmp_path / "home"
    (home / "sessions").mkdir(parents=True)
    shutil.copy(next(log.path for log in logs("mixed", "0.39.0-migrated") if FORK[6:] in log.path), home / "sessions")
    pass_over(path, home)
    ((messages, calls, _),) = stored(path).values()
    assert [said(message) for message in messages if message.role == "assistant"] == [*SAID, ["Forked old."]]
    assert calls == 5


def test_a_text_after_tokens_begins_a_response_if_texts_come_first() -> None:
    """R-S15: in a copy of a log of 0.39 no record stands between two responses."""
    first, second = counts(100, 0, 20, 0), counts(200, 0, 40, 0)
    heard = [event("agent_message", message="One."), token_count(first, first), answer("One.")]
    then = [event("agent_message", message="Two."), token_count(second, first), answer("Two.")]
    found = read_bytes(b"".join((meta(cli_version="0.39.0"), prompt("a"), *heard, *then)), THREAD)
    assert [said(message) for message in found.values()] == [["a"], ["One."], ["Two."]]
