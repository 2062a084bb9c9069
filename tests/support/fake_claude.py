#!/usr/bin/env python3
"""A program that behaves like `claude -p`: it prints an answer, and writes the log of a session.

The prompt decides what it does: `--output-format stream-json` prints a stream, `--resume ID` goes on with a
session, the words of the prompt `no log`, `fail`, `wait` and `pieces` do what they say.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

MODEL = "claude-opus-4-5"


def main() -> int:
    options = dict(zip(sys.argv[1:], sys.argv[2:], strict=False))
    prompt = sys.argv[-1] if sys.stdin.isatty() or "stdin" not in sys.argv[-1] else sys.stdin.read()
    session = options.get("--resume") or str(uuid.uuid4())
    answer = f"You said: {prompt}"
    lines = records(session, prompt, answer)
    if "wait" in prompt:
        time.sleep(60)
    if "no log" not in prompt:
        write_log(session, lines)
    print_answer(options.get("--output-format", "text"), session, lines, answer, in_pieces="pieces" in prompt)
    print("a remark", file=sys.stderr)
    return 3 if "fail" in prompt else 0


def records(session: str, prompt: str, answer: str) -> list[dict[str, Any]]:
    call = f"toolu_{uuid.uuid4().hex[:12]}"
    usage = {"input_tokens": 10, "output_tokens": 5, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 0}
    messages: list[tuple[str, dict[str, Any]]] = [
        ("user", {"role": "user", "content": prompt}),
        ("assistant", step([{"type": "tool_use", "id": call, "name": "Bash", "input": {"command": "ls"}}], usage)),
        ("user", {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call, "content": "notes.txt"}]}),
        ("assistant", step([{"type": "text", "text": answer}], usage)),
    ]
    parent, lines = None, list[dict[str, Any]]()
    for kind, message in messages:
        line = {"type": kind, "uuid": str(uuid.uuid4()), "parentUuid": parent, "sessionId": session, "message": message}
        line |= {"timestamp": now(), "cwd": str(Path.cwd()), "version": "2.1.329", "isSidechain": False}
        lines.append(line)
        parent = line["uuid"]
    return lines


def step(content: list[dict[str, Any]], usage: dict[str, int]) -> dict[str, Any]:
    reason = "tool_use" if content[0]["type"] == "tool_use" else "end_turn"
    return {
        "id": f"msg_{uuid.uuid4().hex[:12]}",
        "type": "message",
        "role": "assistant",
        "model": MODEL,
        "content": content,
        "stop_reason": reason,
        "usage": usage,
    }


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def log_of(session: str) -> Path:
    slug = re.sub(r"[^A-Za-z0-9]", "-", str(Path.cwd()))
    return Path(os.environ["HOME"]) / ".claude" / "projects" / slug / f"{session}.jsonl"


def write_log(session: str, lines: list[dict[str, Any]]) -> None:
    path = log_of(session)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)


def print_answer(form: str, session: str, lines: list[dict[str, Any]], answer: str, *, in_pieces: bool) -> None:
    if form != "stream-json":
        text = answer + "\n"
    else:
        printed: list[dict[str, Any]] = [{"type": "system", "subtype": "init", "cwd": str(Path.cwd()), "model": MODEL}]
        printed += [{key: line[key] for key in ("type", "uuid", "message", "timestamp")} for line in lines]
        printed.append({"type": "result", "subtype": "success", "is_error": False, "result": answer})
        text = "".join(json.dumps({**line, "session_id": session}) + "\n" for line in printed)
    data = text.encode()
    size = 7 if in_pieces else len(data)
    for start in range(0, len(data), size):
        os.write(1, data[start : start + size])


if __name__ == "__main__":
    sys.exit(main())
