"""Recorded files of Codex, and small rollouts of one's own."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from support.claude_files import Gathered, gather
from turnlog.agents import fold_bytes
from turnlog.agents.base import Source, SourceKind
from turnlog.agents.codex import Codex

DATA = Path(__file__).parents[1] / "data" / "codex"
AGENT = Codex()
THREAD = "01a1fbaa-0000-7000-8000-000000000001"
OTHER = "01a1fbaa-0000-7000-8000-000000000002"
TIME = "2026-11-21T10:00:00.000Z"
META: dict[str, Any] = {"id": THREAD, "timestamp": TIME, "cwd": "/home/dev/case", "cli_version": "0.169.0"}


def sources(*folder: str) -> list[Source]:
    """The files of a recorded home."""
    return list(AGENT.discover([DATA.joinpath(*folder)]))


def logs(*folder: str) -> list[Source]:
    return [source for source in sources(*folder) if source.kind is SourceKind.SESSION]


def read(found: Iterable[Source]) -> Gathered:
    return gather(*(fold_bytes(AGENT, source, Path(source.path).read_bytes()) for source in found))


def source(thread: str = THREAD) -> Source:
    """A rollout that lies nowhere."""
    return Source(agent="codex", path=f"/x/rollout-{thread}.jsonl", root="/x", session_id=f"codex:{thread}")


def line(kind: str, payload: dict[str, Any], at: str = TIME, **more: Any) -> bytes:
    return json.dumps({"timestamp": at, "type": kind, "payload": payload, **more}).encode() + b"\n"


def meta(**facts: Any) -> bytes:
    return line("session_meta", {**META, **facts})


def item(kind: str, at: str = TIME, **fields: Any) -> bytes:
    return line("response_item", {"type": kind, **fields}, at)


def prompt(text: str, at: str = TIME, **fields: Any) -> bytes:
    return item("message", at, role="user", content=[{"type": "input_text", "text": text}], **fields)


def answer(text: str, at: str = TIME, **fields: Any) -> bytes:
    return item("message", at, role="assistant", content=[{"type": "output_text", "text": text}], **fields)


def call(call_id: str, name: str = "exec_command", arguments: str = "{}", **fields: Any) -> bytes:
    return item("function_call", name=name, arguments=arguments, call_id=call_id, **fields)


def output(call_id: str, text: Any, **fields: Any) -> bytes:
    return item("function_call_output", call_id=call_id, output=text, **fields)


def event(kind: str, at: str = TIME, **fields: Any) -> bytes:
    return line("event_msg", {"type": kind, **fields}, at)


def completed(kind: str, **fields: Any) -> bytes:
    """An `item_completed` event."""
    return event("item_completed", item={"type": kind, **fields}, turn_id="t")


def counts(*numbers: int) -> dict[str, int]:
    """Input, cached, output, reasoning."""
    names = ("input_tokens", "cached_input_tokens", "output_tokens", "reasoning_output_tokens")
    return {**dict(zip(names, numbers, strict=True)), "total_tokens": numbers[0] + numbers[2]}


def token_count(total: dict[str, int], last: dict[str, int] | None) -> bytes:
    return event("token_count", info={"total_token_usage": total, "last_token_usage": last})


def usage_record(response: str, usage: dict[str, int]) -> bytes:
    return line("token_usage_record", {"response_id": response, "usage": usage})


def fold(*lines: bytes, thread: str = THREAD) -> Gathered:
    """The history in some lines."""
    return gather(fold_bytes(AGENT, source(thread), b"".join(lines)))


def fold_in_pieces(*pieces: bytes, thread: str = THREAD) -> Gathered:
    """The history in some pieces of a log, read one after the other through a saved state."""
    found, state, offset = Gathered(), None, 0
    for piece in pieces:
        reader = AGENT.fold(source(thread), state)
        found.add(reader.feed(piece, offset))
        state, offset = reader.state(), offset + len(piece)
    return found


def reasoning(*sections: str, sealed: str | None = None, **fields: Any) -> bytes:
    """A `reasoning` item with its summary; `sealed` is its encrypted original."""
    summary = [{"type": "summary_text", "text": text} for text in sections]
    return item("reasoning", summary=summary, content=None, encrypted_content=sealed, **fields)
