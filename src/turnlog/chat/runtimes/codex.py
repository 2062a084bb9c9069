"""Codex behind a chat: by `codex exec` (`CodexCommand`) or by its app server (`CodexServerCommand`), both 0.169.0.

`codex exec --json` prints whole items and requests no permission: what it may do is decided by its sandbox when it
starts, and a signal stops it. `codex app-server` speaks JSON-RPC in lines. It sends text as it is made, requests
permission, is stopped by a request, and can go back: a thread is forked after the turn where the chat continues.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias, cast

import msgspec
from msgspec import UNSET

from turnlog import __version__
from turnlog.agents.codex.stream_records import CALL_ITEMS, ExecItem, result_of, tool_name_of
from turnlog.aisdk.parts import DynamicToolUIPart, ToolUIPart, UIMessage
from turnlog.chat.conversion import RECORD_KEY, SESSION_KEY
from turnlog.chat.message_differ import Events
from turnlog.chat.runtime import RunRequest
from turnlog.chat.runtimes.command import OutputReader, SessionPoint, record_of
from turnlog.model import Usage
from turnlog.model.codec import to_json
from turnlog.model.stream import (
    ApprovalRequest,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    RunFinish,
    RunStart,
    StepFinish,
    StepStart,
    StreamError,
    TextDelta,
    TextEnd,
    TextStart,
    ToolInputAvailable,
    ToolInputStart,
    ToolOutput,
)

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
        """It reads the prompt and nothing more."""
        return False

    def arguments(self, point: SessionPoint | None) -> list[str]:
        """The program and its arguments; the prompt comes through its input."""
        options = ["--json", "--skip-git-repo-check", "-c", f"sandbox_mode={_quoted(self.sandbox)}"]
        if self.model is not None:
            options += ["-m", self.model]
        if self.system_prompt is not None:
            options += ["-c", f"developer_instructions={_quoted(self.system_prompt)}"]
        subcommand = ["resume"] if point else []
        session = [point.session] if point else []
        return [self.program, "exec", *subcommand, *options, *self.more_arguments, *session, "-"]

    def open_stream(self, metadata: dict[str, Any], request: RunRequest, point: SessionPoint | None) -> CodexStream:
        """A reader of one run."""
        return CodexStream(metadata, request.prompt)


def _quoted(text: str) -> str:
    """A TOML string: JSON's escapes are valid in TOML."""
    return msgspec.json.encode(text).decode()


class CodexStream:
    """Reads one run of `codex exec`. See `turnlog.chat.runtimes.command.AgentStream`."""

    prints_log = True
    is_asking = is_waiting = False

    def __init__(self, metadata: dict[str, Any], prompt: str) -> None:
        """Begin with this prompt."""
        self._out = prompt.encode(errors="replace")
        self._metadata = metadata
        self._output = OutputReader(AGENT)

    def feed(self, line: bytes) -> Events:
        """The events of a line; none for one that is no JSON object."""
        record = record_of(line)
        if record is None:
            return []
        events = self._output.feed(line)
        match record.get("type"):
            case "thread.started":
                return [RunStart(metadata={**self._metadata, SESSION_KEY: f"{AGENT}:{record.get('thread_id')}"})]
            case "turn.completed":
                return [*events, *self._output.differ.end_step(), RunFinish(stop_reason="stop")]
            case "turn.failed":
                error = cast("Any", record.get("error"))
                message = cast("dict[str, Any]", error).get("message") if isinstance(error, dict) else None
                reason = message or self._output.error or "Codex could not answer."
                return [
                    *events,
                    *self._output.differ.end_step(),
                    StreamError(error_text=str(reason), kind="turn.failed"),
                ]
            case _:
                return events

    def pause(self) -> Events:
        """It never pauses."""
        return []

    def to_write(self) -> bytes:
        """The prompt."""
        out, self._out = self._out, b""
        return out

    def answer(self, message: UIMessage) -> None:
        """It requests no permission."""

    def interrupt(self) -> None:
        """It reads nothing after the prompt: only a signal stops it."""


Json: TypeAlias = dict[str, Any]

