"""Lets the real agents answer chats: what a page is told is compared with the script, then the chat goes on, twice
from the same place, as when an answer is asked for again.

Claude Code is allowed nothing, so that each command is asked for and the page permits it.
"""

from __future__ import annotations

import asyncio
import os
import threading
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
from clis import Cli
from model_server import ModelServer
from msgspec import UNSET
from script import PROMPT, Answer, Tokens, conversation

from turnlog.aisdk.parts import DynamicToolUIPart, TextUIPart, ToolApproval, ToolUIPart, UIMessage, UIMessagePart
from turnlog.aisdk.reader import UIMessageReader
from turnlog.aisdk.writer import ChunkWriter
from turnlog.chat.runtime import RunRequest
from turnlog.chat.runtimes import AgentRuntime, ClaudeCodeCommand, CodexCommand, CodexServerCommand
from turnlog.model.stream import Pause, RunFinish, StreamEvent, TextDelta, ToolOutput
from turnlog.store import open_store
from turnlog.store.values import Run

Command: TypeAlias = ClaudeCodeCommand | CodexCommand | CodexServerCommand

COMMANDS: dict[str, tuple[type[Command], ...]] = {
    "claude-code": (ClaudeCodeCommand,),
    "codex": (CodexCommand, CodexServerCommand),
}
"""Agents that answer chats, and how."""

AGAIN = Answer(number=5, text="I remember the greeting.", tokens=Tokens(input=9, cached=0, output=8, reasoning=0))


def check_chats(cli: Cli, program: Path, home: Path) -> list[str]:
    """What is not as it should be when this agent answers chats, in each way that it can."""
    return [
        finding
        for number, command in enumerate(COMMANDS[cli.name])
        for finding in _check(cli, program, home / str(number), command)
    ]


def _check(cli: Cli, program: Path, home: Path, command: type[Command]) -> list[str]:
    script = conversation(cli.tool, cli.argument, cli.extra)
    with ModelServer([*script, AGAIN, AGAIN]) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            return asyncio.run(_Talk(cli, program, home, server.url, command).check(script))
        finally:
            server.shutdown()


class _Talk:
    """Three messages of one chat."""

    def __init__(self, cli: Cli, program: Path, home: Path, url: str, command: type[Command]) -> None:
        self._store = home / "turnlog.db"
        for name, text in cli.files.items():
            (home / name).parent.mkdir(parents=True, exist_ok=True)
            (home / name).write_text(text.replace("{URL}", url))
        (home / "work").mkdir(parents=True)
        environment = {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8"}
        environment |= {name: value.replace("{URL}", url) for name, value in cli.environment.items()}
        # The log of a run is looked for where turnlog's own environment says that agents keep theirs.
        os.environ |= {"CLAUDE_CONFIG_DIR": str(home / ".claude"), "CODEX_HOME": str(home / ".codex")}
        options: dict[str, Any] = {"sandbox": "danger-full-access"} if cli.name == "codex" else {}
        started = command(program=str(program), cwd=home / "work", environment=environment, **options)
        self._runtime = AgentRuntime(started, store_path=self._store)

    async def check(self, script: list[Answer]) -> list[str]:
        first, message = await self._ask(PROMPT, [])
        second, _ = await self._ask("Do you remember?", [message])
        third, _ = await self._ask("And now?", [message])
        await self._runtime.close()
        with open_store(self._store) as store:
            runs = list(store.runs().items)
        return [*_compare(script, first, second, third), *_compare_runs(runs)]

    async def _ask(self, text: str, before: list[UIMessage]) -> tuple[list[StreamEvent], UIMessage]:
        """All events of the answer, and the page's message of it; whatever is asked is permitted."""
        asked = UIMessage(id=f"user-{len(before)}", role="user", parts=(TextUIPart(text=text),))
        events = await self._run(RunRequest(chat_id="chat", messages=(*before, asked)))
        told, message = list(events), _read(events, None)
        while isinstance(events[-1], Pause):
            permitted = msgspec.structs.replace(message, parts=tuple(map(_permit, message.parts)))
            events = await self._run(
                RunRequest(chat_id="chat", messages=(*before, asked, permitted), continued=permitted)
            )
            told += events
            message = _read(events, permitted)
        return told, message

    async def _run(self, request: RunRequest) -> list[StreamEvent]:
        async with self._runtime.subscribe(request.chat_id) as listening:
            await (self._runtime.send(request) if request.continued is None else self._runtime.resume(request))
            return [event async for event in listening]


def _permit(part: UIMessagePart) -> UIMessagePart:
    if not isinstance(part, ToolUIPart | DynamicToolUIPart) or part.state != "approval-requested":
        return part
    assert part.approval is not UNSET
    approval = ToolApproval(id=part.approval.id, approved=True)
    return msgspec.structs.replace(part, state="approval-responded", approval=approval)


def _read(events: list[StreamEvent], continued: UIMessage | None) -> UIMessage:
    """What a page makes of the events; raises StreamStateError for one that has no place in their order."""
    writer = ChunkWriter(7, continued=continued, strict=True)
    reader = UIMessageReader(continued, version=7)
    for chunk in [*(chunk for event in events for chunk in writer.write(event)), *writer.close()]:
        reader.feed(chunk)
    return reader.message


def _compare(script: list[Answer], first: list[StreamEvent], *others: list[StreamEvent]) -> list[str]:
    said = "".join(event.delta for event in first if isinstance(event, TextDelta))
    outputs = [event.result.output_text for event in first if isinstance(event, ToolOutput)]
    calls = [call for answer in script for call in answer.calls]
    again = ["".join(event.delta for event in events if isinstance(event, TextDelta)) for events in others]
    wanted: dict[str, tuple[object, object]] = {
        "texts": ("".join(answer.text for answer in script), said),
        "outputs": ([call.output for call in calls], [_line(call.output, outputs) for call in calls]),
        "other answers": ([AGAIN.text] * len(others), again),
        "ends": ([RunFinish] * (1 + len(others)), [type(events[-1]) for events in (first, *others)]),
    }
    return [f"chat: {name}\n  script {one}\n  told   {other}" for name, (one, other) in wanted.items() if one != other]


def _line(wanted: str, outputs: list[str]) -> str | None:
    return next((wanted for output in outputs if wanted in output), None)


def _compare_runs(runs: list[Run]) -> list[str]:
    """Three runs that ended well, each with its log; the last may have left the others' session in a fork of it."""
    found = [(run.status, run.exit_code, run.origin, run.log_problem) for run in runs]
    sessions = [run.session_id for run in reversed(runs)]
    told = [] if found == [("completed", 0, "runtime", None)] * 3 else [f"chat: runs {found}"]
    return told if None not in sessions and sessions[0] == sessions[1] else [*told, f"chat: sessions {sessions}"]
