"""What `codex exec --json` printed up to 0.43: the settings of the run, the prompt, and the events of the log.

Events name calls as the model did, and each response ends with its tokens. No line names the thread: a run is a
session of its own, called by what its first two lines say. As the thread's log has the same tokens, and nothing tells
that it is the same thread, they are events here and no message's.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from zlib import crc32

from msgspec import UNSET, Raw, UnsetType

from turnlog.agents.codex.record_kinds import KINDS as LOG_KINDS
from turnlog.agents.codex.records import Payload, fields_of
from turnlog.agents.codex.stream_records import (
    ExecEvent,
    ExecLine,
    ExecState,
    HeldLine,
    McpOutcome,
    content_of_pieces,
    opened,
)
from turnlog.agents.codex.tools import milliseconds_of, status_of
from turnlog.agents.printed import Printed, kept_fields
from turnlog.model import (
    InterruptEvent,
    Part,
    ReasoningPart,
    ResultStatus,
    TextPart,
    ToolCallPart,
    ToolKind,
    ToolResult,
    ToolState,
)
from turnlog.model.tools import STATE_OF_STATUS

_SETTINGS = ("model", "provider", "approval", "sandbox", "workdir", "reasoning effort", "reasoning summaries")
_TITLE_LENGTH = 200

_read_event = Payload(ExecEvent).read


def is_event(line: ExecLine) -> bool:
    """Whether it is an event that nobody else prints."""
    return line.id is not None and f"event_msg/{_event_of(line).type}" in LOG_KINDS


def is_settings(line: ExecLine) -> bool:
    """Whether it is a run's first line."""
    return not line.type and line.workdir is not None and line.sandbox is not None


def is_prompt(line: ExecLine) -> bool:
    """Whether it is a run's second line."""
    return not line.type and line.prompt is not None and line.msg is UNSET


def hold_settings(state: ExecState, line: ExecLine, json: bytes, position: int) -> bool:
    """Keep a run's first line until the second tells which session it is of."""
    if not is_settings(line):
        return False
    state.settings = HeldLine(json.decode(errors="replace"), position, len(json), line.model, line.workdir)
    return True


def session_of_prompt(state: ExecState, json: bytes) -> str:
    """An id made of the settings, whose fields stand in no fixed order, and the prompt."""
    settings = state.settings.json if state.settings is not None else ""
    return f"stream-{hashlib.sha256(settings.encode(errors='replace') + json).hexdigest()[:16]}"


def read_event_line(state: ExecState, printed: Printed, line: ExecLine) -> None:
    """Tell what a line of this form says."""
    if line.msg is UNSET:
        _read_prompt(state, printed, line)
        return
    event = _read_event(line.msg, printed.tell)
    reader = _READERS.get(event.type)
    if reader is not None:
        reader(state, printed, event)
        return
    kind = f"event_msg/{event.type}"
    printed.add_record(kind, known=kind in LOG_KINDS)
    printed.changes.counts.events += 1


def _event_of(line: ExecLine) -> ExecEvent:
    return ExecEvent() if line.msg is UNSET else _read_event(line.msg, lambda reason, severity, json_path: None)


def _read_prompt(state: ExecState, printed: Printed, line: ExecLine) -> None:
    _tell_settings(state, printed)
    text = line.prompt or ""
    message = printed.begin_prompt()
    printed.show(message, TextPart(id=message.next_part(), text=text))
    title = " ".join(text.split())[:_TITLE_LENGTH]
    if title:
        printed.session.titles["prompt"] = title
    printed.changes.counts.messages += 1


def _tell_settings(state: ExecState, printed: Printed) -> None:
    """The line that was held back, where it stands."""
    held, state.settings, state.model = state.settings, None, None
    if held is None:
        return
    here = printed.json, printed.position, printed.length
    printed.json, printed.position, printed.length = held.json.encode(), held.position, held.length
    fields = fields_of(printed.json)
    printed.add_fact("settings", kept_fields(fields, _SETTINGS))
    state.model = held.model
    printed.session.cwd = printed.session.project_path = held.folder
    printed.json, printed.position, printed.length = here


# Words


def _read_words(state: ExecState, printed: Printed, event: ExecEvent) -> None:
    place = opened(state, printed, "")
    is_thought = event.type != "agent_message"
    text = (event.text if is_thought else event.message) or ""
    part = ReasoningPart(id=place.part_id, text=text) if is_thought else TextPart(id=place.part_id, text=text)
    printed.show(place.message, part)
    printed.changes.counts.messages += 1


# Calls


def _begin(kind: ToolKind, name: str, *fields: str) -> Callable[[ExecState, Printed, ExecEvent], None]:
    """Reads the beginning of a call: its tool, and which fields are its input."""

    def read(state: ExecState, printed: Printed, event: ExecEvent) -> None:
        _show(state, printed, event, name, kind, _input_of(printed, fields))
        printed.changes.counts.messages += 1

    return read


def _end(kind: ToolKind, name: str, *fields: str) -> Callable[[ExecState, Printed, ExecEvent], None]:
    """Reads the end of a call; one whose beginning was not printed is shown by it."""

    def read(state: ExecState, printed: Printed, event: ExecEvent) -> None:
        is_known = event.call_id in state.items
        _show(state, printed, event, name, kind, _input_of(printed, fields), _result_of(event))
        printed.changes.counts.results += is_known
        printed.changes.counts.messages += not is_known

    return read


