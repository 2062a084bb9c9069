"""Recorded files of Copilot CLI, logs made by hand, and what their folds bring."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from support.claude_files import Gathered, gather
from turnlog.agents import fold_bytes
from turnlog.agents.base import Source, SourceKind
from turnlog.agents.copilot_cli import CopilotCli

DATA = Path(__file__).parents[1] / "data" / "copilot_cli" / "1.0.102"
AGENT = CopilotCli()
SESSION = "3f6f0b7c-1d6b-4a4e-8a51-f1c2d3e4f501"
SESSION_ID = f"copilot-cli:{SESSION}"


def logs(case: str) -> list[Source]:
    """The logs of one recorded home, in the order of their names."""
    return [source for source in AGENT.discover([DATA / case]) if source.kind is SourceKind.SESSION]


def read(source: Source) -> Gathered:
    return gather(fold_bytes(AGENT, source, Path(source.path).read_bytes()))


def log_of(case: str, prompt: str) -> Gathered:
    """The recorded session that begins with a prompt."""
    return next(found for found in map(read, logs(case)) if first_title(found) == prompt)


def first_title(found: Gathered) -> str:
    return next(iter(found.sessions.values())).titles["prompt"]


def own_id(found: Gathered) -> str:
    """The id of the session itself, which its first record names."""
    return next(iter(found.sessions))


def log_source() -> Source:
    path = f"/home/dev/.copilot/session-state/{SESSION}/events.jsonl"
    return Source(agent="copilot-cli", path=path, root="/home/dev/.copilot", session_id=SESSION_ID)


def record(kind: str, number: int, agent: str | None = None, **data: Any) -> dict[str, Any]:
    """A record: the `number`-th of its log, written in that second."""
    envelope = {
        "id": f"e{number}",
        "timestamp": f"2026-11-21T10:00:{number:02}.000Z",
        "parentId": f"e{number - 1}" if number else None,
    }
    return {"type": kind, "data": data, **envelope} | ({"agentId": agent} if agent is not None else {})


def request(identity: str, name: str = "bash", **arguments: Any) -> dict[str, Any]:
    return {"toolCallId": identity, "name": name, "arguments": arguments, "type": "function"}


def lines(*records: Any) -> bytes:
    """A log of these records; bytes are taken as they are."""
    return b"".join((each if isinstance(each, bytes) else json.dumps(each).encode()) + b"\n" for each in records)


def fold(*records: Any) -> Gathered:
    """What a log of these records brings."""
    return gather(fold_bytes(AGENT, log_source(), lines(*records)))
