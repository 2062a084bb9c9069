"""Codex behind a chat, by its app server: `codex app-server` (0.169.0), JSON-RPC in lines.

Unlike `codex exec` it tells words as they are made, asks for permission, is stopped by a request, and can go back: a
thread is forked behind the turn where the chat goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, cast

import msgspec
from msgspec import UNSET

from turnlog import __version__
from turnlog.aisdk.parts import DynamicToolUIPart, ToolUIPart, UIMessage
from turnlog.chat.conversion import RECORD_KEY, SESSION_KEY
from turnlog.chat.runtime import RunRequest
from turnlog.chat.runtimes.codex import AGENT
from turnlog.chat.runtimes.codex_items import ItemTeller, Json, Told
from turnlog.chat.runtimes.command import SessionPoint
from turnlog.model import Usage
from turnlog.model.codec import parse_json
from turnlog.model.stream import (
    ApprovalRequest,
    RunFinish,
    RunStart,
    StepFinish,
    StepStart,
    StreamError,
    ToolInputStart,
    ToolOutput,
)

_THREAD, _TURN, _INTERRUPT = 2, 3, 4
"""Ids of our requests."""

_NOT_SUPPORTED: Final = {"code": -32601, "message": "not supported"}


class CodexServerCommand(msgspec.Struct, frozen=True, kw_only=True):
    """How Codex's app server is started."""

    program: str = "codex"
    model: str | None = None
    system_prompt: str | None = None
    """Its developer instructions."""
    cwd: Path | None = None
    environment: Mapping[str, str] | None = None
    sandbox: str | None = "workspace-write"
    """What its commands may do: `read-only`, `workspace-write`, `danger-full-access`; None: as its settings say."""
    approval_policy: str | None = "on-request"
    """When it asks: `untrusted`, `on-request`, `never`; None: as its settings say."""
    more_arguments: tuple[str, ...] = ()

    @classmethod
    def with_own_settings(cls, cwd: Path) -> CodexServerCommand:
        """The command in this folder; what is allowed is what the agent's own settings say."""
        return cls(cwd=cwd, sandbox=None, approval_policy=None)

    @property
    def agent(self) -> str:
        """The agent's name."""
        return AGENT

    @property
    def keeps_input(self) -> bool:
        """It reads answers while it works."""
        return True

    def arguments(self, point: SessionPoint | None) -> list[str]:
        """The program and its arguments; where it goes on is said in its input."""
        return [self.program, "app-server", *self.more_arguments]

    def open_stream(self, metadata: Json, request: RunRequest, point: SessionPoint | None) -> CodexServerStream:
        """A reader of one run."""
        options = {
            "approvalPolicy": self.approval_policy,
            "sandbox": self.sandbox,
            "model": self.model,
            "developerInstructions": self.system_prompt,
            "cwd": None if self.cwd is None else str(self.cwd),
        }
        told = {name: value for name, value in options.items() if value is not None}
        return CodexServerStream(metadata, request.prompt, told, point)


