"""Claude Code behind a chat: `claude -p` with `stream-json` both ways (2.1.329).

Chunks of the model's response (`stream_event`) are read as the provider's own stream; everything else by the fold of
the agent's stream. The agent requests permission by a `control_request`, and is stopped by one.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias, cast

import msgspec
from msgspec import UNSET

from turnlog.aisdk.parts import DynamicToolUIPart, FileUIPart, TextUIPart, ToolUIPart, UIMessage
from turnlog.chat.conversion import RECORD_KEY, SESSION_KEY
from turnlog.chat.message_differ import Events
from turnlog.chat.runtime import RunRequest
from turnlog.chat.runtimes.command import OutputReader, SessionPoint, record_of
from turnlog.model.codec import to_json
from turnlog.model.stream import (
    Abort,
    ApprovalRequest,
    RunFinish,
    RunStart,
    StepFinish,
    StepStart,
    StreamError,
    ToolInputAvailable,
    ToolInputStart,
)
from turnlog.providers.anthropic import PROVIDER as ANTHROPIC
from turnlog.providers.streaming import ResponseStream

AGENT: Final = "claude-code"

Json: TypeAlias = dict[str, Any]

_BLOCKS: Final = {
    "application/pdf": "document",
    **dict.fromkeys(("image/gif", "image/jpeg", "image/png", "image/webp"), "image"),
}
"""Media types of files that a message to Claude Code can hold -> the type of their block."""

_MAX_REASON_CHARACTERS: Final = 2_000
"""How much of a call is quoted in a permission request."""

_REFUSED: Final = "The user does not want this tool to run."


class ClaudeCodeCommand(msgspec.Struct, frozen=True, kw_only=True):
    """How Claude Code is started."""

    program: str = "claude"
    model: str | None = None
    system_prompt: str | None = None
    """Appended to the agent's own."""
    cwd: Path | None = None
    environment: Mapping[str, str] | None = None
    permission_mode: str | None = "default"
    """What needs no permission: `default`, `acceptEdits`, `plan`, `bypassPermissions`; None: as its settings say."""
    allowed_tools: tuple[str, ...] = ()
    """Tools that need no permission, as in `Bash(git log:*)`."""
    more_arguments: tuple[str, ...] = ()

    @classmethod
    def with_own_settings(cls, cwd: Path) -> ClaudeCodeCommand:
        """The command in this folder; what is allowed is what the agent's own settings say."""
        return cls(cwd=cwd, permission_mode=None)

    @property
    def agent(self) -> str:
        """The agent's name."""
        return AGENT

    @property
    def keeps_input(self) -> bool:
        """It reads answers while it works."""
        return True

    def arguments(self, point: SessionPoint | None) -> list[str]:
        """The program and its arguments; a new session gets its id from here."""
        forms = ["-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose"]
        options = {
            "--model": self.model,
            "--append-system-prompt": self.system_prompt,
            "--permission-mode": self.permission_mode,
            "--resume": point.session if point else None,
            "--resume-session-at": point.record if point else None,
            "--session-id": None if point else str(uuid.uuid4()),
        }
        valued = [word for name, value in options.items() if value is not None for word in (name, value)]
        allowed = ["--allowedTools", *self.allowed_tools] if self.allowed_tools else []
        # `stdio`: permission is requested in the output, by a `control_request`. Without it, `-p` refuses such calls.
        asking = ["--include-partial-messages", "--permission-prompt-tool", "stdio"]
        return [self.program, *forms, *asking, *valued, *allowed, *self.more_arguments]

    def open_stream(self, metadata: Json, request: RunRequest, point: SessionPoint | None) -> ClaudeCodeStream:
        """A reader of one run."""
        return ClaudeCodeStream(metadata, _prompt_line(request))


def _prompt_line(request: RunRequest) -> bytes:
    """The newest message of the user, as a line of input."""
    message = next((each for each in reversed(request.messages) if each.role == "user"), None)
    content = [block for part in (message.parts if message else ()) if (block := _block_of(part)) is not None]
    return _line({"type": "user", "message": {"role": "user", "content": content or request.prompt}})


def _line(value: Json) -> bytes:
    try:
        return msgspec.json.encode(value) + b"\n"
    except UnicodeEncodeError:  # Half a character, in an input that is sent back unchanged.
        return json.dumps(value).encode("ascii") + b"\n"


def _block_of(part: object) -> Json | None:
    """A part of the user's message as a block; None for a part that the agent does not accept."""
    if isinstance(part, TextUIPart):
        return {"type": "text", "text": part.text}
    if isinstance(part, FileUIPart) and part.media_type in _BLOCKS:
        head, comma, data = part.url.partition(",")
        if comma and head.startswith("data:") and head.endswith(";base64"):
            source = {"type": "base64", "media_type": part.media_type, "data": data}
            return {"type": _BLOCKS[part.media_type], "source": source}
    return None