def _input_of(printed: Printed, names: tuple[str, ...]) -> Raw | UnsetType:
    fields = fields_of(fields_of(printed.json).get("msg", Raw(b"{}")))
    if names != ("invocation",):
        return kept_fields(fields, names)
    arguments = fields_of(fields.get("invocation", Raw(b"{}"))).get("arguments")
    return UNSET if arguments is None else Raw(bytes(arguments))


def _show(
    state: ExecState,
    printed: Printed,
    event: ExecEvent,
    name: str,
    kind: ToolKind,
    given: Raw | UnsetType,
    result: ToolResult | None = None,
) -> None:
    place = opened(state, printed, event.call_id, call_id=event.call_id)
    called = event.invocation
    part = ToolCallPart(
        id=place.part_id,
        tool_call_id=place.call_id,
        tool_name=name if called is None else f"mcp__{called.server}__{called.tool}",
        kind=kind,
        input=given,
        state=ToolState.INPUT_AVAILABLE if result is None else STATE_OF_STATUS[result.status],
        provider_executed=name == "web_search",
        results=() if result is None else (result,),
    )
    printed.show(place.message, part, None if result is None else result.id)


def _result_of(event: ExecEvent) -> ToolResult:
    content, failure = _answer_of(event.result)
    if event.result is None:
        text = event.aggregated_output or (event.stdout or "") + (event.stderr or "")
        content = (TextPart(text=text),) if text else ()
    text = "\n".join([part.text for part in content if isinstance(part, TextPart)])
    status = _status_of(event, failure)
    return ToolResult(
        id=f"{event.call_id}:{crc32(text.encode(errors='replace')):08x}",
        status=status,
        content=content,
        error_text=(failure or text or None) if status != "success" else None,
        exit_code=event.exit_code,
        duration_ms=milliseconds_of(event.duration),
    )


def _answer_of(outcome: McpOutcome | None) -> tuple[tuple[Part, ...], str | None]:
    """What a server answered, and why it failed."""
    if outcome is None:
        return (), None
    if outcome.ok is None:
        return (), outcome.err or ""
    content = content_of_pieces(outcome.ok.content or [])
    texts = [part.text for part in content if isinstance(part, TextPart)]
    return content, "\n".join(texts) if outcome.ok.is_error else None


def _status_of(event: ExecEvent, failure: str | None) -> ResultStatus:
    if failure is not None or event.success is False:
        return "error"
    return status_of(None, event.exit_code) or "success"


def _read_plan(state: ExecState, printed: Printed, event: ExecEvent) -> None:
    """The call of a tool that has no other trace: it has succeeded."""
    identity = f"plan@{printed.position}"
    place = opened(state, printed, identity)
    result = ToolResult(id=f"{place.call_id}:done")
    part = ToolCallPart(
        id=place.part_id,
        tool_call_id=place.call_id,
        tool_name="update_plan",
        kind=ToolKind.THINK,
        input=_input_of(printed, ("explanation", "plan")),
        state=ToolState.OUTPUT_AVAILABLE,
        results=(result,),
    )
    printed.show(place.message, part, result.id)
    printed.changes.counts.messages += 1


# What belongs to no message


def _read_tokens(state: ExecState, printed: Printed, event: ExecEvent) -> None:
    """The end of a response; said again before and behind it, which ends nothing more."""
    state.open = None
    _read_fact(state, printed, event)


def _read_fact(state: ExecState, printed: Printed, event: ExecEvent) -> None:
    fields = fields_of(fields_of(printed.json).get("msg", Raw(b"{}")))
    fields.pop("type", None)
    printed.add_fact(f"event_msg/{event.type}", kept_fields(fields, tuple(fields)))
    printed.changes.counts.events += 1


def _read_error(state: ExecState, printed: Printed, event: ExecEvent) -> None:
    printed.add_error(event.message or "", f"event_msg/{event.type}")
    printed.changes.counts.events += 1


def _read_interrupt(state: ExecState, printed: Printed, event: ExecEvent) -> None:
    state.open = None
    printed.add_event(InterruptEvent(id=printed.own_id(), position=printed.position, message_id=printed.state.leaf))
    printed.changes.counts.events += 1


_READERS: dict[str, Callable[[ExecState, Printed, ExecEvent], None]] = {
    "agent_message": _read_words,
    "agent_reasoning": _read_words,
    "agent_reasoning_raw_content": _read_words,
    "exec_command_begin": _begin(ToolKind.EXECUTE, "exec_command", "command", "cwd"),
    "exec_command_end": _end(ToolKind.EXECUTE, "exec_command"),
    "patch_apply_begin": _begin(ToolKind.EDIT, "apply_patch", "changes"),
    "patch_apply_end": _end(ToolKind.EDIT, "apply_patch"),
    "mcp_tool_call_begin": _begin(ToolKind.OTHER, "mcp", "invocation"),
    "mcp_tool_call_end": _end(ToolKind.OTHER, "mcp", "invocation"),
    "web_search_begin": _begin(ToolKind.SEARCH, "web_search"),
    "web_search_end": _end(ToolKind.SEARCH, "web_search", "query"),
    "view_image_tool_call": _end(ToolKind.READ, "view_image", "path"),
    "plan_update": _read_plan,
    "token_count": _read_tokens,
    "task_started": _read_fact,
    "task_complete": _read_fact,
    "turn_aborted": _read_interrupt,
    "error": _read_error,
    "stream_error": _read_error,
}
