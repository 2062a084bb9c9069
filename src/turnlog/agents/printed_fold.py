"""The fold of a printed stream of JSON lines, for agents whose streams have no ids for messages.

What all such folds do alike stands here: recognising a stream, going from line to line, beginning a run, and what is
remembered between two feeds. What a line means is its agent's (`PrintedForm.read`); what is made of it is `Printed`'s.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from turnlog.agents.base import Detection, Source, SourceKind
from turnlog.agents.changes import Changes
from turnlog.agents.jsonl import JsonLines, count_lines, whole_lines
from turnlog.agents.printed import Printed, PrintedState


class StreamState(msgspec.Struct):
    """What a fold of a printed stream remembers. Each agent adds its own."""

    printed: PrintedState = msgspec.field(default_factory=PrintedState)


LineT = TypeVar("LineT", bound=msgspec.Struct)
StateT = TypeVar("StateT", bound=StreamState)


def _hold_nothing(state: StreamState, line: msgspec.Struct, json: bytes, position: int) -> bool:
    return False


@dataclass(frozen=True, kw_only=True)
class PrintedForm(Generic[LineT, StateT]):
    """A form of stream that an agent prints."""

    agent: str
    lines: JsonLines[LineT]
    state: type[StateT]
    is_ours: Callable[[LineT], bool]
    """Whether a line can be nobody else's: one of them is enough to recognise a stream."""
    session_of: Callable[[StateT, LineT, bytes], str | None]
    """External id of the session of which a line begins a run, given the line's JSON too; None when it begins none."""
    begin_run: Callable[[StateT, LineT], None]
    """Forget what was of the run before."""
    hold: Callable[[StateT, LineT, bytes, int], bool] = _hold_nothing
    """Whether a line waits for the next one, which tells its session; it is given with its JSON and position."""
    time_of: Callable[[LineT], datetime | None]
    read: Callable[[StateT, Printed, LineT], None]
    """Tell what a line says."""


def detect_printed(form: PrintedForm[LineT, StateT], path: Path, head: bytes) -> Detection | None:
    """Whether a file begins as such a stream does; None when it does not. No line names a version."""
    lines = form.lines.read(whole_lines(head), 0, 1, Changes())
    if not any(form.is_ours(line) for line, *_ in lines):
        return None
    place = path.absolute()
    source = Source(agent=form.agent, path=str(place), root=str(place.parent), kind=SourceKind.STREAM)
    return Detection(agent=form.agent, source=source)


class PrintedFold(Generic[LineT, StateT]):
    """Reads one stream. See `turnlog.agents.base.Fold`."""

    def __init__(self, form: PrintedForm[LineT, StateT], state: bytes | None) -> None:
        self._form = form
        self._state = form.state() if state is None else msgspec.json.decode(state, type=form.state)

    def state(self) -> bytes:
        """See `turnlog.agents.base.Fold.state`."""
        return msgspec.json.encode(self._state)

    def feed(self, data: bytes, offset: int) -> Changes:
        """See `turnlog.agents.base.Fold.feed`."""
        form, state, changes = self._form, self._state, Changes()
        remembered = state.printed
        printed = Printed(form.agent, remembered, changes)
        for line, json, position, length, number in form.lines.read(data, offset, remembered.lines + 1, changes):
            if form.hold(state, line, json, position):
                changes.counts.events += 1
                continue
            session = form.session_of(state, line, json)
            if session is not None:
                form.begin_run(state, line)
                printed.begin_run(session, json)
            printed.enter(json, position, length, number, form.time_of(line))
            form.read(state, printed, line)
        remembered.lines += count_lines(data)
        return printed.finish()
