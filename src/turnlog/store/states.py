"""What a session is doing, told from evidence that is named: a pure function of its last records.

docs/reference/session-state.md has the rules. Logs do not say that an agent has died or waits at a prompt: where only
silence is known, the answer is silence.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final, Literal, NamedTuple, TypeAlias

from turnlog.model import StopReason

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

SignName: TypeAlias = Literal["prompt", "start", "answer", "end", "interrupt", "asks", "closed"]


class Sign(NamedTuple):
    """A message or event that says something of a turn. In the order of their positions."""

    name: SignName
    position: int
    at: datetime | None = None
    detail: str | None = None
    """Of an event its kind, of an answer why the model stopped."""
    has_calls: bool = False


class OpenCall(NamedTuple):
    """A tool call without a final result."""

    position: int
    """Of its message."""
    tool_call_id: str
    tool_name: str
    kind: str
    state: str
    started_at: datetime | None
    summary: str | None
    """What it is about in a line: a command, a path, a question."""


class TurnFacts(NamedTuple):
    """The end of a session, as far as it matters for what the session is doing."""

    signs: Sequence[Sign] = ()
    open_calls: Sequence[OpenCall] = ()
    last_at: datetime | None = None
    """Time of the newest record."""


class RunEvidence(NamedTuple):
    """What is known of the newest run of the session that turnlog itself started."""

    is_alive: bool
    ended_at: datetime | None = None
    exit_code: int | None = None


class SessionState(NamedTuple):
    """What a session is doing, and how that is known."""

    state: StateName
    evidence: Evidence
    detail: str | None = None
    """The kind of the event, the model's reason, the exit code."""
    since: datetime | None = None
    quiet_at: datetime | None = None
    """Of `running` by records alone: when it counts as quiet unless something comes."""
    doing: OpenCall | None = None
    """The newest open call."""


_ENDINGS: Final[dict[SignName, Evidence]] = {"end": "turn-ended", "interrupt": "interrupt", "closed": "closed"}

_GOES_ON: Final[frozenset[StopReason]] = frozenset({"tool_use", "pause"})

_ASKING: Final = frozenset({"ask", "switch_mode"})
"""Kinds of tools whose answer is the user's."""


def tell_state(facts: TurnFacts, run: RunEvidence | None, now: datetime) -> SessionState:
    """What the session is doing at `now`."""
    turn = _Turn(facts)
    if turn.position is None:
        return SessionState("done", "nothing", since=facts.last_at)
    return turn.ending() or turn.question() or _open(turn, facts, run, now)


class _Turn:
    """The last turn of a session: from what began it to the end of the records."""

    def __init__(self, facts: TurnFacts) -> None:
        self.last_at = facts.last_at
        openers = [sign for sign in facts.signs if sign.name in ("prompt", "start")]
        self.position = max((sign.position for sign in facts.signs), default=None)
        self.began = openers[-1] if openers else None
        begin = self.began.position if self.began else -1
        self.signs = [sign for sign in facts.signs if sign.position >= begin]
        self.has_start = any(sign.name == "start" for sign in _last_opening(facts.signs))
        end = max((sign.position for sign in self.signs if sign.name in _ENDINGS), default=-1)
        self.open_calls = [call for call in facts.open_calls if call.position >= begin and call.position > end]

    def ending(self) -> SessionState | None:
        """What ended the turn; None while it goes on."""
        last = next((sign for sign in reversed(self.signs) if sign.name in (*_ENDINGS, "answer")), None)
        if last is None or self.open_calls:
            return None
        if last.name != "answer":
            return SessionState("done", _ENDINGS[last.name], last.detail, last.at)
        if last.has_calls or last.detail in _GOES_ON or self.has_start:
            return None
        return SessionState("done", "answer", last.detail, last.at)

    def question(self) -> SessionState | None:
        """Who is asked, and by what; None when nobody is."""
        for call in reversed(self.open_calls):
            if call.state == "approval-requested":
                return SessionState("waiting", "approval", since=call.started_at, doing=call)
            if call.kind in _ASKING:
                return SessionState("waiting", "question", call.tool_name, call.started_at, doing=call)
        last = self.signs[-1] if self.signs else None
        # What came behind it is not said by kind: any newer record means that somebody has answered.
        if last is not None and last.name == "asks" and last.at == self.last_at:
            return SessionState("waiting", "approval", last.detail, last.at, doing=_newest(self.open_calls))
        return None


def _last_opening(signs: Sequence[Sign]) -> Sequence[Sign]:
    """Signs behind the last end: a start among them promises another end."""
    ends = [index for index, sign in enumerate(signs) if sign.name in _ENDINGS]
    return signs[ends[-1] + 1 :] if ends else signs


def _open(turn: _Turn, facts: TurnFacts, run: RunEvidence | None, now: datetime) -> SessionState:
    """A turn that nothing has ended."""
    doing = _newest(turn.open_calls)
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


def _newest(calls: Sequence[OpenCall]) -> OpenCall | None:
    return calls[-1] if calls else None
