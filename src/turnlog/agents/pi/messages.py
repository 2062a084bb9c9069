"""Messages and results: what each role of pi's messages becomes."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, cast

import msgspec
from msgspec import UNSET, Raw

from turnlog.agents.decoding import clean_json, fields_of, names_of, other_fields, value_of
from turnlog.agents.handoffs import carried_origin
from turnlog.agents.pi.contents import Answerer, cost_of, parts_of, text_of, time_of, usage_of
from turnlog.agents.pi.fold_context import TURN_ORIGINS, PiContext
from turnlog.agents.pi.records import MESSAGE, PiMessage, PiUsage, field_of
from turnlog.model import (
    Message,
    MessageError,
    Origin,
    Part,
    ResultStatus,
    StopReason,
    TextPart,
    ToolCallPart,
    ToolResult,
    UnknownPart,
)
from turnlog.model.lenient_json import parse_json

STOP_REASONS: dict[str, StopReason] = {
    "stop": "stop",
    "length": "length",
    "toolUse": "tool_use",
    "error": "error",
    "aborted": "aborted",
    "deferred": "pause",
}
"""`stopReason` -> the model's word for it."""

_MESSAGE_FIELDS = names_of(PiMessage)

_STATUS = re.compile(r"([45]\d\d)\b")
_EXIT_CODE = re.compile(r"Command exited with code (-?\d+)\)?\s*\Z")
_ABORTED = re.compile(r"(?:Command|Operation) aborted\.?\s*\Z")


def read_message(context: PiContext) -> None:
    """Read the message of the current record, by its role."""
    raw = context.record.message
    json = clean_json(bytes(raw)) if isinstance(raw, Raw) else b"{}"
    found = MESSAGE.decode(json)
    if isinstance(found, str):
        context.report(f"message: {found}", json_path="$.message")
        context.add_record(known=False)
        return
    context.report_problems(found.problems, "$.message")
    reader = ROLES.get(found.record.role)
    if reader is None:
        context.add_record(known=False, name=found.record.role)
    else:
        reader(context, found.record)


def _facts(context: PiContext, message: PiMessage, **known: Any) -> dict[str, Any]:
    """Metadata under the agent's name, with fields of the record and its message that are not known."""
    found = {name: value for name, value in known.items() if value is not None}
    if isinstance(message.openclaw, Raw):
        found["openclaw"] = value_of(message.openclaw)
        # Somebody else wrote it, in a channel that the agent reads; a subagent's task came from its parent.
        if not context.is_subagent and field_of(message.openclaw, "senderIsOwner") is False:
            found["is_from_others"] = True
    others = other_fields(fields_of(context.record.message), _MESSAGE_FIELDS)
    if others:
        found["other_message_fields"] = others["other_fields"]
    return context.facts(**found)


def _add(context: PiContext, message: Message, step: int | None = None) -> None:
    context.add_message(message, step=step)
    context.changes.counts.messages += 1


# -- roles


def _read_system(context: PiContext, message: PiMessage) -> None:
    """Read a system message: its text, and each section of the prompt that it sets."""
    sections = [text for text in (message.sections or {}).values() if text]
    parts = list(parts_of(message.content, context.identity))
    # 0.87.1 sends the prompt in named sections, and a later system message sets only those that changed.
    parts += [TextPart(id=f"{context.identity}.{len(parts) + index}", text=text) for index, text in enumerate(sections)]
    facts = _facts(
        context,
        message,
        sections=list(message.sections or {}) or None,
        tools_added=_names(message.toolsAdded),
        tools_removed=_names(message.toolsRemoved),
    )
    _add(
        context,
        Message(
            id=context.identity,
            role="system",
            parts=tuple(parts),
            origin=Origin.HARNESS,
            created_at=context.at,
            metadata=facts,
        ),
    )


def _names(tools: Any) -> list[str] | None:
    """The names of tools. Their schemas stay in the archive, which every session would repeat."""
    try:
        items = [] if tools is UNSET else msgspec.json.decode(tools, type=list[dict[str, Raw]])
    except (msgspec.MsgspecError, RecursionError):
        return None
    names = [parse_json(bytes(item["name"])) for item in items if "name" in item]
    return [name for name in names if isinstance(name, str)] or None


def _read_user(context: PiContext, message: PiMessage) -> None:
    """Read a prompt; in a subagent's log its task."""
    origin = Origin.SUBAGENT_PROMPT if context.is_subagent else Origin.PROMPT
    # oh-my-pi marks what it wrote itself, for example to continue.
    if message.synthetic:
        origin = Origin.HARNESS
    if context.carried is not None:
        origin = carried_origin(context.carried, TURN_ORIGINS)
    parts, is_typed = context.prompt_parts(parts_of(message.content, context.identity))
    if not is_typed and context.carried is None:
        origin = Origin.HARNESS
    context.begin_turn(origin)
    if origin in TURN_ORIGINS:
        context.set_title(text_of(parts))
    _add(
        context,
        Message(
            id=context.identity,
            role="user" if origin in TURN_ORIGINS else "developer",
            parts=parts,
            origin=origin,
            created_at=context.at,
            metadata=_facts(context, message),
        ),
    )


