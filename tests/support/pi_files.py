"""Recorded files of pi and its family, logs made by hand, and what their folds bring."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from support.claude_files import Gathered, gather
from turnlog.agents import agent
from turnlog.agents.base import Source, SourceKind

DATA = Path(__file__).parents[1] / "data"
SESSION = "01a204ec-8daa-758d-bc69-622334d3a8a2"
HOME = "/home/dev/.pi/agent"


def script(*case: str) -> dict[str, Any]:
    """What the scripted model answered in each step of a recorded case."""
    return json.loads(DATA.joinpath(*case, "script.json").read_text())


def requests(*case: str) -> dict[str, Any]:
    """What the program sent to the model in each step of a recorded case, shortened."""
    return json.loads(DATA.joinpath(*case, "requests.json").read_text())


def log_source(name: str = "pi", path: str | None = None, kind: SourceKind = SourceKind.SESSION) -> Source:
    found = path or f"{HOME}/sessions/--home-dev-work--/2026-11-22T20-22-21-355Z_{SESSION}.jsonl"
    return Source(agent=name, path=found, root=HOME, kind=kind, session_id=f"{name}:{SESSION}")


def header(**fields: Any) -> dict[str, Any]:
    given = {"type": "session", "version": 3, "id": SESSION, "timestamp": "2026-11-22T20:00:00.000Z"}
    return {**given, "cwd": "/home/dev/work", **fields}


def record(kind: str, number: int, parent: int | None = -1, **fields: Any) -> dict[str, Any]:
    """The record with this number, by default a child of the one before it; None: of none."""
    above = number - 1 if parent == -1 else parent
    place = {"id": f"{number:08x}", "parentId": None if above is None or above < 0 else f"{above:08x}"}
    return {"type": kind, **place, "timestamp": f"2026-11-22T20:{number // 60:02}:{number % 60:02}.000Z", **fields}


def said(role: str, number: int, parent: int | None = -1, **fields: Any) -> dict[str, Any]:
    """The record of a message."""
    return record("message", number, parent, message={"role": role, **fields})


def user(text: str, number: int, parent: int | None = -1) -> dict[str, Any]:
    return said("user", number, parent, content=[{"type": "text", "text": text}])


def answer(number: int, *blocks: dict[str, Any], parent: int | None = -1, **fields: Any) -> dict[str, Any]:
    given = {"api": "anthropic-messages", "provider": "anthropic", "model": "claude", "stopReason": "stop"}
    return said("assistant", number, parent, content=list(blocks), **{**given, **fields})


def call(identity: str, name: str = "bash", **arguments: Any) -> dict[str, Any]:
    return {"type": "toolCall", "id": identity, "name": name, "arguments": arguments}


def result(identity: str, number: int, text: str = "ok", **fields: Any) -> dict[str, Any]:
    content = [{"type": "text", "text": text}]
    return said("toolResult", number, toolCallId=identity, toolName="bash", content=content, **fields)


def lines(*records: dict[str, Any] | bytes) -> bytes:
    return b"".join(
        (each if isinstance(each, bytes) else json.dumps(each, separators=(",", ":")).encode()) + b"\n"
        for each in records
    )


def fold(*records: dict[str, Any] | bytes, source: Source | None = None) -> Gathered:
    """What a log of these records brings, after a header."""
    found = source or log_source()
    return gather(agent(found.agent).fold(found).feed(lines(*records), 0))
