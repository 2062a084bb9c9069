"""Damaged bytes of one log in the archive: a rebuild reads all others, and the next sync archives the log again."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from support.plain_agent import Log, PlainAgent
from support.plain_store import at
from turnlog.agents.base import Source
from turnlog.agents.changes import Changes
from turnlog.model import Message, TextPart
from turnlog.store import open_store
from turnlog.store.archive import SEGMENT_SIZE
from turnlog.sync.rebuild import rebuild
from turnlog.sync.summary import SourceProblem
from turnlog.sync.syncer import sync

AGENT = PlainAgent()

LARGE = "walnut " * (SEGMENT_SIZE // 12)
"""Two of them are more than a frame, so that the first message is before the damage."""

DAMAGE = {
    "no frame": "UPDATE archive SET data = x'00'",
    "half a frame": "UPDATE archive SET data = substr(data, 1, length(data) / 2)",
    "another frame": "UPDATE archive SET data = (SELECT data FROM archive ORDER BY length LIMIT 1)",
    "gone": "DELETE FROM archive",
}


@pytest.fixture
def store(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    for name in ("s0", "s1", "s2"):
        log = Log(tmp_path / "home", name)
        log.session()
        for number in range(3):
            text = LARGE if name == "s1" else "hazel"
            parts = (TextPart(text=f"{name} {number} {text}"),)
            log.message(Message(id=f"{name}.{number}", role="user", created_at=at(number), parts=parts))
    read(tmp_path / "store.db")
    return tmp_path / "store.db"


def read(store: Path) -> list[SourceProblem]:
    return sync(store, roots=[store.parent / "home"], agents=[AGENT]).problems


def damage(store: Path, how: str) -> None:
    with closing(sqlite3.connect(store)) as connection, connection:
        where = "source_key = (SELECT key FROM sources WHERE path LIKE '%s1%') AND start > 0"
        assert connection.execute(f"{how} WHERE {where}").rowcount > 0


def messages(store: Path) -> dict[str, int]:
    with open_store(store) as opened:
        return {session.id: len(opened.messages(session.id)) for session in opened.sessions().items}


WHOLE = {"plain:s0": 3, "plain:s1": 3, "plain:s2": 3}


@pytest.mark.parametrize("how", DAMAGE.values(), ids=DAMAGE)
def test_bytes_before_the_damage_are_kept_and_the_rest_is_read_again(store: Path, how: str) -> None:
    damage(store, how)
    summary = rebuild(store, agents=[AGENT])
    (problem,) = summary.problems
    assert "s1" in problem.path
    assert f"is damaged at byte {SEGMENT_SIZE}" in problem.reason
    assert messages(store) == {**WHOLE, "plain:s1": 1}
    with open_store(store) as opened:
        assert [source.problem for source in opened.sources() if source.problem] == [problem.reason]
    assert read(store) == []
    assert messages(store) == WHOLE
    with open_store(store) as opened:
        assert not any(source.problem for source in opened.sources())
    rebuild(store, agents=[AGENT])
    assert messages(store) == WHOLE


def test_a_log_that_its_agent_cannot_read_keeps_no_other_from_being_read(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fold_of = PlainAgent.fold

    class Failing:
        def feed(self, data: bytes, offset: int) -> Changes:
            raise RuntimeError("a fault of the reader")

        def state(self) -> bytes:
            return b""

    def fold(self: PlainAgent, source: Source, state: bytes | None = None) -> object:
        return Failing() if "s1" in str(source) else fold_of(self, source, state)

    with monkeypatch.context() as patch:
        patch.setattr(PlainAgent, "fold", fold)
        (problem,) = rebuild(store, agents=[AGENT]).problems
        assert problem.reason == "RuntimeError: a fault of the reader"
        assert messages(store) == {"plain:s0": 3, "plain:s2": 3}
        assert read(store) == [problem]
        with open_store(store) as opened:
            assert [source.problem for source in opened.sources() if source.problem] == [problem.reason]
    assert read(store) == []
    assert messages(store) == WHOLE