class CodexServerStream:
    """Reads one run of the app server. See `turnlog.chat.runtimes.command.AgentStream`."""

    prints_log = False

    def __init__(self, metadata: Json, prompt: str, options: Json, point: SessionPoint | None) -> None:
        """Begin a turn with this prompt, in a new thread or where the point says."""
        self._metadata = metadata
        self._prompt = prompt
        self._items = ItemTeller()
        self._thread: str | None = None
        self._turn: str | None = None
        self._model: str | None = None
        self._asked: dict[str, Any] = {}
        """Approval -> the id of the server's request, as it is written."""
        self._is_in_step = self._has_called = False
        self._error: str | None = None
        self._readers: dict[str, Callable[[Json], Told]] = {
            "turn/started": self._turn_started,
            "turn/completed": self._turn_completed,
            "item/started": self._item_started,
            "item/completed": self._item_completed,
            "item/agentMessage/delta": self._text_grown,
            "item/reasoning/summaryTextDelta": self._thought_grown,
            "item/reasoning/summaryPartAdded": self._thought_goes_on,
            "thread/tokenUsage/updated": self._usage_told,
            "error": self._failed,
        }
        client = {"name": "turnlog", "title": "turnlog", "version": __version__}
        self._out: list[Json] = [
            {"id": 1, "method": "initialize", "params": {"clientInfo": client}},
            {"method": "initialized"},
            {"id": _THREAD, **_thread_request(options, point)},
        ]

    @property
    def is_asking(self) -> bool:
        """It has asked."""
        return bool(self._asked)

    @property
    def is_waiting(self) -> bool:
        """It has asked, and is in no text."""
        return bool(self._asked) and not self._items.is_in_text

    def to_write(self) -> bytes:
        """Our requests and answers that it has not got yet."""
        out, self._out = self._out, []
        return b"".join(msgspec.json.encode(message) + b"\n" for message in out)

    def feed(self, line: bytes) -> Told:
        """What a line tells; one that is no JSON object tells nothing."""
        try:
            value: Any = parse_json(line)
        except (ValueError, RecursionError):
            return []
        if not isinstance(value, dict):
            return []
        message = cast("Json", value)
        if "method" not in message:
            return self._response(message)
        params: Any = message.get("params")
        told = cast("Json", params) if isinstance(params, dict) else {}
        if "id" in message:
            return self._request(message, told)
        reader = self._readers.get(str(message["method"]))
        # Threads of subagents are told of by the same server.
        return reader(told) if reader is not None and told.get("threadId") == self._thread else []

    def pause(self) -> Told:
        """The step ends: results of its calls come in the next stream."""
        return self._end_step(None)

    def answer(self, message: UIMessage) -> None:
        """Take the page's answers to what was asked."""
        for part in message.parts:
            if not isinstance(part, ToolUIPart | DynamicToolUIPart) or part.approval is UNSET:
                continue
            approval = part.approval
            if approval.id in self._asked and approval.approved is not UNSET:
                decision = "accept" if approval.approved else "decline"
                self._out.append({"id": self._asked.pop(approval.id), "result": {"decision": decision}})

    def interrupt(self) -> bytes | None:
        """The request to stop; None where no turn has begun."""
        if self._turn is None:
            return None
        params = {"threadId": self._thread, "turnId": self._turn}
        return msgspec.json.encode({"id": _INTERRUPT, "method": "turn/interrupt", "params": params}) + b"\n"

    # -- answers to our requests, and its own

    def _response(self, message: Json) -> Told:
        error: Any = message.get("error")
        if isinstance(error, dict):
            return [StreamError(error_text=str(cast("Json", error).get("message")), kind="codex")]
        result: Any = message.get("result")
        if message.get("id") != _THREAD or not isinstance(result, dict):
            return []
        facts = cast("Json", result)
        self._thread = str(cast("Json", facts.get("thread") or {}).get("id"))
        self._model = cast("str | None", facts.get("model"))
        params = {"threadId": self._thread, "input": [{"type": "text", "text": self._prompt}]}
        self._out.append({"id": _TURN, "method": "turn/start", "params": params})
        return [RunStart(metadata={**self._metadata, SESSION_KEY: f"{AGENT}:{self._thread}"})]

    def _request(self, message: Json, params: Json) -> Told:
        asks = str(message["method"]).endswith(("commandExecution/requestApproval", "fileChange/requestApproval"))
        if not asks or params.get("threadId") != self._thread:
            self._out.append({"id": message["id"], "error": _NOT_SUPPORTED})
            return []
        approval_id = f"{self._turn}:{message['id']}"
        self._asked[approval_id] = message["id"]
        reason: Any = params.get("reason")
        return [
            ApprovalRequest(
                approval_id=approval_id,
                tool_call_id=str(params.get("itemId")),
                reason=reason if isinstance(reason, str) else None,
            )
        ]

    # -- what happens in the turn

    def _turn_started(self, params: Json) -> Told:
        self._turn = str(cast("Json", params.get("turn") or {}).get("id"))
        return []

    def _item_started(self, params: Json) -> Told:
        return self._in_step(self._items.started(_item_of(params)))

    def _item_completed(self, params: Json) -> Told:
        return self._in_step(self._items.completed(_item_of(params)))

    def _text_grown(self, params: Json) -> Told:
        return self._in_step(self._items.grown(str(params.get("itemId")), "agentMessage", str(params.get("delta"))))

    def _thought_grown(self, params: Json) -> Told:
        return self._in_step(self._items.grown(str(params.get("itemId")), "reasoning", str(params.get("delta"))))

    def _thought_goes_on(self, params: Json) -> Told:
        number = params.get("summaryIndex")
        return self._items.paragraph(str(params.get("itemId")), number if isinstance(number, int) else 0)

    def _usage_told(self, params: Json) -> Told:
        """A response of the model is over; of another turn it is news from before."""
        if params.get("turnId") != self._turn:
            return []
        return self._end_step(_usage_of(cast("Json", params.get("tokenUsage") or {}).get("last")))

    def _failed(self, params: Json) -> Told:
        if params.get("willRetry") is not True:
            self._error = str(cast("Json", params.get("error") or {}).get("message"))
        return []

    def _turn_completed(self, params: Json) -> Told:
        turn = cast("Json", params.get("turn") or {})
        told = self._end_step(None)
        if turn.get("status") == "completed":
            return [*told, RunFinish(stop_reason="stop", metadata={RECORD_KEY: str(turn.get("id"))})]
        error = cast("Json", turn.get("error") or {}).get("message") or self._error
        return [*told, StreamError(error_text=str(error or f"The turn was {turn.get('status')}."), kind="codex")]

    # -- steps

    def _in_step(self, told: Told) -> Told:
        """What is told of a step, which begins with it. Results may come behind their step."""
        calls = any(isinstance(event, ToolInputStart) for event in told)
        if self._is_in_step or all(isinstance(event, ToolOutput) for event in told):
            self._has_called = self._has_called or calls
            return told
        self._is_in_step, self._has_called = True, calls
        return [StepStart(model=self._model), *told]

    def _end_step(self, usage: Usage | None) -> Told:
        if not self._is_in_step:
            return []
        self._is_in_step = False
        return [StepFinish(stop_reason="tool_use" if self._has_called else "stop", usage=usage)]


def _thread_request(options: Json, point: SessionPoint | None) -> Json:
    """The request that opens the thread: a new one, one that goes on, or one that leaves another behind a turn."""
    if point is None:
        return {"method": "thread/start", "params": options}
    params: Json = {**options, "threadId": point.session, "excludeTurns": True}
    if point.record is None:
        return {"method": "thread/resume", "params": params}
    return {"method": "thread/fork", "params": {**params, "lastTurnId": point.record}}


def _item_of(params: Json) -> Json:
    item: Any = params.get("item")
    return cast("Json", item) if isinstance(item, dict) else {}


def _usage_of(told: Any) -> Usage | None:
    """Disjoint buckets: its input contains what was cached, its output what was thought."""
    if not isinstance(told, dict):
        return None
    names = ("inputTokens", "cachedInputTokens", "cacheWriteInputTokens", "outputTokens", "reasoningOutputTokens")
    counts = cast("Json", told)
    whole, cached, written, output, thought = (
        count if isinstance(count := counts.get(name), int) else 0 for name in names
    )
    return Usage(
        input=max(whole - cached - written, 0),
        cache_read=cached,
        cache_write=written,
        output=max(output - thought, 0),
        reasoning=thought,
    )
