"""Records of type `user`, `gemini`, `info`, `error` and `warning`: what each says, and what of it is new.

A record replaces the one of its id, and a checkpoint repeats all with less in it. Readings are joined, so a record of
its own is told whole each time, and a checkpoint's copy only where it has what no record had.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple
from zlib import crc32

import msgspec
from msgspec import Raw

from turnlog.agents.base import Link, RecordRef
from turnlog.agents.gemini_cli import contents
from turnlog.agents.gemini_cli.calls import LoggedCall, call_part, calls_in, is_answered, response_result
from turnlog.agents.gemini_cli.contents import Piece, pieces_of, spoken_in
from turnlog.agents.gemini_cli.kinds import KINDS, Becomes
from turnlog.agents.gemini_cli.reading import Reading, aware_or_none
from turnlog.agents.gemini_cli.records import Call, Record, Thought, Tokens, fields_of
from turnlog.agents.gemini_cli.sources import NAME, session_id
from turnlog.agents.gemini_cli.state import Entry
from turnlog.agents.jsonl import clean_json
from turnlog.agents.reading import names_of, other_fields
from turnlog.model import (
    ErrorEvent,
    InterruptEvent,
    Message,
    Origin,
    Part,
    ReasoningPart,
    RecordEvent,
    TextPart,
    ToolCallPart,
    Usage,
)

SPOKEN = frozenset({Origin.PROMPT, Origin.SUBAGENT_PROMPT})
"""Origins that begin a turn."""

_ASKS_SUBAGENT = (
    "Your task is to do a deep investigation of the codebase to find all relevant files",
    "Your task is to answer the following question about Gemini CLI:\n<question>",
)
"""How what the CLI asks its own subagents begins (`codebase_investigator`, `cli_help`)."""

CONTEXT = "<session_context>"
SUMMARY = "<state_snapshot>"
_FIELDS = names_of(Record)
_LEFTOVER = "[Function Response:"
_CANCELLED = "Request cancelled."
_TITLE_LENGTH = 200
_TEXT, _FILES, _CALLS = 10_000, 15_000, 20_000
"""Block numbers: thoughts, then the text, files and calls. The log does not tell how they were interleaved."""
_FOLDER = re.compile(
    r"(?:Workspace Directories:\*\*|working in the (?:directory|following directories):)\s+(?:- )?(\S.*)"
)


class Logged(NamedTuple):
    """A message as it stands in the file."""

    record: Record
    json: bytes
    position: int
    length: int
    is_copy: bool = False
    """Stands in a checkpoint."""
    original: str | None = None
    """Key of the message that this is a copy of under another id."""
    is_later_round: bool = False
    """Was part of another message, which counts for both."""

    @property
    def key(self) -> str:
        """What names it in the session: one id may be that of a message and of the results of its calls."""
        record = self.record
        if self.original is not None:
            return self.original
        return f"{record.type}:{record.id}" if record.id is not None else f"{record.type}@{self.position}"


class Said(NamedTuple):
    """What a message says."""

    pieces: list[Piece]
    responses: list[contents.Response]
    calls: list[LoggedCall]
    text: str

    @property
    def checksum(self) -> int:
        """The same for a message and its copy under another id."""
        calls = ",".join(sorted(call.id for call in self.calls))
        answers = ",".join(response.call_id for response in self.responses)
        return crc32(f"{self.text}|{calls}|{answers}".encode(errors="replace"))


def text_checksum(text: str) -> int:
    """The checksum of a message that says nothing but a text."""
    return Said([], [], [], text).checksum


def said_by(logged: Logged) -> Said:
    """Take a message apart."""
    pieces = pieces_of(logged.record.content)
    responses: list[contents.Response] = []
    if logged.record.type == "user":
        responses, pieces = contents.responses_in(pieces)
    calls = calls_in(logged.record, logged.json, logged.position, pieces) if logged.record.type == "gemini" else []
    return Said(pieces, responses, calls, spoken_in(pieces))


def is_context(logged: Logged) -> bool:
    """Whether it is what the CLI tells the model about the place before the first prompt."""
    return logged.record.type == "user" and CONTEXT.encode() in logged.json[:4096]


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
        _tell_answer(reading, logged, said, entry)
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
        parts=tuple(contents.part_of(piece, f"{message_id}.{piece.rank}") for piece in said.pieces),
        origin=entry.origin,
        created_at=aware_or_none(record.timestamp),
        metadata=_metadata_of(logged, {"display": shown} if shown and shown != said.text else {}),
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
    if said.text.startswith(SUMMARY):
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


# -- what the model said


def _tell_answer(reading: Reading, logged: Logged, said: Said, entry: Entry) -> None:
    record = logged.record
    message_id = reading.message_id(logged.key)
    repeats = logged.is_copy and entry.is_full
    parts: list[Part] = [] if repeats else _spoken_parts(record, said, message_id)
    refs: list[RecordRef] = [(logged.position, logged.length, None)]
    for index, call in enumerate(said.calls):
        part = _tell_call(reading, call, f"{message_id}.{_CALLS + index}", logged)
        if repeats and part.provider is None and not part.results:
            continue
        parts.append(part)
        refs += [(call.position, call.length, result.id) for result in part.results]
    if repeats and not parts:
        return
    entry.is_full = entry.is_full or not logged.is_copy or bool(record.tokens or record.tool_calls or record.thoughts)
    entry.key = said.checksum
    message = Message(
        id=message_id,
        role="assistant" if entry.origin is None else "developer",
        parts=tuple(parts),
        origin=entry.origin,
        created_at=None if repeats else aware_or_none(record.timestamp),
        model=record.model,
        usage=usage_of(record.tokens),
        metadata=_metadata_of(logged, {}),
    )
    reading.add_message(logged.key, message, entry, tuple(refs))


def _metadata_of(logged: Logged, facts: dict[str, Any]) -> dict[str, Any]:
    """Facts that only this agent tells; a later round's JSON is only its calls'."""
    if not logged.is_later_round and not logged.is_copy:
        facts = facts | other_fields(fields_of(clean_json(logged.json)), _FIELDS)
    return {NAME: facts} if facts else {}


def _spoken_parts(record: Record, said: Said, message_id: str) -> list[Part]:
    thoughts = [_thought_text(thought) for thought in record.thoughts or ()]
    if not thoughts:
        thoughts = [piece.part.text or "" for piece in said.pieces if piece.is_thought]
    parts: list[Part] = [
        ReasoningPart(id=f"{message_id}.{index}", text=text) for index, text in enumerate(thoughts) if text
    ]
    if said.text:
        parts.append(TextPart(id=f"{message_id}.{_TEXT}", text=said.text))
    rest = [piece for piece in said.pieces if piece.part.text is None and piece.part.function_call is None]
    parts += [contents.part_of(piece, f"{message_id}.{_FILES + index}") for index, piece in enumerate(rest)]
    return parts


def _thought_text(thought: Thought) -> str:
    """As the model wrote it, and as a checkpoint has it."""
    subject, description = thought.subject or "", thought.description or ""
    return f"**{subject}** {description}" if subject else description


def _tell_call(reading: Reading, call: LoggedCall, part_id: str, logged: Logged) -> ToolCallPart:
    """The call; its result comes with it unless the log has told one already, perhaps a longer one."""
    state = reading.state
    asked_at = None if logged.is_copy else aware_or_none(logged.record.timestamp)
    part = call_part(call, part_id, logged.record.model, asked_at)
    if is_answered(part):
        if call.id in state.answered:
            part = msgspec.structs.replace(part, results=())
        else:
            state.answered[call.id] = None
    if call.wire.agent_id is not None:
        link = Link(
            kind="subagent",
            parent_session_id=reading.session_id,
            child_session_id=session_id(call.wire.agent_id),
            tool_call_id=call.id,
            message_id=reading.message_id(logged.key),
        )
        if link not in reading.changes.links:
            reading.changes.links.append(link)
    return part


def usage_of(tokens: Tokens | None) -> Usage | None:
    """Tokens of one request in disjoint buckets: `input` counts the cached, `output` leaves out the thoughts."""
    if tokens is None:
        return None
    fresh = None if tokens.input is None else max(0, tokens.input - (tokens.cached or 0))
    return Usage(
        input=fresh,
        cache_read=tokens.cached,
        output=tokens.output,
        reasoning=tokens.thoughts,
        tool_prompt=tokens.tool,
    )


# -- results in messages of their own, and notes


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
