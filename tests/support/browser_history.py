"""Logs as Claude Code writes them, for a browser to look at.

A long session, one with one of everything, and one that grows.
"""

from __future__ import annotations

import base64
import json
import struct
import zlib
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

Json = dict[str, Any]

LONG = "0aaaaaaa-0000-4000-8000-000000000001"
VARIED = "0bbbbbbb-0000-4000-8000-000000000002"
GROWING = "0ccccccc-0000-4000-8000-000000000003"
LONG_ID, VARIED_ID, GROWING_ID = f"claude-code:{LONG}", f"claude-code:{VARIED}", f"claude-code:{GROWING}"

TURNS = 300
NEEDLE_TURN = 211
NEEDLE = "quokkaflux"
"""A word that is in one tool output of the long session and nowhere else."""

HARSH = "0eeeeeee-0000-4000-8000-000000000005"
HARSH_ID = f"claude-code:{HARSH}"
HUGE = "0ddddddd-0000-4000-8000-000000000004"
HUGE_ID = f"claude-code:{HUGE}"
HUGE_TURNS, HUGE_CALLS = 8_000, 10
"""Of each turn: prompt, two texts, ten calls; more than a hundred thousand parts."""

VAULT = "/home/ada/bank/vault.py"

LARGE_OUTPUT = "\n".join(f"row {number} of a large output" for number in range(6000)) + "\nthe very last row"

HOSTILE = (
    "Look: <img src=x onerror=\"document.title='hacked'\"> and ![cat](https://example.com/cat.png)\n\n"
    "<script>document.title = 'hacked'</script>\n\n[click](javascript:document.title='hacked')"
)

START = datetime(2026, 11, 20, 9, 0, tzinfo=UTC)


@dataclass
class Log:
    """One log file, record by record; each hangs under the one before."""

    session: str
    cwd: str
    lines: list[str] = field(default_factory=list[str])
    last: str | None = None
    agent: str | None = None
    start: datetime = START

    def record(self, kind: str, **fields: Any) -> str:
        """Write a record and return its uuid."""
        number = len(self.lines)
        name = f"{number:08x}-{self.session[9:]}" if self.agent is None else f"{number:08x}-{self.agent}"
        moment = self.start + timedelta(seconds=7 * number)
        common: Json = {
            "parentUuid": fields.pop("parent", self.last),
            "isSidechain": self.agent is not None,
            "userType": "external",
            "cwd": self.cwd,
            "sessionId": self.session,
            "version": "2.1.98",
            "gitBranch": "main",
            "type": kind,
            "uuid": name,
            "timestamp": moment.isoformat().replace("+00:00", "Z"),
        }
        if self.agent is not None:
            common["agentId"] = self.agent
        self.lines.append(json.dumps({**common, **fields}))
        self.last = name
        return name

    def prompt(self, content: str | list[Json], **fields: Any) -> str:
        return self.record("user", message={"role": "user", "content": content}, **fields)

    def answer(
        self, *blocks: Json, stop: str = "tool_use", model: str = "claude-sonnet-4-5-20250929", id: str | None = None
    ) -> str:
        number = len(self.lines)
        message: Json = {
            "id": id or f"msg_{self.agent or self.session[:8]}_{number:05d}",
            "type": "message",
            "role": "assistant",
            "model": model,
            "content": list(blocks),
            "stop_reason": stop,
            "stop_sequence": None,
            "usage": {
                "input_tokens": 12,
                "cache_read_input_tokens": 18_000 + number,
                "cache_creation_input_tokens": 400,
                "output_tokens": 90,
            },
        }
        return self.record("assistant", message=message, requestId=f"req_{self.agent or self.session[:8]}_{number}")

    def result(self, call: str, content: str | list[Json], *, structured: Any = None, error: bool = False) -> str:
        block: Json = {"type": "tool_result", "tool_use_id": call, "content": content}
        if error:
            block["is_error"] = True
        fields = {} if structured is None else {"toolUseResult": structured}
        return self.record("user", message={"role": "user", "content": [block]}, **fields)

    def write(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(self.lines) + "\n", encoding="utf-8")


def text(content: str) -> Json:
    return {"type": "text", "text": content}


def call(call_id: str, name: str, **fields: Any) -> Json:
    return {"type": "tool_use", "id": call_id, "name": name, "input": fields}


