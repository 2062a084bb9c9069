"""Recorded files of klaude-code, logs made by hand, and what their folds bring."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from support.claude_files import Gathered, gather
from turnlog.agents import fold_bytes
from turnlog.agents.base import Source
from turnlog.agents.klaude import Klaude
from turnlog.model import Message

DATA = Path(__file__).parents[1] / "data" / "klaude" / "versions"
AGENT = Klaude()
SESSION = "3f6f0b7c1d6b4a4e8a51f1c2d3e4f501"
SESSION_ID = f"klaude:{SESSION}"


def sources(version: str) -> list[Source]:
    """Every source of one version's recorded files."""
    return list(AGENT.discover([DATA / version]))


def read(found: Iterable[Source]) -> Gathered:
    return gather(*(fold_bytes(AGENT, source, Path(source.path).read_bytes()) for source in found))


def log_source() -> Source:
    path = f"/home/dev/.klaude/projects/home-dev-project/sessions/{SESSION}/events.jsonl"
    return Source(agent="klaude", path=path, root="/home/dev/.klaude", session_id=SESSION_ID)


def lines(*records: Any) -> bytes:
    """A log of these records; bytes are taken as they are."""
    return b"".join(
        (record if isinstance(record, bytes) else json.dumps(record).encode()) + b"\n" for record in records
    )


def fold(*records: Any) -> Gathered:
    """What a log of these records brings."""
    return gather(fold_bytes(AGENT, log_source(), lines(*records)))


def record(kind: str, **data: Any) -> dict[str, Any]:
    return {"type": kind, "data": {"created_at": "2026-11-21T10:00:00.000001", **data}}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def user(identity: str, words: str, **data: Any) -> dict[str, Any]:
    return record("UserMessage", id=identity, role="user", parts=[text(words)], **data)


def answer(identity: str, *parts: dict[str, Any], **data: Any) -> dict[str, Any]:
    return record("AssistantMessage", id=identity, role="assistant", parts=list(parts), **data)


def call(identity: str, arguments: str = "{}", name: str = "Bash") -> dict[str, Any]:
    return {"type": "tool_call", "call_id": identity, "tool_name": name, "arguments_json": arguments}


def result(identity: str, status: str = "success", output: str = "ok", **data: Any) -> dict[str, Any]:
    given: dict[str, Any] = {
        "call_id": identity,
        "tool_name": "Bash",
        "status": status,
        "output_text": output,
        "parts": [],
        **data,
    }
    return record("ToolResultMessage", role="tool", **given)


def said(gathered: Gathered) -> list[Message]:
    return gathered.in_order(SESSION_ID)
