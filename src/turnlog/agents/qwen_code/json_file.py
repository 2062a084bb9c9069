"""The fold of one file of JSON, which Qwen Code wrote before 0.5: a header with all messages in it.

The file is rewritten whole. Qwen Code is a fork of Gemini CLI, and these files are like those of that time, but an
answer has the type `qwen`. In a run without a terminal 0.1.4 logs no calls.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
from msgspec import UNSET, Raw

from turnlog.agents.base import Source, StatelessFold
from turnlog.agents.changes import Changes, EventChange, MessageChange, Placement, SessionChange
from turnlog.agents.decoding import LineContext, aware, clean_json, fields_of
from turnlog.agents.gemini_cli.records import (
    CALLS,
    LINES,
    MESSAGE_TYPES,
    GeminiCall,
    GeminiRecord,
    RequestTokens,
    compact,
    joined_text,
    parse_parts,
    split_responses,
    to_part,
)
from turnlog.agents.json_file import locate_items, read_object
from turnlog.agents.qwen_code.records import UsageMetadata, usage_of
from turnlog.agents.qwen_code.results import TOOL_KINDS, make_result
from turnlog.agents.qwen_code.sources import session_id
from turnlog.model import (
    Message,
    Origin,
    Part,
    ReasoningPart,
    RecordEvent,
    RunMetadataEvent,
    ToolCallPart,
    ToolKind,
    ToolResult,
)
from turnlog.model.parts import STATE_OF_STATUS
from turnlog.model.session import title_from

_MESSAGE_TYPES = frozenset({*MESSAGE_TYPES, "qwen"})

_HARNESS = ("[Function Response:",)
"""How texts of type `user` begin that Qwen Code wrote in a person's place."""

_FILES = "\n--- Content from referenced files ---"


def _is_message(fields: dict[str, Any]) -> bool:
    """Whether an object is a message and not a part of one."""
    return "timestamp" in fields and fields.get("type") in _MESSAGE_TYPES


class QwenJsonFold(StatelessFold):
    """Reads one file of JSON."""

    def __init__(self, source: Source) -> None:
        self._source = source

    def feed(self, data: bytes, offset: int) -> Changes:
        """See `turnlog.agents.base.Fold.feed`."""
        reading = _Reading(Path(self._source.path).stem)
        reading.read(data)
        return reading.changes


class _Reading(LineContext):
    """One reading of a file: its header, then its messages in order."""

    def __init__(self, name: str) -> None:
        super().__init__(Changes())
        self._external = name
        self._leaf: str | None = None
        self._turn = 0
        self._step = 0

    def read(self, data: bytes) -> None:
        """Read a whole file; of a damaged one the messages that are complete."""
        record = read_object(self, data, LINES, _is_message)
        if record is None:
            return
        self._read_header(record)
        for raw, position, length in list(locate_items(record.messages or (), self.json, self.position)):
            self._read_item(raw, position, length)

    def _read_header(self, record: GeminiRecord) -> None:
        # The name of the file has only the beginning of the id.
        self._external = record.session_id or self._external
        self._session = SessionChange(
            session_id=session_id(self._external),
            first_at=_aware(record.start_time),
            last_at=_aware(record.last_updated),
            # A later version of the file may have dropped messages, of which this one says nothing.
            has_branches=True,
        )
        self.changes.sessions[self._session.session_id] = self._session
        fields = {name: raw for name, raw in fields_of(self.json).items() if name != "messages"}
        event = RunMetadataEvent(
            id=f"{self._external}@header",
            created_at=_aware(record.start_time),
            kind="header",
            data=Raw(msgspec.json.encode(fields)),
        )
        self.changes.events.append(
            EventChange(session_id=self._session.session_id, event=event, record=(self.position, self.length))
        )
        self.changes.counts.events += 1

    def _read_item(self, raw: Raw, position: int, length: int) -> None:
        found = LINES.decode(bytes(raw))
        if isinstance(found, str):
            self.report(found, json_path="$.messages")
            self.changes.counts.unreadable += 1
            return
        record = found.record
        if record.type not in ("user", "qwen"):
            self._add_record(record, found.json, position, length)
            return
        identity = record.id or f"{self._external}@{position}"
        message = self._answer(record, identity) if record.type == "qwen" else self._input(record, identity)
        placement = Placement(
            session_id=self._session.session_id,
            position=position,
            records=(
                (position, length, None),
                *((position, 0, result.id) for part in message.parts for result in _results_of(part)),
            ),
            record_ids=(identity,),
            parent_id=self._leaf,
            turn=self._turn or None,
            step=self._step if record.type == "qwen" else None,
        )
        self.changes.messages.append(MessageChange(message=message, placement=placement))
        self.changes.counts.messages += 1
        self._leaf = self._session.active_leaf = identity

    def _add_record(self, record: GeminiRecord, json: bytes, position: int, length: int) -> None:
        """Add what the program showed to the user (`info`, `error`), or a type that is not known."""
        event = RecordEvent(
            id=record.id or f"{self._external}@{position}",
            position=position,
            created_at=_aware(record.timestamp),
            kind=record.type or "",
            known=record.type in ("info", "warning", "error"),
            data=Raw(clean_json(json)),
        )
        self.changes.events.append(
            EventChange(session_id=self._session.session_id, event=event, record=(position, length))
        )
        self.changes.counts.events += 1

    def _input(self, record: GeminiRecord, identity: str) -> Message:
        parts = parse_parts(record.content)
        text = joined_text(parts)
        is_prompt = not text.startswith(_HARNESS)
        if is_prompt:
            self._turn += 1
            self._step = 0
            title = title_from(text.partition(_FILES)[0])
            if title:
                self._session.titles.setdefault("prompt", title)
        return Message(
            id=identity,
            role="user" if is_prompt else "developer",
            parts=tuple(to_part(part, f"{identity}.{number}") for number, part in enumerate(parts)),
            origin=Origin.PROMPT if is_prompt else Origin.HARNESS,
            created_at=_aware(record.timestamp),
        )

    def _answer(self, record: GeminiRecord, identity: str) -> Message:
        self._step += 1
        return Message(
            id=identity,
            role="assistant",
            parts=tuple(_answer_parts(record, identity)),
            created_at=_aware(record.timestamp),
            model=record.model,
            usage=usage_of(_tokens(record.tokens), has_thoughts=bool(record.thoughts)),
        )