_TEXTS: Final = {
    "agentMessage": (TextStart, TextDelta, TextEnd),
    "reasoning": (ReasoningStart, ReasoningDelta, ReasoningEnd),
}
"""Items of text -> the events of their start, their deltas and their end."""

_PARAGRAPH: Final = "\n\n"


class ItemTranslator:
    """Items of the app server as stream events, in one turn.

    An item is the one that `codex exec --json` prints, in camel case and with the ids of the session's log.
    """

    def __init__(self) -> None:
        """Begin without items."""
        self._open: dict[str, tuple[str, str]] = {}
        """Id of an open text -> its type, and the text that was sent."""
        self._calls: set[str] = set()

    @property
    def is_in_text(self) -> bool:
        """Whether a text or reasoning has begun and not ended."""
        return bool(self._open)

    def started(self, item: Json) -> Events:
        """The events of the start of an item."""
        kind, item_id = str(item.get("type")), str(item.get("id"))
        if kind in _TEXTS:
            return self._begin(item_id, kind)
        return self._call(item_id, _exec_item(item), item) if _snake(kind) in CALL_ITEMS else []

    def grown(self, item_id: str, kind: str, delta: str) -> Events:
        """The events of more text or reasoning; its start too, if the server did not announce the item."""
        began = self._begin(item_id, kind)
        known = self._open[item_id][1]
        self._open[item_id] = (kind, known + delta)
        return [*began, _TEXTS[kind][1](id=item_id, delta=delta)] if delta else began

    def paragraph(self, item_id: str, number: int) -> Events:
        """The events of another paragraph of reasoning."""
        return self.grown(item_id, "reasoning", _PARAGRAPH) if number > 0 else []

    def completed(self, item: Json) -> Events:
        """The events of the end of an item: whatever of it was not sent before."""
        kind, item_id = str(item.get("type")), str(item.get("id"))
        if kind in _TEXTS:
            return self._finish_text(item_id, kind, _whole_text(item))
        if _snake(kind) not in CALL_ITEMS:
            return []
        known = _exec_item(item)
        events = self._call(item_id, known, item)
        result = result_of(item_id, known, has_ended=True)
        return events if result is None else [*events, ToolOutput(tool_call_id=item_id, result=result)]

    def _begin(self, item_id: str, kind: str) -> Events:
        if item_id in self._open:
            return []
        self._open[item_id] = (kind, "")
        return [_TEXTS[kind][0](id=item_id)]

    def _finish_text(self, item_id: str, kind: str, whole: str) -> Events:
        events = self._begin(item_id, kind)
        known = self._open[item_id][1]
        rest = whole.removeprefix(known) if whole.startswith(known) else ""
        if rest:
            events += self.grown(item_id, kind, rest)
        del self._open[item_id]
        return [*events, _TEXTS[kind][2](id=item_id)]

    def _call(self, item_id: str, known: ExecItem, item: Json) -> Events:
        if item_id in self._calls:
            return []
        self._calls.add(item_id)
        shape, name = CALL_ITEMS[known.type], tool_name_of(known)
        given = {field: item[field] for field in shape.input if field in item}
        input = to_json(item.get("arguments") if known.type == "mcp_tool_call" else given)
        return [
            ToolInputStart(tool_call_id=item_id, tool_name=name, provider_executed=shape.by_provider),
            ToolInputAvailable(tool_call_id=item_id, tool_name=name, input=input, provider_executed=shape.by_provider),
        ]


def _whole_text(item: Json) -> str:
    """The whole text of a text or reasoning item; of reasoning the summary, if it has one."""
    if item.get("type") == "agentMessage":
        return str(item.get("text") or "")
    return _PARAGRAPH.join(str(piece) for piece in item.get("summary") or item.get("content") or ())


def _exec_item(item: Json) -> ExecItem:
    """The item as `codex exec` prints it; fields of another shape are left out."""
    fields = {_snake(name): value for name, value in item.items() if value is not None}
    fields["type"] = _snake(str(item.get("type")))
    try:
        return msgspec.convert(fields, ExecItem)
    except msgspec.ValidationError:
        plain = ("id", "type", "command", "status", "server", "tool", "aggregated_output")
        return msgspec.convert({name: str(fields[name]) for name in plain if name in fields}, ExecItem)


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z])([A-Z])", r"_\1", name).lower()


