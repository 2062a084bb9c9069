"""Recorded files of Qwen Code, logs made by hand, and what their folds bring."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from support.claude_files import Gathered, gather
from turnlog.agents import fold_bytes
from turnlog.agents.base import Source
from turnlog.agents.qwen_code import QwenCode
from turnlog.model import Message, ToolCallPart

DATA = Path(__file__).parents[1] / "data" / "qwen_code"
AGENT = QwenCode()
SESSION = "11111111-2222-4333-8444-555555555555"
SESSION_ID = f"qwen-code:{SESSION}"
AT = "2026-11-22T20:13:50.472Z"


def sources(case: str) -> list[Source]:
    """Every source of one recorded home."""
    return list(AGENT.discover([DATA / case]))


def read(found: Iterable[Source]) -> Gathered:
    return gather(*(fold_bytes(AGENT, source, Path(source.path).read_bytes()) for source in found))


def recorded(case: str) -> Gathered:
    return read(sources(case))


def log_source() -> Source:
    path = f"/home/dev/.qwen/projects/-home-dev-work/chats/{SESSION}.jsonl"
    return Source(agent="qwen-code", path=path, root="/home/dev/.qwen", session_id=SESSION_ID)


def record(kind: str, uuid: str, parent: str | None, **fields: Any) -> dict[str, Any]:
    """A record of a kind, such as `system/rewind`."""
    name, _, subtype = kind.partition("/")
    base = {"uuid": uuid, "parentUuid": parent, "sessionId": SESSION, "timestamp": AT, "type": name}
    return base | ({"subtype": subtype} if subtype else {}) | {"cwd": "/home/dev/work", "version": "0.24.4"} | fields


def user(uuid: str, parent: str | None, text: str, **fields: Any) -> dict[str, Any]:
    return record("user", uuid, parent, message={"role": "user", "parts": [{"text": text}]}, **fields)


def answer(uuid: str, parent: str | None, *parts: Any, **fields: Any) -> dict[str, Any]:
    message = {"role": "model", "parts": [{"text": part} if isinstance(part, str) else part for part in parts]}
    return record("assistant", uuid, parent, model="mock-model", message=message, **fields)


def call(call_id: str, name: str = "run_shell_command", **arguments: Any) -> dict[str, Any]:
    return {"functionCall": {"id": call_id, "name": name, "args": arguments}}


def result(uuid: str, parent: str | None, call_id: str, **fields: Any) -> dict[str, Any]:
    response = {"id": call_id, "name": "run_shell_command", "response": fields.pop("response", {"output": "done"})}
    message = {"role": "user", "parts": [{"functionResponse": response}]}
    return record("tool_result", uuid, parent, message=message, **fields)


def lines(*records: Any) -> bytes:
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def fold(*records: Any) -> Gathered:
    """What a log of these records brings."""
    return gather(fold_bytes(AGENT, log_source(), lines(*records)))


def calls_of(message: Message) -> list[ToolCallPart]:
    return [part for part in message.parts if isinstance(part, ToolCallPart)]
