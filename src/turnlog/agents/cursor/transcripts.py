"""The folds of transcripts: a line of JSON for each message, or in older versions one text.

A transcript is a copy of a conversation that leaves out most: results, models, tokens, and times but those of prompts.
A database with the conversation is better, so transcripts are streams to the store (`SourceKind.STREAM`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import msgspec
from msgspec import UNSET, Raw, UnsetType

from turnlog.agents.base import Source, StatelessFold
from turnlog.agents.changes import Changes, Link
from turnlog.agents.conversation import ConversationContext, ConversationFold, blocks_of
from turnlog.agents.cursor import NAME, TURN_END
from turnlog.agents.cursor.places import Place, place_of, session_id
from turnlog.agents.cursor.tools import is_typed, kind_of, prompt_parts, time_in, written_time
from turnlog.agents.decoding import clean_json
from turnlog.agents.jsonl import UNREADABLE, JsonLines
from turnlog.model import (
    ErrorEvent,
    InterruptEvent,
    Message,
    Origin,
    Part,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolResult,
    UnknownPart,
)
from turnlog.model.merge import add_result


class TranscriptMessage(msgspec.Struct, gc=False):
    """What a line says."""

    content: Raw | UnsetType = UNSET
    model: str | None = None


class TranscriptRecord(msgspec.Struct, gc=False):
    """A line of a transcript."""

    role: str | None = None
    message: TranscriptMessage | None = None
    type: str | None = None
    status: str | None = None
    error: str | None = None
    timestamp: str | None = None
    others: dict[str, Any] | None = msgspec.field(name="", default=None)
    """Metadata: the fields that are not read."""


_Complete = cast(
    "type[TranscriptRecord]",
    msgspec.defstruct("_Complete", (), bases=(TranscriptRecord,), gc=False, forbid_unknown_fields=True),
)


class TranscriptBlock(msgspec.Struct, gc=False):
    """A block of a content."""

    type: str = ""
    text: str | None = None
    thinking: str | None = None
    id: str | None = None
    name: str | None = None
    input: Raw | UnsetType = UNSET
    tool_use_id: str | None = None
    content: Raw | UnsetType = UNSET
    is_error: bool | None = None


LINES = JsonLines(
    TranscriptRecord,
    first_keys=("role", "type"),
    plausible=lambda record: record.role is not None or record.type is not None,
    complete=_Complete,
)
"""Reads records out of lines."""

_STOPPED = ("aborted", "cancelled")
_STOPPED_WORDS = "User aborted"


class TranscriptFold(ConversationFold[TranscriptRecord]):
    """Reads lines of JSON."""

    records = LINES

    def __init__(self, source: Source, state: bytes | None = None) -> None:
        super().__init__(source, state)
        self._place = place_of(Path(source.path))

    def session_id(self) -> str:
        """The file is named after its session."""
        return _session_of(self._source)

    def read(self, context: ConversationContext, record: TranscriptRecord) -> None:
        """See `ConversationFold.read`."""
        _describe(context, self._place)
        if record.role == "user":
            self._read_input(context, record)
        elif record.role == "assistant":
            self._read_answer(context, record)
        elif record.type == TURN_END:
            _read_turn_end(context, record)
        else:
            context.add_record(record.type or record.role or "", known=False)

    def _read_input(self, context: ConversationContext, record: TranscriptRecord) -> None:
        identity = context.position_id
        blocks = blocks_of(record.message.content if record.message is not None else UNSET, TranscriptBlock)
        results = [block for block, _ in blocks if block.type == "tool_result"]
        texts = [block.text or "" for block, _ in blocks if block.type == "text"]
        at = written_time(record.timestamp or "") or next(filter(None, map(time_in, texts)), None)
        for number, block in enumerate(results):
            context.add_result(block.tool_use_id or "", _result_of(block, f"{identity}.r{number}"))
        parts: list[Part] = []
        for block, raw in blocks:
            if block.type == "text":
                parts += prompt_parts(block.text or "", identity, len(parts))
            elif block.type != "tool_result":
                parts.append(UnknownPart(id=f"{identity}.{len(parts)}", kind=block.type, data=Raw(bytes(raw))))
        if results and not parts:
            context.changes.counts.results += 1
            return
        is_subagent = self._place.parent is not None
        origin = Origin.SUBAGENT_PROMPT if is_subagent and not context.state.turn else Origin.PROMPT
        if parts and not any(map(is_typed, texts)) and texts[:1] and texts[0].lstrip().startswith("<user_info>"):
            origin = Origin.HARNESS
        context.add(
            Message(
                id=identity,
                role="developer" if origin is Origin.HARNESS else "user",
                parts=tuple(parts),
                origin=origin,
                created_at=at,
                metadata=_metadata(record),
            )
        )

    def _read_answer(self, context: ConversationContext, record: TranscriptRecord) -> None:
        identity, message = context.position_id, record.message or TranscriptMessage()
        blocks = blocks_of(message.content, TranscriptBlock)
        parts = [_answer_part(block, raw, f"{identity}.{number}") for number, (block, raw) in enumerate(blocks)]
        context.add(
            Message(
                id=identity,
                role="assistant",
                parts=tuple(parts),
                created_at=written_time(record.timestamp or ""),
                model=message.model,
                metadata=_metadata(record),
            )
        )


def _metadata(record: TranscriptRecord) -> dict[str, Any]:
    return {NAME: record.others} if record.others else {}


def _answer_part(block: TranscriptBlock, raw: Raw, part_id: str) -> Part:
    if block.type == "text" and block.text is not None:
        return TextPart(id=part_id, text=block.text)
    if block.type in ("thinking", "redacted_thinking"):
        return ReasoningPart(id=part_id, text=block.thinking or "", redacted=not block.thinking)
    if block.type != "tool_use":
        return UnknownPart(id=part_id, kind=block.type, data=Raw(bytes(raw)))
    name = block.name or ""
    return ToolCallPart(
        id=part_id,
        # Most versions name no call.
        tool_call_id=block.id or part_id,
        tool_name=name,
        kind=kind_of(name),
        input=UNSET if isinstance(block.input, UnsetType) else Raw(clean_json(bytes(block.input))),
    )


def _result_of(block: TranscriptBlock, identity: str) -> ToolResult:
    parts = tuple(
        TextPart(id=f"{identity}.{number}", text=found.text)
        if found.text is not None
        else UnknownPart(id=f"{identity}.{number}", kind=found.type, data=Raw(bytes(raw)))
        for number, (found, raw) in enumerate(blocks_of(block.content, TranscriptBlock))
    )
    text = "\n".join([part.text for part in parts if isinstance(part, TextPart)])
    failed = block.is_error is True
    return ToolResult(
        id=identity, status="error" if failed else "success", content=parts, error_text=text if failed else None
    )


def _read_turn_end(context: ConversationContext, record: TranscriptRecord) -> None:
    """Read why a turn has ended."""
    words = record.error or ""
    if record.status in _STOPPED or words.startswith(_STOPPED_WORDS):
        context.add_event(InterruptEvent(id=f"{context.position_id}.interrupt", message_id=context.state.leaf))
    elif words or record.status == "error":
        text = words or "the turn ended with an error"
        context.add_event(ErrorEvent(id=f"{context.position_id}.error", error_text=text, kind=record.status))
    # The next turn is written in its place, and must be later than an end that was read before.
    context.add_run_metadata(TURN_END, position=max(0, context.position - 1))


def _session_of(source: Source) -> str:
    return source.session_id or session_id(Path(source.path).name.partition(".")[0])


def _describe(context: ConversationContext, place: Place) -> None:
    """Say where a session belongs: to a folder, and as a subagent to the session whose folder its file is in."""
    change = context.session
    if change.cwd is None and place.folder is not None:
        change.cwd = change.project_path = place.folder
    if place.parent is not None and not context.changes.links:
        context.changes.links.append(
            Link(kind="subagent", parent_session_id=session_id(place.parent), child_session_id=context.session_id)
        )


# -- older transcripts: one text

_ROLE = re.compile(r"^(?P<role>user|assistant|A):[ \t]*$", re.MULTILINE)
_MARK = re.compile(r"^\[(?P<kind>Thinking|Tool call|Tool result)\][ \t]*(?P<rest>.*)$", re.MULTILINE)


class TextTranscriptFold(StatelessFold):
    """Reads a text with the marks `user:`, `assistant:`, `[Thinking]`, `[Tool call]` and `[Tool result]`."""

    def __init__(self, source: Source) -> None:
        self._source = source

    def feed(self, data: bytes, offset: int) -> Changes:
        """See `turnlog.agents.base.Fold.feed`."""
        context = ConversationContext(_session_of(self._source))
        context.take(data, 0, len(data))
        context.report_replaced_bytes()
        text = data.decode(errors="surrogateescape")
        marks = list(_ROLE.finditer(text))
        if not marks:
            context.report("no line that names a role")
            context.changes.counts.unreadable += 1
            return context.changes
        _describe(context, place_of(Path(self._source.path)))
        for mark, following in zip(marks, [*marks[1:], None], strict=True):
            end = len(text) if following is None else following.start()
            piece = text[mark.end() : end]
            start = _size(text[: mark.start()])
            context.take(data, start, _size(text[mark.start() : end]))
            _read_piece(context, mark["role"], piece)
        return context.changes


def _size(text: str) -> int:
    return len(text.encode(errors="surrogateescape"))


def _clean(text: str) -> str:
    return text.encode(errors="surrogateescape").decode(errors="replace").strip("\n")


def _read_piece(context: ConversationContext, role: str, piece: str) -> None:
    identity, text = context.position_id, _clean(piece)
    if role == "user":
        parts = tuple(prompt_parts(text, identity, 0))
        context.add(Message(id=identity, role="user", parts=parts, origin=Origin.PROMPT, created_at=time_in(text)))
        return
    context.add(Message(id=identity, role="assistant", parts=tuple(_text_parts(text, identity))))


def _text_parts(text: str, identity: str) -> list[Part]:
    """The parts of an answer. Results have no ids: one belongs to the last call of its tool that has none yet."""
    parts: list[Part] = []
    for kind, rest, body in _sections(text, list(_MARK.finditer(text))):
        part_id = f"{identity}.{len(parts)}"
        if kind == "Tool result" and _answer_call(parts, rest, body):
            continue
        if kind == "Thinking":
            parts.append(ReasoningPart(id=part_id, text="\n".join(filter(None, (rest, body)))))
        elif kind == "Tool call":
            call = ToolCallPart(id=part_id, tool_call_id=part_id, tool_name=rest, kind=kind_of(rest), **_input_of(body))
            parts.append(call)
        elif kind or body:
            parts.append(TextPart(id=part_id, text="\n".join(filter(None, (rest, body)))))
    return parts


def _answer_call(parts: list[Part], tool: str, text: str) -> bool:
    """Add a result to the last call of its tool that has none; False if there is none."""
    for number, part in reversed(list(enumerate(parts))):
        if isinstance(part, ToolCallPart) and part.tool_name == tool and not part.results:
            identity = f"{part.id}.result"
            result = ToolResult(id=identity, content=(TextPart(id=f"{identity}.0", text=text),))
            parts[number] = add_result(part, result)
            return True
    return False


def _sections(text: str, marks: list[re.Match[str]]) -> Iterator[tuple[str, str, str]]:
    """Kind, rest of the marked line, and body of each section. A body is indented; what follows it is text."""
    yield "", "", text[: marks[0].start() if marks else len(text)].strip()
    for mark, following in zip(marks, [*marks[1:], None], strict=True):
        lines = text[mark.end() : len(text) if following is None else following.start()].split("\n")
        if lines and not lines[0]:
            lines = lines[1:]
        size = next((at for at, line in enumerate(lines) if line[:1] not in ("", " ", "\t")), len(lines))
        yield mark["kind"], mark["rest"].strip(), _dedented(lines[:size])
        yield "", "", "\n".join(lines[size:]).strip()


def _dedented(lines: list[str]) -> str:
    from textwrap import dedent

    return dedent("\n".join(lines)).strip("\n")


def _input_of(body: str) -> dict[str, Any]:
    """The input of a call: JSON, lines of `name: value` or `name=value`, else the text."""
    try:
        msgspec.json.decode(body)
    except UNREADABLE:
        pairs = [re.match(r"(\w+)(?:: ?|=)(.*)", line) for line in body.split("\n")]
        if not body or not all(pairs):
            return {"input_text": body}
        return {"input": Raw(msgspec.json.encode({pair[1]: pair[2] for pair in pairs if pair is not None}))}
    return {"input": Raw(body.encode())}
