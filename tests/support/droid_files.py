"""Recorded files of Droid, logs made by hand, and what their folds bring."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from support.claude_files import Gathered, gather
from turnlog.agents import fold_bytes
from turnlog.agents.base import Source
from turnlog.agents.droid import Droid
from turnlog.model import Message, ToolCallPart

DATA = Path(__file__).parents[1] / "data" / "droid"
AGENT = Droid()
SESSION = "11111111-2222-4333-8444-555555555555"
SESSION_ID = f"droid:{SESSION}"
AT = "2026-11-22T20:13:50.472Z"


def sources(case: str) -> list[Source]:
    """Every source of one recorded home."""
    return list(AGENT.discover([DATA / case]))


def read(found: Iterable[Source]) -> Gathered:
    return gather(*(fold_bytes(AGENT, source, Path(source.path).read_bytes()) for source in found))


def recorded(case: str) -> Gathered:
    return read(sources(case))


def log_source() -> Source:
    path = f"/home/dev/.factory/sessions/-home-dev-work/{SESSION}.jsonl"
    return Source(agent="droid", path=path, root="/home/dev/.factory", session_id=SESSION_ID)


def start(**fields: Any) -> dict[str, Any]:
    return {"type": "session_start", "id": SESSION, "title": "", "version": 2, "cwd": "/home/dev/work"} | fields


def message(record_id: str, parent: str | None, role: str, *blocks: Any, **fields: Any) -> dict[str, Any]:
    """A message record; a text is written as its block, `fields` are those of the message."""
    content = [{"type": "text", "text": block} if isinstance(block, str) else block for block in blocks]
    record = {"type": "message", "id": record_id, "parentId": parent, "timestamp": AT}
    return record | {"message": {"role": role, "content": content} | fields}


def user(record_id: str, parent: str | None, *blocks: Any, **fields: Any) -> dict[str, Any]:
    return message(record_id, parent, "user", *blocks, **fields)


def answer(record_id: str, parent: str | None, *blocks: Any, **fields: Any) -> dict[str, Any]:
    return message(record_id, parent, "assistant", *blocks, modelId="mock-model", **fields)


def call(call_id: str, name: str = "Execute", **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}


def result(call_id: str, content: Any, *, is_error: bool = False) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "is_error": is_error, "content": content}


def compaction(record_id: str, anchor: str, **fields: Any) -> dict[str, Any]:
    base = {"type": "compaction_state", "id": record_id, "timestamp": AT, "summaryText": "What was said."}
    return base | {"summaryKind": "llm_summary", "anchorMessage": {"id": anchor, "index": 0}} | fields


def lines(*records: Any) -> bytes:
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def fold(*records: Any) -> Gathered:
    """What a log of these records brings."""
    return gather(fold_bytes(AGENT, log_source(), lines(*records)))


def calls_of(message: Message) -> list[ToolCallPart]:
    return [part for part in message.parts if isinstance(part, ToolCallPart)]
