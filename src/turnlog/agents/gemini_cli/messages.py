"""Records of type `user`, `gemini`, `info`, `error` and `warning`: what each says, and what of it is new.

A record replaces the one of its id, and a checkpoint repeats all with less in it. Readings are joined, so a record of
its own is told whole each time, and a checkpoint's copy only where it has what no record had.
"""

from __future__ import annotations

from msgspec import Raw

from turnlog.agents.gemini_cli.answers import tell_answer
from turnlog.agents.gemini_cli.calls import response_result
from turnlog.agents.gemini_cli.kinds import KINDS
from turnlog.agents.gemini_cli.logged import Logged, Said
from turnlog.agents.gemini_cli.origins import SPOKEN, is_placeholder, origin_of
from turnlog.agents.gemini_cli.prompts import shows_file, tell_words
from turnlog.agents.gemini_cli.reading import Reading, aware_or_none
from turnlog.agents.gemini_cli.records import Call
from turnlog.agents.gemini_cli.state import Entry
from turnlog.model import (
    ErrorEvent,
    InterruptEvent,
    Origin,
    RecordEvent,
)

_CANCELLED = "Request cancelled."


def read_message(reading: Reading, logged: Logged, said: Said, *, origin: Origin | None = None) -> bool:
    """Tell of a message, and remember it; whether it is one, and not only results or a note.

    Args:
        reading: The feed.
        logged: Where the message stands.
        said: What it says.
        origin: Where it came from, if its place in a list tells.
    """
    record = logged.record
    reading.note_times(None if logged.is_copy else record.timestamp)
    is_note = record.type not in ("user", "gemini") and not shows_file(said)
    if is_note or is_placeholder(record, said):
        _read_note(reading, logged, said)
        return False
    _read_responses(reading, logged, said)
    if record.type == "user" and said.responses and not said.pieces:
        _remember(reading, logged, Entry(logged.position, is_message=False, key=said.checksum))
        return False
    entry = reading.state.entries.get(logged.key)
    if entry is None:
        entry = _new_entry(reading, logged, said, origin)
    if record.type != "gemini":
        tell_words(reading, logged, said, entry)
    else:
        tell_answer(reading, logged, said, entry)
    _remember(reading, logged, entry)
    return True


def _remember(reading: Reading, logged: Logged, entry: Entry) -> None:
    entries = reading.state.entries
    known = entries.get(logged.key)
    if known is None or known.is_message == entry.is_message:
        entries[logged.key] = entry


def _new_entry(reading: Reading, logged: Logged, said: Said, origin: Origin | None) -> Entry:
    """The turn and step of a message that was not there yet."""
    state = reading.state
    if origin is None:
        begun = reading.state.turn > 0
        origin = origin_of(logged, said, is_subagent=reading.is_subagent, is_begun=begun)
    step = None
    if origin in SPOKEN:
        state.turn += 1
        state.step = 0
    elif logged.record.type == "gemini" and origin is None:
        state.step += 1
        step = state.step
    return Entry(logged.position, is_message=True, turn=state.turn or None, step=step, origin=origin)


def _read_responses(reading: Reading, logged: Logged, said: Said) -> None:
    """Results that the log stores once more beside their calls; after a checkpoint perhaps nowhere else."""
    state = reading.state
    for response in said.responses:
        if response.call_id in state.answered:
            continue
        state.answered[response.call_id] = None
        at = None if logged.is_copy else aware_or_none(logged.record.timestamp)
        result = response_result(response, Call(name=response.name, timestamp=at))
        reading.add_late_result(response.call_id, result, logged.position, logged.length)


def _read_note(reading: Reading, logged: Logged, said: Said) -> None:
    """What nobody said: what the CLI showed, or put in the place of an answer."""
    record, state = logged.record, reading.state
    if logged.key in state.entries:
        return
    state.entries[logged.key] = Entry(logged.position, is_message=False, key=said.checksum)
    at = aware_or_none(record.timestamp)
    identity = reading.message_id(logged.key)
    place = logged.position, logged.length
    if record.type == "error":
        reading.add_event(ErrorEvent(id=identity, created_at=at, error_text=said.text, kind="cli"), *place)
    elif said.text.strip() == _CANCELLED:
        leaf = None if state.leaf is None else reading.message_id(state.leaf)
        during = "tool" if state.leaf is not None and state.entries[state.leaf].is_at_tool else "answer"
        reading.add_event(InterruptEvent(id=identity, created_at=at, during=during, message_id=leaf), *place)
    else:
        kind = record.type or ""
        known = kind in KINDS
        reading.add_event(
            RecordEvent(id=identity, created_at=at, kind=kind, known=known, data=Raw(logged.json)), *place
        )
