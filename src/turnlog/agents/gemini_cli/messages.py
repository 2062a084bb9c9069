"""Records of type `user`, `gemini`, `info`, `error` and `warning`: what each says, and what of it is new.

A record replaces the one of its id, and a checkpoint repeats all with less in it. Readings are joined, so a record of
its own is told whole each time, and a checkpoint's copy only where it has what no record had.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec
from msgspec import Raw

from turnlog.agents.gemini_cli import contents
from turnlog.agents.gemini_cli.answers import tell_answer
from turnlog.agents.gemini_cli.calls import response_result
from turnlog.agents.gemini_cli.contents import pieces_of, spoken_in
from turnlog.agents.gemini_cli.kinds import KINDS, Becomes
from turnlog.agents.gemini_cli.logged import CONTEXT, Logged, Said, metadata_of
from turnlog.agents.gemini_cli.reading import Reading, aware_or_none
from turnlog.agents.gemini_cli.records import Call
from turnlog.agents.gemini_cli.sources import NAME
from turnlog.agents.gemini_cli.state import Entry
from turnlog.model import (
    ErrorEvent,
    InterruptEvent,
    Message,
    Origin,
    Part,
    RecordEvent,
    TextPart,
)

SPOKEN = frozenset({Origin.PROMPT, Origin.SUBAGENT_PROMPT})
"""Origins that begin a turn."""

_ASKS_SUBAGENT = (
    "Your task is to do a deep investigation of the codebase to find all relevant files",
    "Your task is to answer the following question about Gemini CLI:\n<question>",
)
"""How what the CLI asks its own subagents begins (`codebase_investigator`, `cli_help`)."""

_SUMMARY = "<state_snapshot>"
_LEFTOVER = "[Function Response:"
_CANCELLED = "Request cancelled."
_TITLE_LENGTH = 200
_FOLDER = re.compile(
    r"(?:Workspace Directories:\*\*|working in the (?:directory|following directories):)\s+(?:- )?(\S.*)"
)


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
    if record.type not in ("user", "gemini"):
        _read_note(reading, logged, said)
        return False
    _read_responses(reading, logged, said)
    if record.type == "user" and said.responses and not said.pieces:
        _remember(reading, logged, Entry(logged.position, is_message=False, key=said.checksum))
        return False
    entry = reading.state.entries.get(logged.key)
    if entry is None:
        entry = _new_entry(reading, logged, said, origin)
    if record.type == "user":
        _tell_user(reading, logged, said, entry)
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
    origin = origin or _origin_of(reading, logged, said)
    step = None
    if origin in SPOKEN:
        state.turn += 1
        state.step = 0
    elif logged.record.type == "gemini" and origin is None:
        state.step += 1
        step = state.step
    return Entry(logged.position, is_message=True, turn=state.turn or None, step=step, origin=origin)


# -- what people and the harness said


_FILES_BEGIN = "--- Content from referenced files ---"
"""From here on a prompt is what the agent put in for each `@file`."""


def _user_parts(said: Said, message_id: str) -> Iterator[Part]:
    is_put_in = False
    for piece in said.pieces:
        part = contents.part_of(piece, f"{message_id}.{piece.rank}")
        if isinstance(part, TextPart):
            is_put_in = is_put_in or part.text.strip() == _FILES_BEGIN
            if is_put_in:
                part = msgspec.structs.replace(part, metadata={NAME: {"synthetic": True}})
        yield part


def _tell_user(reading: Reading, logged: Logged, said: Said, entry: Entry) -> None:
    if logged.is_copy and logged.key in reading.state.entries:
        return
    entry.key, entry.is_full = said.checksum, not logged.is_copy
    record = logged.record
    message_id = reading.message_id(logged.key)
    shown = spoken_in(pieces_of(record.display_content))
    message = Message(
        id=message_id,
        role="user" if entry.origin in SPOKEN else "developer",
        parts=tuple(_user_parts(said, message_id)),
        origin=entry.origin,
        created_at=aware_or_none(record.timestamp),
        metadata=metadata_of(logged, {"display": shown} if shown and shown != said.text else {}),
    )
    reading.add_message(logged.key, message, entry, ((logged.position, logged.length, None),))
    if entry.origin in SPOKEN:
        _note_title(reading, shown or said.text)
    elif said.text.startswith(CONTEXT):
        _note_context(reading, said.text)


def _origin_of(reading: Reading, logged: Logged, said: Said) -> Origin | None:
    """Where a message came from; None for the model's. To a subagent only its first message is a prompt."""
    if logged.record.type == "gemini":
        return None
    if said.text.startswith(CONTEXT) or said.text.startswith(_LEFTOVER) or said.responses:
        return Origin.HARNESS
    if said.text.startswith(_SUMMARY):
        return Origin.COMPACTION
    if not reading.is_subagent:
        return Origin.HARNESS if asks_subagent(said.text) else Origin.PROMPT
    return Origin.HARNESS if reading.state.turn else Origin.SUBAGENT_PROMPT


def asks_subagent(text: str) -> bool:
    """Whether a text is what the CLI asks one of its own subagents: in 0.30 it stands in the log of the session."""
    return text.startswith(_ASKS_SUBAGENT)


def _note_title(reading: Reading, text: str) -> None:
    title = " ".join(text.split())[:_TITLE_LENGTH]
    if title and not reading.state.titled:
        reading.session.titles["prompt"] = title
        reading.state.titled = True


def _note_context(reading: Reading, text: str) -> None:
    found = _FOLDER.search(text)
    if found is not None:
        reading.note_folder(found[1].strip())


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
    """What the CLI showed and no model saw."""
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
        reading.add_event(InterruptEvent(id=identity, created_at=at, during="answer", message_id=leaf), *place)
    else:
        kind = record.type or ""
        known = KINDS.get(kind) is Becomes.RECORD
        reading.add_event(
            RecordEvent(id=identity, created_at=at, kind=kind, known=known, data=Raw(logged.json)), *place
        )
