"""Reading a chunk stream: ours beside the real `readUIMessageStream` of AI SDK 5, 6 and 7, same stream, same run.

Both get chunks that are parsed already and take a snapshot after every change. Rounds alternate, so that a busy machine
slows both; the figure is the median. The judges of the tests must be installed (make pytest does it).
"""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path
from statistics import median
from typing import Any

from turnlog.aisdk import UIMessageReader, parse_chunk

FOLDER = Path(__file__).parent
ROUNDS = 7


def text_stream(deltas: int) -> list[dict[str, Any]]:
    """One long answer."""
    body = [{"type": "text-delta", "id": "t", "delta": "a few words "} for _ in range(deltas)]
    return [
        {"type": "start", "messageId": "m"},
        {"type": "text-start", "id": "t"},
        *body,
        {"type": "text-end", "id": "t"},
    ]


def tool_stream(calls: int) -> list[dict[str, Any]]:
    """An agent's turn: steps of a little text and a call whose input streams in."""
    chunks: list[dict[str, Any]] = [{"type": "start", "messageId": "m"}]
    for number in range(calls):
        call = {"toolCallId": f"c{number}"}
        text = json.dumps({"path": f"src/module_{number}.py", "content": "print(1)\n" * 40})
        pieces = [text[start : start + 12] for start in range(0, len(text), 12)]
        chunks += [
            {"type": "start-step"},
            {"type": "text-start", "id": "t"},
            *({"type": "text-delta", "id": "t", "delta": "thinking "} for _ in range(20)),
            {"type": "text-end", "id": "t"},
            {"type": "tool-input-start", **call, "toolName": "write"},
            *({"type": "tool-input-delta", **call, "inputTextDelta": piece} for piece in pieces),
            {"type": "tool-input-available", **call, "toolName": "write", "input": json.loads(text)},
            {"type": "tool-output-available", **call, "output": "written"},
            {"type": "finish-step"},
        ]
    return [*chunks, {"type": "finish"}]


def ours(chunks: list[Any], version: int) -> float:
    before = time.perf_counter()
    reader = UIMessageReader(version=version)
    for chunk in chunks:
        if reader.feed(chunk):
            _ = reader.message
    return time.perf_counter() - before


def main() -> None:
    node = subprocess.Popen(
        ["node", "aisdk_reader.mjs"], cwd=FOLDER, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert node.stdin is not None
    assert node.stdout is not None
    print(f"{'stream':24}{'version':>8}{'ours':>14}{'AI SDK':>14}{'times':>8}   chunks a second")
    for name, chunks in {"text, 4,000 deltas": text_stream(4000), "tools, 30 calls": tool_stream(30)}.items():
        parsed = [parse_chunk(chunk) for chunk in chunks]
        for version in (5, 6, 7):
            mine: list[float] = []
            theirs: list[float] = []
            for _ in range(ROUNDS):
                mine.append(ours(parsed, version))
                node.stdin.write(json.dumps({"version": version, "chunks": chunks, "rounds": 1}) + "\n")
                node.stdin.flush()
                theirs += json.loads(node.stdout.readline())
            speed, real = len(chunks) / median(mine), len(chunks) / median(theirs)
            print(f"{name:24}{version:>8}{speed:>14,.0f}{real:>14,.0f}{speed / real:>8.1f}")
    node.communicate()


if __name__ == "__main__":
    main()