def _read_assistant(context: PiContext, message: PiMessage) -> None:
    """Read an answer: one step, with its parts in order, usage, cost and stop reason."""
    if context.is_own_answer(message):
        _read_own_answer(context, message)
        return
    answerer = Answerer(message.provider, message.responseModel or message.model, message.api)
    began = time_of(message.timestamp)
    parts = parts_of(message.content, context.identity, answerer, context.at)
    # An answer that was stopped has an `errorMessage` too ("Request was aborted"), which is no failure.
    error = message.errorMessage if message.stopReason == "error" else None
    _add(
        context,
        Message(
            id=context.identity,
            role="assistant",
            parts=parts,
            # The message's own time is that of the request, the record's that of its end.
            created_at=context.at if began is None or (context.at and began > context.at) else began,
            completed_at=context.at,
            model=message.responseModel or message.model,
            # A router answers with another model than it was asked for; only then does pi write both.
            requested_model=message.model if message.responseModel not in (None, message.model) else None,
            response_id=message.responseId,
            stop_reason=STOP_REASONS.get(message.stopReason or ""),
            raw_stop_reason=message.rawStopReason or message.stopReason,
            usage=usage_of(message.usage),
            cost=cost_of(message.usage),
            error=None if error is None else MessageError(text=error, status=message.errorStatus or _status_in(error)),
            metadata=_facts(context, message, provider=message.provider, api=message.api),
        ),
        context.next_step(),
    )
    # The records of a summary name no model: the one of the newest answer is the best guess.
    context.state.model = message.responseModel or message.model
    _count_cost(context, message.usage)
    for part in parts:
        if isinstance(part, ToolCallPart):
            context.note_call(part, context.identity)
    if message.stopReason == "aborted":
        context.add_interrupt("answer")


def _read_own_answer(context: PiContext, message: PiMessage) -> None:
    """Read what the program itself wrote as an answer: no model was called."""
    facts = _facts(context, message, written_as=message.model, provider=message.provider, api=message.api)
    _add(
        context,
        Message(
            id=context.identity,
            role="assistant",
            parts=parts_of(message.content, context.identity),
            origin=Origin.HARNESS,
            created_at=context.at,
            metadata=facts,
        ),
    )


def _status_in(error: str) -> int | None:
    """The HTTP status with which the words of an error begin: pi has no field for it, oh-my-pi has."""
    found = _STATUS.match(error)
    return None if found is None else int(found[1])


def _count_cost(context: PiContext, usage: PiUsage | None) -> None:
    cost = cost_of(usage)
    context.add_cost(None if cost is None else float(cost.amount))


def _read_result(context: PiContext, message: PiMessage) -> None:
    """Read the result of a call."""
    content = parts_of(message.content, context.identity)
    text = text_of(content)
    call_id = message.toolCallId or ""
    status, code = _outcome(message, text)
    if context.carried is not None and context.carried.status is not None:
        status = context.carried.status
    result = ToolResult(
        id=context.identity,
        status=status,
        content=content,
        error_text=text if status == "error" else None,
        # OpenClaw alone has a field for it. For pi it is read from the words of the output.
        exit_code=code,
        completed_at=context.at,
        duration_ms=_duration_of(message),
        metadata=_facts(context, message),
    )
    context.add_result(call_id, result)
    children = _link_subagents(context, message, call_id)
    if status == "aborted" and context.carried is None:
        context.add_interrupt("tool")
    # What a subagent used is in its own log.
    # A tool may ask a model itself, for example to summarise a page; no message of the conversation is its answer.
    if not children and message.usage is not None and usage_of(message.usage) is not None:
        add_call(context, f"{context.identity}.usage", message.usage, kind=message.toolName or "tool")


def _link_subagents(context: PiContext, message: PiMessage, call_id: str) -> int:
    """Link the subagents that oh-my-pi names in the result of a task, by the names of their logs; return how many."""
    # One `task` may start several subagents. Their logs are named by the `id` in its result, in a folder of this
    # session.
    results = field_of(message.details, "results") if message.toolName == "task" else None
    items = cast("list[Any]", results) if isinstance(results, list) else []
    names = [cast("dict[str, Any]", item).get("id") for item in items if isinstance(item, dict)]
    known = [name for name in names if isinstance(name, str) and name]
    for name in known:
        context.link_child(name, call_id)
    return len(known)


def _outcome(message: PiMessage, text: str) -> tuple[ResultStatus, int | None]:
    """The status of a result and the exit code of its command.

    pi has neither a field for the code nor one for an interruption: both are words at the end of the text. OpenClaw has
    the code in `details`, and calls a command that ended with any code a success.
    """
    stored_code = field_of(message.details, "exitCode")
    printed = _EXIT_CODE.search(text) if message.isError else None
    code = _whole(stored_code) if stored_code is not None else int(printed[1]) if printed else None
    if message.isError and _ABORTED.search(text):
        return "aborted", code
    return ("error" if message.isError or code else "success"), code


