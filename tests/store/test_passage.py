"""A passage of a history alone says what the whole says there, wherever it is cut."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from support.plain_agent import Log
from support.plain_store import at, read_home
from turnlog.errors import NotFoundError
from turnlog.model import (
    ErrorEvent,
    InterruptEvent,
    Message,
    Origin,
    RecordEvent,
    ResultStatus,
    RunMetadataEvent,
    StopReason,
    TextPart,
    ToolCallPart,
    ToolResult,
)
from turnlog.replay import ReplayEvent, replay
from turnlog.store import open_store
from turnlog.store.base import Store

STATUSES: list[ResultStatus] = ["success", "error", "aborted", "aborted", "denied"]
STOPS: list[StopReason | None] = [None, "tool_use", "tool_use", "aborted", "error"]
SESSIONS = 24
RECORDS = 60


class Writing:
    """Writes a session in which results come late, twice or never, and anything is between anything."""

    def __init__(self, home: Path, number: int) -> None:
        self._random = Random(number)
        self._log = Log(home, str(number))
        self._number = 0
        self._turn = 0
        self._answers: list[str] = []
        self._calls: list[tuple[str, str]] = []

    def write(self) -> None:
        kinds: list[Callable[[], int]] = [
            self._prompt,
            self._reminder,
            self._answer,
            self._answer,
            self._result,
            self._result,
            self._result,
            self._aside,
        ]
        for self._number in range(RECORDS):
            self._random.choice(kinds)()

    def _prompt(self) -> int:
        self._turn += 1
        return self._say(role="user", origin=Origin.PROMPT, parts=(TextPart(text="more"),))

    def _reminder(self) -> int:
        return self._say(role="developer", parts=(TextPart(text="mind the gap"),))

    def _answer(self) -> int:
        calls = [f"c{self._number}.{index}" for index in range(self._random.randrange(3))]
        self._answers.append(self._name())
        self._calls += [(call, self._name()) for call in calls]
        parts = tuple(ToolCallPart(tool_call_id=call, tool_name="Bash") for call in calls)
        return self._say(role="assistant", stop_reason=self._random.choice(STOPS), parts=parts)

    def _result(self) -> int:
        if not self._calls:
            return self._aside()
        # Mostly of a call just before, and now and then of one long ago.
        call, message_id = self._random.choice(self._calls if self._random.random() < 0.3 else self._calls[-2:])
        result = ToolResult(
            id=f"{call}:{self._number}",
            status=self._random.choice(STATUSES),
            content=(TextPart(text=f"printed {self._number % 3}"),),
            completed_at=at(self._number),
            preliminary=self._random.random() < 0.2,
        )
        return self._log.result(call, result, message_id=message_id)

    def _aside(self) -> int:
        name, moment = f"e{self._number}", at(self._number)
        of = self._random.choice([None, *self._answers])
        return self._log.event(
            self._random.choice(
                [
                    InterruptEvent(id=name, created_at=moment, message_id=of),
                    InterruptEvent(id=name, created_at=moment, derived=True),
                    ErrorEvent(id=name, created_at=moment, error_text="no"),
                    RunMetadataEvent(id=name, created_at=moment, kind="mode"),
                    RecordEvent(id=name, created_at=moment, kind="ping"),
                ]
            )
        )

    def _say(self, **fields: Any) -> int:
        message = Message(id=self._name(), created_at=at(self._number), **fields)
        return self._log.message(message, turn=self._turn or None)

    def _name(self) -> str:
        return f"{self._log.path.stem}.{self._number}"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    folder = tmp_path_factory.mktemp("passages")
    home = folder / "home"
    home.mkdir()
    for number in range(SESSIONS):
        Writing(home, number).write()
    read_home(folder / "turnlog.db", home)
    with open_store(folder / "turnlog.db") as opened:
        yield opened


def shown(store: Store, session_id: str, **span: int) -> tuple[list[ReplayEvent], int | None, int | None]:
    """What a screen gets of a passage, and where those beside it are."""
    passage = store.passage(session_id, **span)
    replayed = replay(passage.events, response_metadata=True, interrupted=passage.interrupted)
    return [event for event in replayed if passage.first <= event.position < passage.end], passage.before, passage.after


@pytest.mark.parametrize("number", range(SESSIONS))
@pytest.mark.parametrize("limit", [1, 3, 10])
def test_passages_one_after_the_other_are_the_whole(store: Store, number: int, limit: int) -> None:
    """R-S19, R-K17, R-K18"""
    session_id = f"plain:{number}"
    whole = replay(store.history(session_id), response_metadata=True)
    replayed: list[ReplayEvent] = []
    after: int | None = -1
    while after is not None:
        events, _, after = shown(store, session_id, after=after, limit=limit)
        replayed += events
    assert replayed == whole


@pytest.mark.parametrize("number", range(4))
def test_passages_backwards_are_the_whole(store: Store, number: int) -> None:
    session_id = f"plain:{number}"
    whole = replay(store.history(session_id), response_metadata=True)
    replayed: list[ReplayEvent] = []
    before: int | None = 1 << 40
    while before is not None:
        events, before, _ = shown(store, session_id, before=before, limit=3)
        replayed = events + replayed
    assert replayed == whole


def test_a_passage_reads_little_of_a_session_and_says_what_is_beside_it(store: Store) -> None:
    whole = store.history("plain:0")
    middle = whole[len(whole) // 2].position
    passage = store.passage("plain:0", around=middle, limit=2)
    assert passage.before is not None
    assert passage.after is not None
    assert passage.first <= middle < passage.end
    assert len(passage.events) < len(whole)


def test_a_session_that_grew_is_read_anew(tmp_path: Path) -> None:
    log = Log(tmp_path, "one")
    call = ToolCallPart(tool_call_id="c", tool_name="Bash")
    log.message(Message(id="a", role="assistant", created_at=at(0), parts=(call,)))
    log.message(Message(id="p", role="user", created_at=at(1), origin=Origin.PROMPT, parts=(TextPart(text="more"),)))
    path = tmp_path / "turnlog.db"
    read_home(path, tmp_path)
    with open_store(path) as store:
        kinds = [type(event).__name__ for event in shown(store, "plain:one", after=0)[0]]
        assert kinds == ["UserShown"]
        log.result("c", ToolResult(id="c:1", content=(TextPart(text="printed"),)))
        read_home(path, tmp_path)
        kinds = [type(event).__name__ for event in shown(store, "plain:one", after=0)[0]]
        assert kinds == ["UserShown", "ToolResultShown"]


def test_nothing_beyond_the_end_and_no_such_session(store: Store) -> None:
    passage = store.passage("plain:0", after=1 << 40)
    assert (passage.events, passage.before, passage.after) == ([], None, None)
    with pytest.raises(NotFoundError):
        store.passage("plain:none")
