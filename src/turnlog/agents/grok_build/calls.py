"""The tokens of single calls of the model: they are in the program's own log of a home, and in no session's.

`logs/unified.jsonl` has two lines for each call of a session, with the times between which it ran; an answer of the
session began to stream between them. The program cuts the older half off when the file has 5 MB, so that only the calls
of the last days are known.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from turnlog.agents.base import Source
from turnlog.agents.decoding import Count
from turnlog.agents.files import read_regular_file
from turnlog.agents.grok_build.records import TurnUsage
from turnlog.agents.jsonl import UNREADABLE

LOG: Final = "logs/unified.jsonl"

_BEGIN, _END = "shell.turn.inference_start", "shell.turn.inference_done"

_MARK = b'"shell.turn.inference_'

_LARGEST = 64 << 20
"""More than the program lets it grow to."""


class _Counted(msgspec.Struct):
    loop_index: int | None = None
    prompt_tokens: Count | None = None
    cached_prompt_tokens: Count | None = None
    completion_tokens: Count | None = None
    reasoning_tokens: Count | None = None


class _Line(msgspec.Struct):
    ts: datetime | None = None
    sid: str = ""
    msg: str = ""
    ctx: _Counted | None = None


class Call(NamedTuple):
    """A call of the model that has ended."""

    begin: float
    end: float
    """When it ran, in Unix milliseconds."""
    used: TurnUsage


def call_at(source: Source, began: int) -> Call | None:
    """The call in which an answer of a session began to stream; None if the home's log does not have it (any more)."""
    calls = _calls_of(source)
    place = bisect_right(calls, began, key=lambda call: call.begin)
    return calls[place - 1] if place and began <= calls[place - 1].end else None


def _calls_of(source: Source) -> Sequence[Call]:
    """The calls of a session, in their order. One ends before the next begins."""
    path = Path(source.root) / LOG
    try:
        found = path.stat()
    except OSError:
        return ()
    name = (source.session_id or "").partition(":")[2]
    return _calls_in(os.fspath(path), found.st_mtime_ns, found.st_size).get(name, ())


@lru_cache(maxsize=1)
def _calls_in(path: str, changed: int, size: int) -> dict[str, list[Call]]:
    """Session -> its calls. The time and the size of the file are there to read it again when it has changed."""
    calls: dict[str, list[Call]] = {}
    began: dict[str, _Line] = {}
    for line in _lines(read_regular_file(path, _LARGEST)):
        if line.ts is None or line.ctx is None:
            continue
        if line.msg == _BEGIN:
            began[line.sid] = line
            continue
        first = began.pop(line.sid, None) if line.msg == _END else None
        if first is None or first.ts is None or first.ctx is None or first.ctx.loop_index != line.ctx.loop_index:
            continue
        used = TurnUsage(
            input_tokens=line.ctx.prompt_tokens,
            output_tokens=line.ctx.completion_tokens,
            cached_read_tokens=line.ctx.cached_prompt_tokens,
            reasoning_tokens=line.ctx.reasoning_tokens,
        )
        calls.setdefault(line.sid, []).append(Call(_milliseconds(first.ts), _milliseconds(line.ts), used))
    return calls


def _lines(data: bytes) -> Iterator[_Line]:
    for line in data.split(b"\n"):
        if _MARK in line:
            try:
                yield msgspec.json.decode(line, type=_Line)
            except UNREADABLE:
                continue


def _milliseconds(at: datetime) -> float:
    return round(at.timestamp() * 1000)
