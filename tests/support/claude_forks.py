"""A Claude Code session with parallel calls, and forks of it that list them in another order."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from support.claude_files import SESSION, Log, call, lines, text

PROJECT = "projects/-home-dev-proj"
FORK, FORK_OF_FORK = (f"{digit * 8}-{digit * 4}-4{digit * 3}-8{digit * 3}-{digit * 12}" for digit in "09")
"""The ids of the forks sort before and after that of the session that they come out of."""

EQUAL = "2026-11-21T10:00:00.000Z"
FORKED: dict[str, Any] = {"forkedFrom": {"sessionId": SESSION}}
BLOCKS = [
    {"type": "thinking", "thinking": "Which files?", "signature": "c2ln"},
    text("I look into three files."),
    *(call(f"toolu_{name}", "Read", file_path=f"/{name}") for name in "abc"),
]


def timed(records: Iterable[dict[str, Any]], time: str | None) -> list[dict[str, Any]]:
    """The records with one time for all, or with none."""
    bare = [{name: value for name, value in record.items() if name != "timestamp"} for record in records]
    return bare if time is None else [{**record, "timestamp": time} for record in bare]


def family(
    time: str | None, *orders: str, marks: dict[str, Any] | None = None, without: frozenset[int] = frozenset()
) -> dict[str, bytes]:
    """A session with parallel calls, its fork and a fork of that, each with this order and without these blocks."""
    log = Log("2.1.20")
    prompt = log.user("Look")
    blocks = [log.assistant("msg_1", block, stop=None) for block in BLOCKS]
    results = [log.result(f"toolu_{name}") for name in "abc"]
    files = {SESSION: lines(*timed([prompt, *blocks, *results, log.assistant("msg_p", text("Parent"))], time))}
    named = dict(zip("abc", blocks[2:], strict=True))
    parent = SESSION
    for session, order in zip((FORK, FORK_OF_FORK), orders, strict=False):
        log.last = results[-1]["uuid"]
        own = {"sessionId": session}
        kept = [block for number, block in enumerate(blocks[:2]) if number not in without]
        copies = [prompt, *kept, *(named[name] for name in order), *results]
        mark = FORKED if marks is None else marks
        mark = {name: {"sessionId": parent} if name == "forkedFrom" else parent for name in mark}
        ending = log.assistant(f"msg_{session[0]}", text("Fork"))
        files[session] = lines(*timed([*({**copy, **own, **mark} for copy in copies), {**ending, **own}], time))
        parent = session
    return {f"{PROJECT}/{session}.jsonl": data for session, data in files.items()}
