"""Recorded files of Gemini CLI, logs made by hand, and what their folds bring."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from support.claude_files import Gathered, gather
from turnlog.agents import fold_bytes
from turnlog.agents.base import Source, SourceKind
from turnlog.agents.gemini_cli import GeminiCli
from turnlog.model import Message

DATA = Path(__file__).parents[1] / "data" / "gemini_cli"
AGENT = GeminiCli()
SESSION = "11111111-1111-4111-8111-111111111111"
SESSION_ID = f"gemini-cli:{SESSION}"
ROOT = "/home/dev/.gemini"


def sources(*parts: str) -> list[Source]:
    """Every source below a folder of the recorded files."""
    return list(AGENT.discover([DATA.joinpath(*parts)]))


def data_of(source: Source) -> bytes:
    return Path(source.path).read_bytes()


def read(found: Iterable[Source]) -> Gathered:
    return gather(*(fold_bytes(AGENT, source, data_of(source)) for source in found))


def log_source(*, appendable: bool = True, kind: SourceKind = SourceKind.SESSION, name: str = "a") -> Source:
    ending = "jsonl" if appendable else "json"
    path = f"{ROOT}/tmp/project/chats/session-2026-11-21T10-00-{name}.{ending}"
    return Source(agent="gemini-cli", path=path, root=ROOT, kind=kind, appendable=appendable)


def lines(*records: Any) -> bytes:
    """A log of these records; bytes are taken as they are."""
    return b"".join(
        (record if isinstance(record, bytes) else json.dumps(record).encode()) + b"\n" for record in records
    )


def fold(*records: Any, kind: SourceKind = SourceKind.SESSION) -> Gathered:
    """What a log of these records brings."""
    return gather(fold_bytes(AGENT, log_source(kind=kind), lines(*records)))


def fold_json(record: Any) -> Gathered:
    """What a file of JSON brings."""
    data = record if isinstance(record, bytes) else json.dumps(record, indent=2).encode()
    return gather(fold_bytes(AGENT, log_source(appendable=False), data))


def header(session: str = SESSION, **fields: Any) -> dict[str, Any]:
    facts = {
        "projectHash": "0" * 64,
        "startTime": "2026-11-21T10:00:00.000Z",
        "lastUpdated": "2026-11-21T10:00:00.000Z",
    }
    return {"sessionId": session, **facts, "kind": "main", **fields}


def user(identity: str, content: Any, **fields: Any) -> dict[str, Any]:
    parts = [{"text": content}] if isinstance(content, str) else content
    return {"id": identity, "timestamp": "2026-11-21T10:00:01.000Z", "type": "user", "content": parts, **fields}


def answer(identity: str, content: Any = "", **fields: Any) -> dict[str, Any]:
    made = {"id": identity, "timestamp": "2026-11-21T10:00:02.000Z", "type": "gemini", "content": content}
    return {**made, "model": "gemini-3.8-flash", **fields}


def response(call: str, output: str = "done", name: str = "glob") -> dict[str, Any]:
    return {"functionResponse": {"id": call, "name": name, "response": {"output": output}}}


def call(identity: str, output: str | None = "done", *, name: str = "glob", **fields: Any) -> dict[str, Any]:
    result = None if output is None else [response(identity, output, name)]
    made = {"id": identity, "name": name, "args": {"pattern": "*"}, "result": result, "status": "success"}
    return {**made, "timestamp": "2026-11-21T10:00:03.000Z", **fields}


def tokens(**counts: int) -> dict[str, int]:
    return {"input": 0, "output": 0, "cached": 0, "thoughts": 0, "tool": 0, "total": 0, **counts}


def checkpoint(*messages: dict[str, Any]) -> dict[str, Any]:
    return {"$set": {"messages": list(messages), "lastUpdated": "2026-11-21T10:00:09.000Z"}}


def message(gathered: Gathered, key: str) -> Message:
    """A message by its type and id: `user:u1`."""
    return gathered.messages[f"{SESSION}:{key}"]
