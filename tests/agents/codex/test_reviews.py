"""Reviews: what another thread found stands as an answer in the one that asked for it, whose model nobody called."""

from __future__ import annotations

from pathlib import Path

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
