"""Codex behind a chat: `codex exec --json` (0.169.0), which tells whole items and asks nothing.

What it may do is decided when it starts, by its sandbox. It is stopped by a signal.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, cast

import msgspec

from turnlog.aisdk.parts import UIMessage
from turnlog.chat.conversion import SESSION_KEY
from turnlog.chat.message_differ import Events
from turnlog.chat.runtime import RunRequest
from turnlog.chat.runtimes.command import OutputReader, SessionPoint
from turnlog.model.codec import parse_json
from turnlog.model.stream import RunFinish, RunStart, StreamError

AGENT: Final = "codex"


class CodexCommand(msgspec.Struct, frozen=True, kw_only=True):
    """How Codex is started."""

    program: str = "codex"
    model: str | None = None
    system_prompt: str | None = None
    """Its `developer_instructions`."""
    cwd: Path | None = None
    environment: Mapping[str, str] | None = None
    sandbox: str = "workspace-write"
    """What its commands may do: `read-only`, `workspace-write`, `danger-full-access`."""
    more_arguments: tuple[str, ...] = ()

    @property
    def agent(self) -> str:
        """The agent's name."""
        return AGENT

    @property
    def keeps_input(self) -> bool:
        """It reads the prompt and nothing else."""
        return False

    def arguments(self, point: SessionPoint | None) -> list[str]:
        """The program and its arguments; the prompt comes through its input."""
        options = ["--json", "--skip-git-repo-check", "-c", f"sandbox_mode={_quoted(self.sandbox)}"]
        if self.model is not None:
            options += ["-m", self.model]
        if self.system_prompt is not None:
            options += ["-c", f"developer_instructions={_quoted(self.system_prompt)}"]
        going_on = ["resume"] if point else []
        named = [point.session] if point else []
        return [self.program, "exec", *going_on, *options, *self.more_arguments, *named, "-"]

    def open_stream(self, metadata: dict[str, Any], request: RunRequest, point: SessionPoint | None) -> CodexStream:
        """A reader of one run."""
        return CodexStream(metadata, request.prompt)


def _quoted(text: str) -> str:
    """A string of TOML: JSON's escapes are among its own."""
    return msgspec.json.encode(text).decode()


class CodexStream:
    """Reads one run of Codex. See `turnlog.chat.runtimes.command.AgentStream`."""

    prints_log = True
    is_asking = is_waiting = False

    def __init__(self, metadata: dict[str, Any], prompt: str) -> None:
        """Ask this."""
        self._out = prompt.encode(errors="replace")
        self._metadata = metadata
        self._output = OutputReader(AGENT)

    def feed(self, line: bytes) -> Events:
        """What a line tells; one that is no JSON object tells nothing."""
        try:
            value: Any = parse_json(line)
        except (ValueError, RecursionError):
            return []
        if not isinstance(value, dict):
            return []
        record = cast("dict[str, Any]", value)
        told = self._output.feed(line)
        match record.get("type"):
            case "thread.started":
                return [RunStart(metadata={**self._metadata, SESSION_KEY: f"{AGENT}:{record.get('thread_id')}"})]
            case "turn.completed":
                return [*told, *self._output.differ.end_step(), RunFinish(stop_reason="stop")]
            case "turn.failed":
                error = cast("Any", record.get("error"))
                words = cast("dict[str, Any]", error).get("message") if isinstance(error, dict) else None
                reason = words or self._output.error or "Codex could not answer."
                return [*told, *self._output.differ.end_step(), StreamError(error_text=str(reason), kind="turn.failed")]
            case _:
                return told

    def pause(self) -> Events:
        """It never pauses."""
        return []

    def to_write(self) -> bytes:
        """The prompt."""
        out, self._out = self._out, b""
        return out

    def answer(self, message: UIMessage) -> None:
        """Nothing was asked."""

    def interrupt(self) -> None:
        """It reads nothing."""