def _duration_of(message: PiMessage) -> int | None:
    # oh-my-pi has it among the details, pi since 1.6.0 beside them.
    duration = message.durationMs
    return _whole(field_of(message.details, "durationMs")) if duration is None else round(duration)


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _read_shell(context: PiContext, message: PiMessage) -> None:
    """Read a command that the user ran (`!`), or code (oh-my-pi), with its output as the model gets it."""
    # `bashExecution` has `command`, oh-my-pi's `pythonExecution` has `code`.
    command = message.command if message.command is not None else field_of(context.record.message, "code") or ""
    facts = _facts(
        context,
        message,
        # `!!` runs a command whose output the model does not get.
        command={"name": "!!" if message.excludeFromContext else "!", "arguments": command},
        exit_code=message.exitCode,
        cancelled=message.cancelled or None,
        full_output=message.fullOutputPath,
    )
    # The program runs it at once and asks no model, so that it is a turn without steps.
    context.begin_turn(Origin.SHELL)
    _add(
        context,
        Message(
            id=context.identity,
            role="user",
            parts=(TextPart(id=f"{context.identity}.0", text=_shell_text(command, message)),),
            origin=Origin.SHELL,
            created_at=context.at,
            metadata=facts,
        ),
    )


def _shell_text(command: str, message: PiMessage) -> str:
    """The words that pi puts around a command and its output for the model (0.87.1)."""
    text = f"Ran `{command}`\n" + (f"```\n{message.output}\n```" if message.output else "(no output)")
    if message.cancelled:
        text += "\n\n(command cancelled)"
    elif message.exitCode:
        text += f"\n\nCommand exited with code {message.exitCode}"
    return text


def _read_custom(context: PiContext, message: PiMessage) -> None:
    """Read a message that an extension put into the conversation."""
    add_injected(context, parts_of(message.content, context.identity), message.customType, message.display, message)


def _read_developer(context: PiContext, message: PiMessage) -> None:
    """Read what oh-my-pi itself put in: its instructions, and files that a prompt mentions."""
    parts = parts_of(message.content, context.identity)
    # A `fileMention` need not have `content`: the record is kept as it is.
    if not parts and isinstance(context.record.message, Raw):
        parts = (UnknownPart(id=f"{context.identity}.0", kind=message.role, data=context.record.message),)
    add_injected(context, parts, None, None, message)


def add_injected(
    context: PiContext, parts: tuple[Part, ...], custom_type: str | None, display: bool | None, message: PiMessage
) -> None:
    """Add a message that no person wrote."""
    _add(
        context,
        Message(
            id=context.identity,
            role="developer",
            parts=parts,
            origin=Origin.HARNESS,
            created_at=context.at,
            metadata=_facts(context, message, custom_type=custom_type, display=display),
        ),
    )


def _read_summary(context: PiContext, message: PiMessage) -> None:
    """Read a summary that is a separate message, as a program that copies a whole context writes it."""
    parts = (TextPart(id=f"{context.identity}.0", text=message.summary or ""),)
    _add(
        context,
        Message(
            id=context.identity,
            role="developer",
            parts=parts,
            origin=Origin.COMPACTION,
            created_at=context.at,
            metadata=_facts(context, message),
        ),
    )


def add_call(
    context: PiContext,
    identity: str,
    usage: PiUsage | None,
    *,
    kind: str,
    model: str | None = None,
    error: str | None = None,
    is_inferred: bool = False,
) -> None:
    """Add a model call whose answer is not in the conversation: it has usage and cost, and no parts.

    `is_inferred`: no record names the model.
    """
    facts: dict[str, Any] = {"call": kind, "model_is_inferred": True} if is_inferred else {"call": kind}
    context.add_beside(
        Message(
            id=identity,
            role="assistant",
            created_at=context.at,
            model=model,
            usage=usage_of(usage),
            cost=cost_of(usage),
            error=None if error is None else MessageError(text=error),
            metadata={context.agent: facts},
        )
    )
    _count_cost(context, usage)


ROLES: dict[str, Callable[[PiContext, PiMessage], None]] = {
    "system": _read_system,
    "user": _read_user,
    "assistant": _read_assistant,
    "toolResult": _read_result,
    "bashExecution": _read_shell,
    "custom": _read_custom,
    "hookMessage": _read_custom,
    "branchSummary": _read_summary,
    "compactionSummary": _read_summary,
    "pythonExecution": _read_shell,
    "developer": _read_developer,
    "fileMention": _read_developer,
}
"""`role` of a message -> what reads it. `hookMessage` is the name of `custom` up to version 2; the last three are
oh-my-pi's."""


def structured_result(record: bytes, tool_call_id: str) -> Raw | None:
    """The `details` of a record with a call's result; None if it has none."""
    message = fields_of(record).get("message")
    details = None if message is None else fields_of(message).get("details")
    return None if details is None or details == Raw(b"null") else details.copy()