def _answer_parts(record: GeminiRecord, identity: str) -> Iterator[Part]:
    number = 0
    for thought in record.thoughts or ():
        # Gemini's API begins each thought with its subject in bold, which these files keep apart.
        text = f"**{thought.subject}** {thought.description or ''}" if thought.subject else thought.description or ""
        if text:
            yield ReasoningPart(id=f"{identity}.{number}", text=text)
            number += 1
    for part in parse_parts(record.content):
        if part.wire.function_call is None:
            yield to_part(part, f"{identity}.{number}")
            number += 1
    for raw in record.tool_calls or ():
        found = CALLS.decode(bytes(raw))
        call = GeminiCall() if isinstance(found, str) else found.record
        yield _call_part(call, f"{identity}.{number}", _aware(record.timestamp))
        number += 1


def _call_part(call: GeminiCall, part_id: str, started_at: datetime | None) -> ToolCallPart:
    name, call_id = call.name or "", call.id or part_id
    part = ToolCallPart(
        id=part_id,
        tool_call_id=call_id,
        tool_name=name,
        kind=TOOL_KINDS.get(name, ToolKind.OTHER),
        input=compact(call.args) if isinstance(call.args, Raw) else UNSET,
        title=call.display_name,
        started_at=started_at,
    )
    responses, others = split_responses(parse_parts(call.result))
    if not responses:
        return part
    content = tuple(each for response in responses for each in response.content)
    whole = responses[0]._replace(content=(*content, *(to_part(other, None) for other in others)))
    result = make_result(
        call_id, name, whole, status=call.status, at=_aware(call.timestamp), duration_ms=None, shown=call.result_display
    )
    return msgspec.structs.replace(part, results=(result,), state=STATE_OF_STATUS[result.status])


def _results_of(part: Part) -> tuple[ToolResult, ...]:
    return part.results if isinstance(part, ToolCallPart) else ()


def _tokens(tokens: RequestTokens | None) -> UsageMetadata | None:
    if tokens is None:
        return None
    return UsageMetadata(
        prompt_token_count=tokens.input,
        cached_content_token_count=tokens.cached,
        candidates_token_count=tokens.output,
        thoughts_token_count=tokens.thoughts,
        tool_use_prompt_token_count=tokens.tool,
    )


def _aware(moment: datetime | None) -> datetime | None:
    return None if moment is None else aware(moment)