class ClaudeCodeStream:
    """Reads one run of Claude Code. See `turnlog.chat.runtimes.command.AgentStream`."""

    prints_log = True

    def __init__(self, metadata: Json, prompt: bytes) -> None:
        """Begin with this line of input."""
        self._out = prompt
        self._metadata = metadata
        self._output = OutputReader(AGENT)
        self._differ = self._output.differ
        self._response: ResponseStream | None = None
        self._is_started = False
        self._record: str | None = None
        """The last record of the main agent's answers."""
        self._requests: dict[str, Any] = {}
        """Id of an open permission request -> the input of its call."""

    @property
    def is_asking(self) -> bool:
        """Whether a permission request is open."""
        return bool(self._requests)

    @property
    def is_waiting(self) -> bool:
        """Whether a permission request is open, and the response is complete: no part may continue after a pause."""
        return bool(self._requests) and self._response is None

    def feed(self, line: bytes) -> Events:
        """The events of a line; none for one that is no JSON object."""
        record = record_of(line)
        if record is None:
            return []
        kind = record.get("type")
        events = self._start(record)
        if kind == "stream_event":
            return [*events, *(self._response_chunk(record) if record.get("parent_tool_use_id") is None else [])]
        if kind == "control_request":
            return [*events, *self._permission_request(record)]
        if kind == "control_cancel_request":
            self._requests.pop(str(record.get("request_id")), None)
        if kind == "assistant" and record.get("parent_tool_use_id") is None:
            self._record = cast("str | None", record.get("uuid"))
        events += self._output.feed(line)
        return [*events, *self._end(record)] if kind == "result" else events

    def pause(self) -> Events:
        """The step ends: results of its calls come in the next stream."""
        return self._differ.end_step()

    def to_write(self) -> bytes:
        """The prompt, and then the page's approvals."""
        out, self._out = self._out, b""
        return out

    def answer(self, message: UIMessage) -> None:
        """Answer the permission requests by the page's approvals."""
        given = {
            part.approval.id: part.approval
            for part in message.parts
            if isinstance(part, ToolUIPart | DynamicToolUIPart) and part.approval is not UNSET
        }
        for request_id, input in list(self._requests.items()):
            approval = given.get(request_id)
            if approval is None or approval.approved is UNSET:
                continue
            del self._requests[request_id]
            allow: Json = {"behavior": "allow", "updatedInput": input}
            deny: Json = {"behavior": "deny", "message": approval.reason or _REFUSED}
            self._out += _respond(request_id, allow if approval.approved else deny)

    def interrupt(self) -> bytes:
        """The request to stop."""
        request = {"subtype": "interrupt"}
        return _line({"type": "control_request", "request_id": str(uuid.uuid4()), "request": request})

    # -- the run

    def _start(self, record: Json) -> Events:
        session = record.get("session_id")
        if self._is_started or not isinstance(session, str):
            return []
        self._is_started = True
        return [RunStart(metadata={**self._metadata, SESSION_KEY: f"{AGENT}:{session}"})]

    def _end(self, record: Json) -> Events:
        # An error of the API ends with `subtype: success` and `is_error`, a limit of turns with another subtype.
        failed = record.get("is_error") is True or record.get("subtype") != "success"
        finish = self._differ.finish
        events = self._differ.end_step()
        if not failed:
            metadata = {RECORD_KEY: self._record} if isinstance(self._record, str) else {}
            return [*events, RunFinish(stop_reason=finish.stop_reason, metadata=metadata)]
        text = record.get("result") or "; ".join(map(str, record.get("errors") or ())) or record.get("subtype")
        return [*events, StreamError(error_text=str(text), kind=str(record.get("subtype") or "error"))]

    # -- the model's response

    def _response_chunk(self, record: Json) -> Events:
        event = record.get("event")
        if not isinstance(event, dict):
            return []
        chunk = cast("Json", event)
        if chunk.get("type") == "message_start":
            self._response = ANTHROPIC.open_stream()
        if self._response is None:
            return []
        found = self._response.feed(chunk)
        if chunk.get("type") == "message_stop":
            found += self._response.finish()
            self._response = None
        return [event for each in found for event in self._of_response(each)]

    def _of_response(self, event: Any) -> Events:
        """An event of one response, as an event of the run."""
        match event:
            case StepStart():
                return self._differ.begin_external(event.response_id or "", event)
            case StepFinish():
                self._differ.finish = event
                return []
            case RunStart() | RunFinish() | StreamError() | Abort():
                # They belong to the response; the run may go on, and ends with its result.
                return []
            case ToolInputStart():
                self._differ.note_call(event.tool_call_id)
                return [event]
            case ToolInputAvailable():
                # The agent may have printed the whole call, and even its result, before the end of the response.
                return [event] if self._differ.note_input(event.tool_call_id) else []
            case _:
                return [event]

    # -- permission

    def _permission_request(self, record: Json) -> Events:
        request, request_id = record.get("request"), record.get("request_id")
        if not isinstance(request, dict) or not isinstance(request_id, str):
            return []
        fields = cast("Json", request)
        tool_call_id = fields.get("tool_use_id")
        if fields.get("subtype") != "can_use_tool" or not isinstance(tool_call_id, str):
            return []
        self._requests[request_id] = fields.get("input")
        # A subagent's call is not in the stream: the request quotes it.
        reason = _quote_call(fields) if self._differ.note_input(tool_call_id) else None
        return [ApprovalRequest(approval_id=request_id, tool_call_id=tool_call_id, reason=reason)]


def _quote_call(fields: Json) -> str:
    return f"{fields.get('tool_name')} {bytes(to_json(fields.get('input'))).decode()}"[:_MAX_REASON_CHARACTERS]


def _respond(request_id: str, response: Json) -> bytes:
    answer = {"subtype": "success", "request_id": request_id, "response": response}
    return _line({"type": "control_response", "response": answer})