def write_home(home: Path, *, long: bool = True) -> None:
    """Fill a home folder with the sessions. The long one takes a server a second, which those of one test can save."""
    projects = home / ".claude" / "projects"
    if long:
        _long().write(projects / "-home-ada-shop" / f"{LONG}.jsonl")
    _varied().write(projects / "-home-ada-bank" / f"{VARIED}.jsonl")
    _growing().write(_growing_path(home))
    _harsh().write(projects / "-home-ada-cellar" / f"{HARSH}.jsonl")
    folder = projects / "-home-ada-bank" / VARIED / "subagents"
    _subagent().write(folder / "agent-a1b2c3.jsonl")
    meta = {"agentType": "Explore", "description": "Look around", "toolUseId": "toolu_task"}
    (folder / "agent-a1b2c3.meta.json").write_text(json.dumps(meta), encoding="utf-8")


def write_huge_home(home: Path) -> None:
    """Fill a home folder with a session of more than a hundred thousand parts."""
    log = Log(HUGE, "/home/ada/stock")
    for turn in range(1, HUGE_TURNS + 1):
        log.prompt(f"Look at shelf {turn}")
        calls = [
            call(f"toolu_{turn}_{number}", "Bash", command=f"ls shelf/{turn}/{number}")
            for number in range(1, HUGE_CALLS + 1)
        ]
        log.answer(text(f"I look at shelf {turn}."), *calls, id=f"msg_huge_{turn}")
        log.prompt(
            [{"type": "tool_result", "tool_use_id": found["id"], "content": _jar(turn, found)} for found in calls]
        )
        log.answer(text(f"Shelf {turn} is done."), stop="end_turn")
    log.write(home / ".claude" / "projects" / "-home-ada-stock" / f"{HUGE}.jsonl")


def _jar(turn: int, found: Json) -> str:
    is_last = turn == HUGE_TURNS and found["id"].endswith(f"_{HUGE_CALLS}")
    return "thelastjarofall" if is_last else f"jar {turn}"


def append_turn(home: Path, prompt: str) -> None:
    """What the agent writes when somebody goes on with the growing session."""
    log = Log(GROWING, "/home/ada/tower", lines=_growing_path(home).read_text(encoding="utf-8").splitlines())
    log.last = json.loads(log.lines[-1])["uuid"]
    log.prompt(prompt)
    log.answer(text("Going on."), stop="end_turn")
    log.write(_growing_path(home))


def append_call(home: Path, name: str, **fields: Any) -> None:
    """What the agent writes when it calls a tool just now, which then runs."""
    lines = _growing_path(home).read_text(encoding="utf-8").splitlines()
    log = Log(GROWING, "/home/ada/tower", lines=lines, start=datetime.now(UTC) - timedelta(seconds=7 * len(lines) + 10))
    log.last = json.loads(log.lines[-1])["uuid"]
    log.prompt("Go on")
    log.answer(call("toolu_now", name, **fields))
    log.write(_growing_path(home))


def _growing_path(home: Path) -> Path:
    return home / ".claude" / "projects" / "-home-ada-tower" / f"{GROWING}.jsonl"


def _growing() -> Log:
    log = Log(GROWING, "/home/ada/tower")
    log.prompt("Build a tower")
    log.answer(text("One floor stands."), stop="end_turn")
    return log


def _long() -> Log:
    log = Log(LONG, "/home/ada/shop")
    for turn in range(1, TURNS + 1):
        call_id = f"toolu_{turn:04d}"
        log.prompt(f"Prompt number {turn}: please look at shelf {turn}")
        log.answer(text(f"I look at shelf {turn}."), call(call_id, "Bash", command=f"ls shelf/{turn}"))
        found = f"jar {turn}\n{NEEDLE}\n" if turn == NEEDLE_TURN else f"jar {turn}\n"
        log.result(call_id, found, structured={"stdout": found, "stderr": "", "interrupted": False})
        log.answer(text(f"Shelf {turn} holds **jar {turn}**.\n\n```python\njars = {turn}\n```"), stop="end_turn")
    return log


