"""What a session is doing, and the evidence for it: a pure function of its last records.

docs/reference/session-state.md has the rules. Logs do not record that an agent has died or waits at a prompt: if
nothing else is known, the state after a long silence is `quiet`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from datetime import datetime, timedelta
from operator import attrgetter
from typing import Final, Literal, NamedTuple, TypeAlias

from turnlog.model import StopReason
from turnlog.store.choices import SessionStatus
from turnlog.store.values import StoreValue

QUIET_AFTER: Final = timedelta(minutes=2)
"""Silence within a turn after which nobody can tell whether the agent still runs."""

StateName: TypeAlias = Literal["running", "waiting", "done", "killed", "quiet"]

Evidence: TypeAlias = Literal[
    "process",
    "process-ended",
    "open-call",
    "open-turn",
    "question",
    "approval",
    "turn-ended",
    "answer",
    "interrupt",
    "closed",
    "silence",
    "nothing",
]

AnswerOutcome: TypeAlias = Literal["finished", "failed", "stopped"]
"""How an answer of a chat ended; one that waits for the page has finished."""

LAST_ANSWER: Final = "lastAnswer"
"""Metadata of a chat's session: how its newest answer ended (`outcome`), and the message that was the last one then
(`message`). What is answered again has null for both."""

MarkerKind: TypeAlias = Literal["prompt", "start", "answer", "end", "interrupt", "asks", "closed"]


class PlacedMarker(NamedTuple):
    """A message or event that shows a turn beginning, continuing, waiting or ending."""

    kind: MarkerKind
    position: int
    at: datetime | None = None
    detail: str | None = None
    """The kind of an event, or the stop reason of an assistant message."""
    has_calls: bool = False


class UnfinishedCall(StoreValue, frozen=True):
    """A tool call without a final result."""

    tool_call_id: str
    tool_name: str
    kind: str
    state: str
    started_at: datetime | None
    summary: str | None
    """A summary on one line: the first 200 characters of a command, a path or a question."""


class PlacedCall(NamedTuple):
    """An unfinished call and the position of its message."""

    position: int
    call: UnfinishedCall


class TurnFacts(NamedTuple):
    """The facts about the end of a session that decide its state."""

    markers: Sequence[PlacedMarker] = ()
    """Ordered by position."""
    unfinished_calls: Sequence[PlacedCall] = ()
    """Ordered by position."""
    last_at: datetime | None = None
    """Time of the newest record."""
    has_failed: bool = False
    """There is an error, such as a failed request, after the newest message, and the agent does not try again."""


class RunEvidence(NamedTuple):
    """What is known of the newest run of the session that turnlog started."""

    is_alive: bool
    ended_at: datetime | None = None
    exit_code: int | None = None


class SessionState(StoreValue, frozen=True):
    """The state of a session when the store was read, and the evidence for it."""

    state: StateName
    evidence: Evidence
    detail: str | None = None
    """The kind of the event, the model's stop reason, or the exit code."""
    since: datetime | None = None
    quiet_at: datetime | None = None
    """For `running` that follows from records alone: when it becomes `quiet` if nothing else arrives."""
    doing: UnfinishedCall | None = None
    """The newest unfinished call."""


def status_of(state: SessionState) -> SessionStatus:
    """The state as people read it."""
    if state.state == "quiet":
        return "idle"
    if state.evidence == "interrupt":
        return "stopped"
    return "failed" if state.evidence == "answer" and state.detail == _ERROR else state.state


_ERROR: Final[StopReason] = "error"

_ENDINGS: Final[dict[MarkerKind, Evidence]] = {"end": "turn-ended", "interrupt": "interrupt", "closed": "closed"}

_CONTINUING: Final[frozenset[StopReason]] = frozenset({"tool_use", "pause"})
"""Stop reasons after which the model continues: the agent runs its tools or sends the message back."""

_WAITS_FOR_USER: Final = frozenset({"ask", "switch_mode"})
"""Kinds of tools whose result comes from the user."""