_THREAD, _TURN, _INTERRUPT = 2, 3, 4
"""Ids of the requests that are sent to the server."""

_APPROVALS: Final = ("commandExecution/requestApproval", "fileChange/requestApproval")
"""How the methods end by which the server requests permission."""

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
    """When it requests permission: `untrusted`, `on-request`, `never`; None: as its settings say."""
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
        """The program and its arguments; the thread to continue is named in its input."""
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
        given = {name: value for name, value in options.items() if value is not None}
        return CodexServerStream(metadata, request.prompt, given, point)


class CodexServerStream:
    """Reads one run of the app server. See `turnlog.chat.runtimes.command.AgentStream`."""

    prints_log = False

    def __init__(self, metadata: Json, prompt: str, options: Json, point: SessionPoint | None) -> None:
        """Begin a turn with this prompt, in a new thread or at a point of an existing one."""
        self._metadata = metadata
        self._prompt = prompt
        self._items = ItemTranslator()
        self._thread: str | None = None
        self._turn: str | None = None
        self._model: str | None = None
        self._requests: dict[str, Any] = {}
        """Id of the approval -> the id of the server's request, as the server wrote it."""
        self._is_in_step = self._has_called = False
        self._error: str | None = None
        self._readers: dict[str, Callable[[Json], Events]] = {
            "turn/started": self._turn_started,
            "turn/completed": self._turn_completed,
            "item/started": self._item_started,
            "item/completed": self._item_completed,
            "item/agentMessage/delta": self._text_delta,
            "item/reasoning/summaryTextDelta": self._reasoning_delta,
            "item/reasoning/summaryPartAdded": self._reasoning_part_added,
            "thread/tokenUsage/updated": self._usage_updated,
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
        """Whether a permission request is open."""
        return bool(self._requests)

    @property
    def is_waiting(self) -> bool:
        """Whether a permission request is open, and no text."""
        return bool(self._requests) and not self._items.is_in_text

    def to_write(self) -> bytes:
        """The requests and answers that were not written yet."""
        out, self._out = self._out, []
        return b"".join(msgspec.json.encode(message) + b"\n" for message in out)

    def feed(self, line: bytes) -> Events:
        """The events of a line; none for one that is no JSON object."""
        message = record_of(line)
        if message is None:
            return []
        if "method" not in message:
            return self._response(message)
        params: Any = message.get("params")
        fields = cast("Json", params) if isinstance(params, dict) else {}
        if "id" in message:
            return self._request(message, fields)
        reader = self._readers.get(str(message["method"]))
        # The same server sends the events of subagents' threads.
        return reader(fields) if reader is not None and fields.get("threadId") == self._thread else []

    def pause(self) -> Events:
        """The step ends: results of its calls come in the next stream."""
        return self._end_step(None)

    def answer(self, message: UIMessage) -> None:
        """Answer the permission requests by the page's approvals."""
        for part in message.parts:
            if not isinstance(part, ToolUIPart | DynamicToolUIPart) or part.approval is UNSET:
                continue
            approval = part.approval
            if approval.id in self._requests and approval.approved is not UNSET:
                decision = "accept" if approval.approved else "decline"
                self._out.append({"id": self._requests.pop(approval.id), "result": {"decision": decision}})

    def interrupt(self) -> bytes | None:
        """The request to stop; None if no turn has begun."""
        if self._turn is None:
            return None
        params = {"threadId": self._thread, "turnId": self._turn}
        return msgspec.json.encode({"id": _INTERRUPT, "method": "turn/interrupt", "params": params}) + b"\n"

    # -- responses to our requests, and the server's requests

    def _response(self, message: Json) -> Events:
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

    def _request(self, message: Json, params: Json) -> Events:
        # A request without an answer would block the turn. A subagent's call is not in the stream, so nobody could see
        # what is asked.
        is_approval = str(message["method"]).endswith(_APPROVALS)
        if not is_approval or params.get("threadId") != self._thread:
            self._out.append({"id": message["id"], "error": _NOT_SUPPORTED})
            return []
        # The server numbers its requests anew in each process, and the page keeps approvals by id.
        approval_id = f"{self._turn}:{message['id']}"
        self._requests[approval_id] = message["id"]
        reason: Any = params.get("reason")
        return [
            ApprovalRequest(
                approval_id=approval_id,
                tool_call_id=str(params.get("itemId")),
                reason=reason if isinstance(reason, str) else None,
            )
        ]

    # -- what happens in the turn

    def _turn_started(self, params: Json) -> Events:
        self._turn = str(cast("Json", params.get("turn") or {}).get("id"))
        return []

    def _item_started(self, params: Json) -> Events:
        return self._in_step(self._items.started(_item_of(params)))

    def _item_completed(self, params: Json) -> Events:
        return self._in_step(self._items.completed(_item_of(params)))

    def _text_delta(self, params: Json) -> Events:
        return self._in_step(self._items.grown(str(params.get("itemId")), "agentMessage", str(params.get("delta"))))

    def _reasoning_delta(self, params: Json) -> Events:
        return self._in_step(self._items.grown(str(params.get("itemId")), "reasoning", str(params.get("delta"))))

    def _reasoning_part_added(self, params: Json) -> Events:
        number = params.get("summaryIndex")
        return self._items.paragraph(str(params.get("itemId")), number if isinstance(number, int) else 0)

    def _usage_updated(self, params: Json) -> Events:
        """The end of a model call. The usage of another turn is an older one, sent when a thread is resumed."""
        if params.get("turnId") != self._turn:
            return []
        return self._end_step(_usage_of(cast("Json", params.get("tokenUsage") or {}).get("last")))

    def _failed(self, params: Json) -> Events:
        # The server reports each try that failed, and goes on by itself.
        if params.get("willRetry") is not True:
            self._error = str(cast("Json", params.get("error") or {}).get("message"))
        return []

    def _turn_completed(self, params: Json) -> Events:
        turn = cast("Json", params.get("turn") or {})
        events = self._end_step(None)
        if turn.get("status") == "completed":
            return [*events, RunFinish(stop_reason="stop", metadata={RECORD_KEY: str(turn.get("id"))})]
        error = cast("Json", turn.get("error") or {}).get("message") or self._error
        return [*events, StreamError(error_text=str(error or f"The turn was {turn.get('status')}."), kind="codex")]

    # -- steps

    def _in_step(self, events: Events) -> Events:
        """The events of a step, which begins with the first of them. Results may come after their step has ended."""
        calls = any(isinstance(event, ToolInputStart) for event in events)
        if self._is_in_step or all(isinstance(event, ToolOutput) for event in events):
            self._has_called = self._has_called or calls
            return events
        self._is_in_step, self._has_called = True, calls
        return [StepStart(model=self._model), *events]

    def _end_step(self, usage: Usage | None) -> Events:
        if not self._is_in_step:
            return []
        self._is_in_step = False
        return [StepFinish(stop_reason="tool_use" if self._has_called else "stop", usage=usage)]


def _thread_request(options: Json, point: SessionPoint | None) -> Json:
    """The request that starts a thread, resumes one, or forks one after a turn."""
    if point is None:
        return {"method": "thread/start", "params": options}
    params: Json = {**options, "threadId": point.session, "excludeTurns": True}
    if point.record is None:
        return {"method": "thread/resume", "params": params}
    return {"method": "thread/fork", "params": {**params, "lastTurnId": point.record}}


def _item_of(params: Json) -> Json:
    item: Any = params.get("item")
    return cast("Json", item) if isinstance(item, dict) else {}


def _usage_of(value: Any) -> Usage | None:
    """Usage in disjoint buckets: Codex counts cached tokens as input too, and reasoning as output too."""
    if not isinstance(value, dict):
        return None
    names = ("inputTokens", "cachedInputTokens", "cacheWriteInputTokens", "outputTokens", "reasoningOutputTokens")
    counts = cast("Json", value)
    input, cached, written, output, reasoning = (
        count if isinstance(count := counts.get(name), int) else 0 for name in names
    )
    return Usage(
        input=max(input - cached - written, 0),
        cache_read=cached,
        cache_write=written,
        output=max(output - reasoning, 0),
        reasoning=reasoning,
    )