def _varied() -> Log:
    log = Log(VARIED, "/home/ada/bank")
    log.prompt([{"type": "image", "source": _picture()}, text(HOSTILE)])
    log.prompt("<system-reminder>\nBe careful with money.\n</system-reminder>", isMeta=True)
    log.answer(
        {"type": "thinking", "thinking": "First the vault, then the doors.", "signature": "c2ln"},
        text("I begin."),
        call(
            "toolu_edit",
            "Edit",
            file_path="/home/ada/bank/vault.py",
            old_string="open = True",
            new_string="open = False",
        ),
    )
    patch = {
        "oldStart": 40,
        "oldLines": 2,
        "newStart": 40,
        "newLines": 2,
        "lines": [" def close():", "-    open = True", "+    open = False"],
    }
    done = {"filePath": VAULT, "structuredPatch": [patch]}
    log.result("toolu_edit", f"The file {VAULT} has been updated.", structured=done)
    log.answer(call("toolu_large", "Bash", command="cat ledger"), call("toolu_red", "Bash", command="make test"))
    log.result("toolu_red", "Exit code 2\n\x1b[31mred\x1b[0m failure", error=True)
    log.result("toolu_large", LARGE_OUTPUT)
    log.answer(call("toolu_denied", "Bash", command="rm -rf vault"))
    log.result(
        "toolu_denied",
        "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit, the"
        " new_string was NOT written to the file). STOP what you are doing and wait for the user to tell you how to"
        " proceed.",
        structured="User rejected tool use",
        error=True,
    )
    log.answer(
        call("toolu_task", "Task", description="Look around", prompt="Look at every door", subagent_type="Explore")
    )
    last = log.result(
        "toolu_task", [text("All doors are shut.")], structured={"status": "completed", "agentId": "a1b2c3"}
    )
    log.prompt("Paint it green")
    log.answer(text("Painted green."), stop="end_turn")
    log.prompt("Paint it blue", parent=last)
    log.answer(text("Painted blue."), stop="end_turn", model="mystery-model-9")
    log.lines.append(json.dumps({"type": "ai-title", "sessionId": VARIED, "aiTitle": "Mind the bank"}))
    return log


def _harsh() -> Log:
    """What nobody would write on purpose, but for a purpose."""
    log = Log(HARSH, "/home/ada/cellar")
    log.prompt("مرحبا بالعالم `foo()` <script>document.title = 'hacked'</script>")
    log.answer(
        text(">" * 3000 + " at the bottom"),
        text(
            "```python\nprint('never closed')\n\n| a | b\n|---\n| **c | [d](javascript:alert(1)) ![e](https://example.com/e.png)"
        ),
        {"type": "hologram", "shape": {"sides": 7}},
        call("toolu_bidi", "Bash", command="echo \u202egpj.exe # <b>"),
        call("toolu_wide", "<b>Wide</b>", **{"__proto__": {"title": "hacked"}, "line": "y" * 3000}),
        call("toolu_served", "mcp__a_server_that_has_a_very_long_name__a_tool_that_has_one_too", why="x"),
        call("toolu_page", "Write", file_path="/home/ada/cellar/x.html", content="<img src=x onerror=alert(1)>\n" * 3),
    )
    controls = "\x1b]8;;https://example.com\x07link\x1b]8;;\x07 \x1b[2J\x1b[1;1Hhome \x1b[31mred\x1b[0m \x00\x07bell"
    log.result("toolu_bidi", controls + "\n" + "z" * 50_000)
    log.result("toolu_wide", "<svg onload=alert(1)>")
    log.result("toolu_served", "no", error=True)
    log.result("toolu_page", "done")
    log.answer(text("The end of it."), stop="end_turn")
    return log


def _subagent() -> Log:
    log = Log(VARIED, "/home/ada/bank", agent="a1b2c3")
    log.prompt("Look at every door")
    log.answer(call("toolu_doors", "Glob", pattern="doors/*"))
    log.result("toolu_doors", "doors/front\ndoors/back")
    log.answer(text("All doors are shut."), stop="end_turn")
    return log


def _picture() -> Json:
    return {"type": "base64", "media_type": "image/png", "data": base64.b64encode(png(48, 32)).decode()}


def png(width: int, height: int) -> bytes:
    """A picture of one colour."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(b"\0" + b"\x3d\x4b\xb8" * width for _ in range(height))
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
