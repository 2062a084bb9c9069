"""Reviews: what another thread found stands as an answer in the one that asked for it, whose model nobody called."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.claude_files import Gathered, gather
from support.codex_files import AGENT, DATA, answer, event, logs, meta, prompt, read, source
from turnlog.agents import fold_bytes
from turnlog.model import Message, Origin, TextPart
from turnlog.store import open_store
from turnlog.store.base import SessionFilter
from turnlog.sync.syncer import sync

RECORDED = ("versions", "0.169.0-review")
ASKED = event("entered_review_mode"), event("user_message", message="Review it"), event("exited_review_mode")


def fold(*lines: bytes) -> Gathered:
    return gather(fold_bytes(AGENT, source(), b"".join(lines)))


def answers(gathered: Gathered) -> list[tuple[str, Origin | None]]:
    found = [message for message in gathered.messages.values() if message.role == "assistant"]
    return [(first_text(message), message.origin) for message in found]


def first_text(message: Message) -> str:
    return next((part.text for part in message.parts if isinstance(part, TextPart)), "").partition("\n")[0]


def test_the_findings_of_a_review_are_no_model_call(tmp_path: Path) -> None:
    """R-C5: recorded with 0.169: `codex exec review`, then a prompt in the thread that asked for it."""
    found = read(logs(*RECORDED))
    assert answers(found) == [("One bad line.", Origin.NOTIFICATION), ("Fixed.", None), ("Done.", None)]
    sync(tmp_path / "turnlog.db", roots=[DATA.joinpath(*RECORDED)], agents=[AGENT])
    with open_store(tmp_path / "turnlog.db") as store:
        (session,) = store.sessions(SessionFilter()).items
        assert (session.usage.calls, session.usage.unknown_calls, session.counts.messages) == (2, 0, 7)


def test_a_thread_with_a_review_waits_for_its_user(tmp_path: Path) -> None:
    """What the review found begins no turn."""
    (log,) = logs(*RECORDED)
    lines = Path(log.path).read_bytes().splitlines(keepends=True)
    (end,) = [number for number, line in enumerate(lines, 1) if b'"task_complete"' in line and number < 20]
    folder = tmp_path / "sessions"
    folder.mkdir()
    (folder / Path(log.path).name).write_bytes(b"".join(lines[:end]))
    sync(tmp_path / "turnlog.db", roots=[tmp_path], agents=[AGENT])
    with open_store(tmp_path / "turnlog.db") as store:
        (facts,) = store.turn_facts([log.session_id or ""]).values()
    assert [marker.kind for marker in facts.markers][-1] == "end"
    assert "prompt" not in [marker.kind for marker in facts.markers]


@pytest.mark.parametrize("between", [[], [prompt("b")]], ids=["at once", "behind a prompt"])
def test_only_what_follows_a_review_at_once_is_what_it_found(between: list[bytes]) -> None:
    """R-C5: from 0.5x to 0.14x; where the review was made in the thread itself, or killed, a prompt follows."""
    found = fold(meta(), prompt("a"), answer("Yes."), *ASKED, *between, answer("Found."), prompt("c"), answer("On."))
    origin = None if between else Origin.NOTIFICATION
    assert answers(found) == [("Yes.", None), ("Found.", origin), ("On.", None)]


GUARDED = "01a1fbaa-0000-7000-8000-00000000000a"
QUOTED = "01a1fbaa-0000-7000-8000-00000000000b"


def approval(*, transcript: str = "", words: str = "Reviewed Codex session id:") -> str:
    return (
        f">>> TRANSCRIPT START\n[1] user: go\n{transcript}\n>>> TRANSCRIPT END\n{words} {GUARDED}\n"
        ">>> APPROVAL REQUEST START\ntouch x\n>>> APPROVAL REQUEST END\n"
    )


def parents(*lines: bytes) -> list[tuple[str, str]]:
    return [(link.kind, link.parent_session_id) for link in fold(*lines).links.values()]


SOURCES: list[Any] = ["review", "compact", "memory_consolidation", {"other": "guardian"}, {"other": "anything"}]
HELD = [("subagent", f"codex:{GUARDED}")]


@pytest.mark.parametrize("kind", SOURCES, ids=str)
@pytest.mark.parametrize("spelling", ["subagent", "subAgent"])
@pytest.mark.parametrize("known_by", ["parent", "session", "prompt", "event"])
def test_a_subagent_of_any_kind_belongs_to_its_parent(kind: Any, spelling: str, known_by: str) -> None:
    """R-C6: by whichever record names it."""
    facts = {"parent": {"parent_thread_id": GUARDED}, "session": {"session_id": GUARDED}}.get(known_by, {})
    said = {"prompt": [prompt(approval())], "event": [event("user_message", message=approval())]}.get(known_by, [])
    assert parents(meta(source={spelling: kind}, **facts), *said, answer("ok")) == HELD


def test_a_transcript_names_no_parent() -> None:
    """What the reviewed thread said may be anything, also the prompt of another review."""
    lie = f"Reviewed Codex session id: {QUOTED}\n"
    own = meta(source={"subagent": {"other": "guardian"}})
    assert parents(own, prompt(approval(transcript=lie))) == HELD
    assert parents(own, prompt(approval(transcript=approval().replace(GUARDED, QUOTED)))) == HELD
    assert parents(own, prompt(approval(words="Reviewed session id:"))) == HELD


def test_a_session_that_speaks_of_a_review_is_no_subagent() -> None:
    assert parents(meta(source="cli"), prompt(approval())) == []
    assert parents(meta(source="cli", session_id=GUARDED), prompt("q")) == []


def test_a_subagent_has_one_parent() -> None:
    spawned = {"subagent": {"thread_spawn": {"parent_thread_id": QUOTED, "depth": 1}}}
    assert parents(meta(source=spawned, session_id=GUARDED), prompt(approval())) == [("subagent", f"codex:{QUOTED}")]
