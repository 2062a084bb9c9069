"""What a session is doing, and the evidence for it: a pure function of its last records.

docs/reference/session-state.md has the rules. Logs do not say that an agent has died or waits at a prompt: where only
silence is known, the state is `quiet`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final, Literal, NamedTuple, TypeAlias

from turnlog.model import StopReason
from turnlog.store.values import StoreValue

QUIET_AFTER: Final = timedelta(minutes=2)
"""Silence in the middle of a turn after which nobody can say that the agent still runs."""

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

MarkerKind: TypeAlias = Literal["prompt", "start", "answer", "end", "interrupt", "asks", "closed"]


class PlacedMarker(NamedTuple):
    """A message or event by which a turn is seen to begin, go on, wait or end."""

    kind: MarkerKind
    position: int
    at: datetime | None = None
    detail: str | None = None
    """Of an event its kind, of an assistant message why the model stopped."""
    has_calls: bool = False


class UnfinishedCall(StoreValue, frozen=True):
    """A tool call without a final result."""

    tool_call_id: str
    tool_name: str
    kind: str
    state: str
    started_at: datetime | None
    summary: str | None
    """What it is about in a line: the first 200 characters of a command, a path, a question."""


class PlacedCall(NamedTuple):
    """An unfinished call, and the position of its message."""

    position: int
    call: UnfinishedCall


class TurnFacts(NamedTuple):
    """The end of a session, as far as it matters for what the session is doing."""

    markers: Sequence[PlacedMarker] = ()
    """In the order of their positions."""
    unfinished_calls: Sequence[PlacedCall] = ()
    """In the order of their positions."""
    last_at: datetime | None = None
    """Time of the newest record."""


class RunEvidence(NamedTuple):
    """What is known of the newest run of the session that turnlog itself started."""

    is_alive: bool
    ended_at: datetime | None = None
    exit_code: int | None = None


class SessionState(StoreValue, frozen=True):
    """What a session was doing when the store was read, and how that is known."""

    state: StateName
    evidence: Evidence
    detail: str | None = None
    """The kind of the event, the model's reason, the exit code."""
    since: datetime | None = None
    quiet_at: datetime | None = None
    """Of `running` by records alone: when it counts as quiet unless something comes."""
    doing: UnfinishedCall | None = None
    """The newest unfinished call."""


_ENDINGS: Final[dict[MarkerKind, Evidence]] = {"end": "turn-ended", "interrupt": "interrupt", "closed": "closed"}

_CONTINUING: Final[frozenset[StopReason]] = frozenset({"tool_use", "pause"})
"""Why a model stopped that will go on: the agent runs its tools or sends the message back."""

_WAITS_FOR_USER: Final = frozenset({"ask", "switch_mode"})
"""Kinds of tools whose result comes from the user."""


def session_state(facts: TurnFacts, run: RunEvidence | None, now: datetime) -> SessionState:
    """What the session is doing at `now` (aware), by the end of its records and the newest run of it.

    An ending of the last turn counts most, then that somebody is asked. What is left is a turn that nothing has ended:
    there the process decides, where turnlog has started it, and else how long nothing has come.
    """
    turn = _Turn(facts)
    if turn.position is None:
        return SessionState("done", "nothing", since=facts.last_at)
    return turn.ending() or turn.waiting() or _unended(turn, facts, run, now)


class _Turn:
    """The last turn of a session: from what began it to the end of the records."""

    def __init__(self, facts: TurnFacts) -> None:
        self.last_at = facts.last_at
        openers = [marker for marker in facts.markers if marker.kind in ("prompt", "start")]
        self.position = max((marker.position for marker in facts.markers), default=None)
        self.began = openers[-1] if openers else None
        first = self.began.position if self.began else -1
        self.markers = [marker for marker in facts.markers if marker.position >= first]
        self.has_start = any(marker.kind == "start" for marker in _after_last_end(facts.markers))
        end = max((marker.position for marker in self.markers if marker.kind in _ENDINGS), default=-1)
        # A call before an end was given up with its turn, whether or not a record says so.
        self.calls = [
            placed.call for placed in facts.unfinished_calls if placed.position >= first and placed.position > end
        ]

    def ending(self) -> SessionState | None:
        """What ended the turn; None while it goes on."""
        last = next((marker for marker in reversed(self.markers) if marker.kind in (*_ENDINGS, "answer")), None)
        if last is None or self.calls:
            return None
        if last.kind != "answer":
            return SessionState("done", _ENDINGS[last.kind], last.detail, last.at)
        # Where the log says that a turn starts it also says when it ends: its last message is then no end.
        if last.has_calls or last.detail in _CONTINUING or self.has_start:
            return None
        return SessionState("done", "answer", last.detail, last.at)

    def waiting(self) -> SessionState | None:
        """Who is asked, and by what; None when nobody is."""
        for call in reversed(self.calls):
            if call.state == "approval-requested":
                return SessionState("waiting", "approval", since=call.started_at, doing=call)
            if call.kind in _WAITS_FOR_USER:
                return SessionState("waiting", "question", call.tool_name, call.started_at, doing=call)
        last = self.markers[-1] if self.markers else None
        # No record says that somebody has answered, but any newer record means it.
        if last is not None and last.kind == "asks" and last.at == self.last_at:
            return SessionState("waiting", "approval", last.detail, last.at, doing=_newest(self.calls))
        return None


def _after_last_end(markers: Sequence[PlacedMarker]) -> Sequence[PlacedMarker]:
    """Markers behind the last end: a start among them promises another end."""
    ends = [index for index, marker in enumerate(markers) if marker.kind in _ENDINGS]
    return markers[ends[-1] + 1 :] if ends else markers


def _unended(turn: _Turn, facts: TurnFacts, run: RunEvidence | None, now: datetime) -> SessionState:
    """A turn that nothing has ended."""
    doing = _newest(turn.calls)
    since = (doing.started_at if doing else None) or (turn.began.at if turn.began else None)
    if run is not None and run.is_alive:
        return SessionState("running", "process", since=since, doing=doing)
    last_at = facts.last_at
    if run is not None and run.ended_at is not None and (last_at is None or run.ended_at >= last_at):
        code = None if run.exit_code is None else str(run.exit_code)
        return SessionState("killed", "process-ended", code, run.ended_at, doing=doing)
    if last_at is None or now - last_at >= QUIET_AFTER:
        return SessionState("quiet", "silence", since=last_at, doing=doing)
    evidence: Evidence = "open-call" if doing else "open-turn"
    return SessionState("running", evidence, since=since, quiet_at=last_at + QUIET_AFTER, doing=doing)


def _newest(calls: Sequence[UnfinishedCall]) -> UnfinishedCall | None:
    return calls[-1] if calls else None