def session_state(facts: TurnFacts, run: RunEvidence | None, now: datetime) -> SessionState:
    """The state of a session at `now` (with a time zone), given the end of its records and its newest run.

    The end of the last turn counts most, then a question to the user. If nothing has ended the turn, the process
    decides if turnlog started it, otherwise the time since the last record.
    """
    turn = _Turn(facts)
    if turn.position is None:
        return SessionState("done", "nothing", since=facts.last_at)
    return turn.ending() or turn.waiting() or _unended(turn, facts, run, now)


class _Turn:
    """The last turn of a session, from its beginning to the end of the records."""

    def __init__(self, facts: TurnFacts) -> None:
        # Looked at from the end: of a long session there are thousands of markers, and few belong to its last turn.
        markers = facts.markers
        self.last_at = facts.last_at
        self.position = markers[-1].position if markers else None
        self.began = next((marker for marker in reversed(markers) if marker.kind in ("prompt", "start")), None)
        first = self.began.position if self.began else -1
        self.markers = markers[bisect_left(markers, first, key=attrgetter("position")) :]
        self.has_start = _starts_after_last_end(markers)
        end = next((marker.position for marker in reversed(self.markers) if marker.kind in _ENDINGS), -1)
        # A call before an end was given up with its turn, whether or not a record says so.
        self.calls = [
            placed.call for placed in facts.unfinished_calls if placed.position >= first and placed.position > end
        ]

    def ending(self) -> SessionState | None:
        """What ended the turn; None if nothing did."""
        last = next((marker for marker in reversed(self.markers) if marker.kind in (*_ENDINGS, "answer")), None)
        if last is None or self.calls:
            return None
        answer = next((marker for marker in reversed(self.markers) if marker.kind == "answer"), None)
        if last.kind == "end" and answer is not None and answer.detail == _ERROR:
            # The end says only that the agent waits again, not why.
            return SessionState("done", "answer", _ERROR, last.at)
        if last.kind != "answer":
            return SessionState("done", _ENDINGS[last.kind], last.detail, last.at)
        # A log that records starts of turns also records their ends, so its last message is not an end.
        if last.has_calls or last.detail in _CONTINUING or self.has_start:
            return None
        return SessionState("done", "answer", last.detail, last.at)

    def waiting(self) -> SessionState | None:
        """Who is asked, and by what; None if nobody is."""
        for call in reversed(self.calls):
            if call.state == "approval-requested":
                return SessionState("waiting", "approval", since=call.started_at, doing=call)
            if call.kind in _WAITS_FOR_USER:
                return SessionState("waiting", "question", call.tool_name, call.started_at, doing=call)
        last = self.markers[-1] if self.markers else None
        # No record says that the user has answered, but any newer record implies it.
        if last is not None and last.kind == "asks" and last.at == self.last_at:
            return SessionState("waiting", "approval", last.detail, last.at, doing=_newest(self.calls))
        return None


def _starts_after_last_end(markers: Sequence[PlacedMarker]) -> bool:
    """Whether a start comes after the last end: it will be followed by another end."""
    last = next((marker for marker in reversed(markers) if marker.kind == "start" or marker.kind in _ENDINGS), None)
    return last is not None and last.kind == "start"


def _unended(turn: _Turn, facts: TurnFacts, run: RunEvidence | None, now: datetime) -> SessionState:
    """The state in a turn without an end."""
    doing = _newest(turn.calls)
    since = (doing.started_at if doing else None) or (turn.began.at if turn.began else None)
    if run is not None and run.is_alive:
        return SessionState("running", "process", since=since, doing=doing)
    last_at = facts.last_at
    if run is not None and run.ended_at is not None and (last_at is None or run.ended_at >= last_at):
        code = None if run.exit_code is None else str(run.exit_code)
        return SessionState("killed", "process-ended", code, run.ended_at, doing=doing)
    if last_at is None or now - last_at >= QUIET_AFTER:
        if facts.has_failed and not doing:
            # None says that it has given up when it is killed.
            return SessionState("done", "answer", _ERROR, last_at)
        return SessionState("quiet", "silence", since=last_at, doing=doing)
    evidence: Evidence = "open-call" if doing else "open-turn"
    return SessionState("running", evidence, since=since, quiet_at=last_at + QUIET_AFTER, doing=doing)


def _newest(calls: Sequence[UnfinishedCall]) -> UnfinishedCall | None:
    return calls[-1] if calls else None
