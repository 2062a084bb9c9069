"""What a request of Copilot Chat is made of: the items of its response, its rounds, and its tools by kind.

The response is what the user saw, in its order. The rounds, which the extension keeps in the metadata of the result,
are the calls of the model: they have the exact input and output of tools. Items of unknown kinds are kept as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET, Raw, UnsetType

from turnlog.agents.claude_code.contents import from_base64
from turnlog.agents.decoding import list_of, object_of, text_of
from turnlog.agents.jsonl import UNREADABLE
from turnlog.model import (
    FilePart,
    Part,
    ReasoningPart,
    ResultStatus,
    TextPart,
    ToolCallPart,
    ToolKind,
    ToolResult,
    UnknownPart,
)
from turnlog.model.merge import add_result

TOOL_KINDS: dict[str, ToolKind] = {
    "applyPatch": ToolKind.EDIT,
    "createAndRunTask": ToolKind.EXECUTE,
    "createDirectory": ToolKind.EDIT,
    "createFile": ToolKind.EDIT,
    "editFile_internal": ToolKind.EDIT,
    "editNotebook": ToolKind.EDIT,
    "fetchWebPage": ToolKind.FETCH,
    "fetchWebPage_internal": ToolKind.FETCH,
    "findFiles": ToolKind.SEARCH,
    "findTextInFiles": ToolKind.SEARCH,
    "getChangedFiles": ToolKind.READ,
    "getErrors": ToolKind.READ,
    "get_terminal_output": ToolKind.EXECUTE,
    "githubRepo": ToolKind.SEARCH,
    "insertEdit": ToolKind.EDIT,
    "listCodeUsages": ToolKind.SEARCH,
    "listDirectory": ToolKind.READ,
    "manage_todo_list": ToolKind.THINK,
    "multiReplaceString": ToolKind.EDIT,
    "openSimpleBrowser": ToolKind.FETCH,
    "readFile": ToolKind.READ,
    "readNotebookCellOutput": ToolKind.READ,
    "replaceString": ToolKind.EDIT,
    "runNotebookCell": ToolKind.EXECUTE,
    "runSubagent": ToolKind.SUBAGENT,
    "runTests": ToolKind.EXECUTE,
    "run_in_terminal": ToolKind.EXECUTE,
    "searchCodebase": ToolKind.SEARCH,
    "searchWorkspaceSymbols": ToolKind.SEARCH,
    "terminal_last_command": ToolKind.EXECUTE,
    "terminal_selection": ToolKind.READ,
    "think": ToolKind.THINK,
}
"""Names of tools without the prefix of who offers them; any other, MCP's included, is of kind `other`."""

_PREFIXES = ("copilot_", "vscode_")

SHOWN_ONLY = frozenset(
    {
        *("undoStop", "codeblockUri", "textEditGroup", "notebookEditGroup", "workspaceEdit", "multiDiffData"),
        *("progressMessage", "progressTask", "progressTaskSerialized", "warning", "command", "confirmation"),
        *("elicitation", "elicitationSerialized", "questionCarousel", "mcpServersStarting", "prepareToolInvocation"),
        *("extensions", "pullRequest", "treeData", "hook", "clearToPreviousToolInvocation", "references"),
        *("codeCitation", "move", "disabledClaudeHooks", "autoModeResolution"),
    }
)
"""Kinds of items that are no part of an answer. They are counted in its metadata."""

_DENIED = 0
_SKIPPED = 5
"""Kinds of a confirmation that refuse a call."""


class Round(NamedTuple):
    """A call of the model."""

    number: int
    time: datetime | None
    arguments: str


class ModelAnswer(NamedTuple):
    """What one call of the model gave, as far as the items show it."""

    number: int | None
    """That of its round; None if it is not known."""
    items: list[dict[str, Any]]


def time_of(milliseconds: object) -> datetime | None:
    """The time of a number of Unix milliseconds; None if it is none."""
    if isinstance(milliseconds, bool) or not isinstance(milliseconds, int | float) or milliseconds <= 0:
        return None
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def rounds_of(metadata: Mapping[str, Any]) -> dict[str, Round]:
    """The round of each call, by the call's id."""
    found: dict[str, Round] = {}
    for number, each in enumerate(map(object_of, list_of(metadata.get("toolCallRounds")))):
        for call in map(object_of, list_of(each.get("toolCalls"))):
            identity = text_of(call.get("id"))
            if identity is not None:
                found[identity] = Round(number, time_of(each.get("timestamp")), str(call.get("arguments") or ""))
    return found


_THOUGHT, _TEXT, _CALL = range(3)

_PHASES = {"thinking": _THOUGHT, "toolInvocationSerialized": _CALL, "toolInvocation": _CALL}
"""Kind of an item -> its place in the order of what one call of the model gives; others are text."""


def answers_in(items: list[dict[str, Any]], rounds: Mapping[str, Round]) -> Iterator[ModelAnswer]:
    """The items of a response, one call of the model after the other.

    A call of another round begins a new answer, and so does what cannot follow a call in one answer. Without rounds,
    calls that followed each other without a word cannot be told from parallel ones.
    """
    answer = ModelAnswer(None, [])
    last = _THOUGHT
    for item in items:
        phase = _PHASES.get(str(item.get("kind")), _TEXT)
        known = rounds.get(str(item.get("toolCallId")))
        number = None if known is None else known.number
        is_shown_only = text_of(item.get("kind")) in SHOWN_ONLY
        is_other_round = phase == _CALL and None not in (number, answer.number) and number != answer.number
        if answer.items and not is_shown_only and (phase < last or is_other_round):
            yield answer
            answer = ModelAnswer(None, [])
        if number is not None:
            answer = ModelAnswer(number, answer.items)
        answer.items.append(item)
        last = last if is_shown_only else phase
    if answer.items:
        yield answer


def kind_of(tool: str) -> ToolKind:
    """What a tool does."""
    name = next((tool.removeprefix(prefix) for prefix in _PREFIXES if tool.startswith(prefix)), tool)
    return TOOL_KINDS.get(name, ToolKind.OTHER)


class RequestFacts(NamedTuple):
    """What is known of a request beside the items of its response."""

    rounds: Mapping[str, Round]
    results: Mapping[str, Any]
    """Of each call, what the model got."""
    is_stopped: bool


def parts_of(
    items: list[dict[str, Any]], message_id: str, request: RequestFacts, at: datetime | None
) -> tuple[list[Part], dict[str, int]]:
    """The parts of an answer, and how many items of each kind are no part of it."""
    parts: list[Part] = []
    shown: dict[str, int] = {}
    for item in items:
        kind = text_of(item.get("kind"))
        part_id = f"{message_id}.{len(parts)}"
        text = _text_of(item, kind)
        if kind in SHOWN_ONLY:
            shown[kind] = shown.get(kind, 0) + 1
        elif kind in ("toolInvocationSerialized", "toolInvocation"):
            parts.append(_call_part(item, part_id, request, at))
        elif kind == "thinking":
            _add_thought(parts, item, part_id)
        elif text is None:
            parts.append(UnknownPart(id=part_id, kind=kind or "", data=Raw(msgspec.json.encode(item))))
        elif parts and isinstance(parts[-1], TextPart):
            parts[-1] = msgspec.structs.replace(parts[-1], text=parts[-1].text + text)
        elif text:
            parts.append(TextPart(id=part_id, text=text))
    return parts, shown


def _text_of(item: Mapping[str, Any], kind: str | None) -> str | None:
    """The text of an item; None if it has none. A reference to a file is part of the text."""
    if kind in (None, "markdownContent", "markdownVuln"):
        found = item.get("value", object_of(item.get("content")).get("value", item.get("content")))
        return found if isinstance(found, str) else None
    if kind == "inlineReference":
        return f"`{_reference(item)}`"
    return None


def _reference(item: Mapping[str, Any]) -> str:
    found = object_of(item.get("inlineReference"))
    place = object_of(found.get("location")) or found
    place = object_of(place.get("uri")) or place
    names = (item.get("name"), found.get("name"), place.get("fsPath"), place.get("path"), place.get("external"))
    return next(filter(None, map(text_of, names)), "")


def message_text(value: object) -> str | None:
    """A message that is a text, or an object with one."""
    return text_of(value) or text_of(object_of(value).get("value"))


def _add_thought(parts: list[Part], item: Mapping[str, Any], part_id: str) -> None:
    """Add a thought to the one before, if that was not ended: thoughts are written in pieces."""
    value = item.get("value")
    text = value if isinstance(value, str) else "".join(each for each in list_of(value) if isinstance(each, str))
    if parts and isinstance(parts[-1], ReasoningPart):
        parts[-1] = msgspec.structs.replace(parts[-1], text=parts[-1].text + text)
    elif text:
        parts.append(ReasoningPart(id=part_id, text=text))


# -- calls


def _call_part(item: Mapping[str, Any], part_id: str, request: RequestFacts, at: datetime | None) -> ToolCallPart:
    name = text_of(item.get("toolId")) or ""
    identity = text_of(item.get("toolCallId")) or part_id
    value, text = _input_of(item, request.rounds.get(identity))
    call = ToolCallPart(
        id=part_id,
        tool_call_id=identity,
        tool_name=name,
        kind=kind_of(name),
        input=value,
        input_text=text,
        title=message_text(item.get("generatedTitle")) or message_text(item.get("invocationMessage")),
        parent_tool_call_id=text_of(item.get("subAgentInvocationId")),
        started_at=at,
    )
    is_over = item.get("kind") == "toolInvocationSerialized"
    return add_result(call, _result_of(item, identity, request)) if is_over else call


def _input_of(item: Mapping[str, Any], known: Round | None) -> tuple[Raw | UnsetType, str | None]:
    """The input that the model gave; without its round, what the item shows of it."""
    data, details = object_of(item.get("toolSpecificData")), object_of(item.get("resultDetails"))
    for text in (known.arguments if known is not None else None, details.get("input")):
        if isinstance(text, str) and text:
            try:
                msgspec.json.decode(text)
            except (*UNREADABLE, UnicodeError):
                return UNSET, text
            return Raw(text.encode()), None
    line = object_of(data.get("commandLine"))
    command = text_of(line.get("original")) or text_of(data.get("command"))
    if isinstance(data.get("rawInput"), dict):
        shown: dict[str, Any] = data["rawInput"]
    elif command is not None:
        shown = {"command": command}
    elif data.get("kind") == "subagent":
        shown = {name: data[name] for name in ("description", "agentName", "prompt") if data.get(name)}
    else:
        shown = {}
    return Raw(msgspec.json.encode(shown)), None


def _result_of(item: Mapping[str, Any], call_id: str, request: RequestFacts) -> ToolResult:
    given = object_of(request.results.get(call_id))
    data, details = object_of(item.get("toolSpecificData")), object_of(item.get("resultDetails"))
    state = object_of(data.get("terminalCommandState"))
    code, duration = state.get("exitCode"), state.get("duration")
    code = code if isinstance(code, int) and not isinstance(code, bool) else None
    identity = f"{call_id}.result"
    content = tuple(_result_parts(item, given, details, data, identity))
    status: ResultStatus = "success"
    error = message_text(item.get("resultError"))
    confirmed = item.get("isConfirmed")
    confirmed = object_of(confirmed).get("type", confirmed)
    if confirmed is False or confirmed in (_DENIED, _SKIPPED):
        status = "denied"
    elif item.get("isConfirmed") is None and request.is_stopped:
        status = "aborted"
    elif error is not None or details.get("isError") is True or code:
        status = "error"
    text = "\n".join([part.text for part in content if isinstance(part, TextPart)])
    return ToolResult(
        id=identity,
        status=status,
        content=content,
        error_text=None if status == "success" else error or text or status,
        exit_code=code,
        duration_ms=round(duration) if isinstance(duration, int | float) and 0 <= duration < 1 << 53 else None,
    )


def _result_parts(
    item: Mapping[str, Any],
    given: Mapping[str, Any],
    details: Mapping[str, Any],
    data: Mapping[str, Any],
    identity: str,
) -> Iterator[Part]:
    """What the model got; without it what the user saw: the output of the call, or the words about it."""
    texts = [each.get("value") for each in map(object_of, list_of(given.get("content")))]
    number = 0
    for text in texts:
        if isinstance(text, str):
            yield TextPart(id=f"{identity}.{number}", text=text)
            number += 1
    if number:
        return
    for each in map(object_of, list_of(details.get("output")) or [details.get("output")]):
        part = _output_part(each, f"{identity}.{number}")
        if part is not None:
            yield part
            number += 1
    shown = text_of(object_of(data.get("terminalCommandOutput")).get("text")) or text_of(data.get("result"))
    shown = shown or message_text(item.get("pastTenseMessage"))
    if not number and shown is not None:
        yield TextPart(id=f"{identity}.0", text=shown)


def _output_part(output: Mapping[str, Any], part_id: str) -> Part | None:
    value = text_of(output.get("value")) or text_of(output.get("base64Data"))
    if value is None:
        return None
    if output.get("type") != "data" and output.get("isText") is not False:
        return TextPart(id=part_id, text=value)
    data = from_base64(value)
    return FilePart(id=part_id, media_type=text_of(output.get("mimeType")) or "image/*", data=data) if data else None


def structured_result(record: bytes, tool_call_id: str) -> Raw | None:
    """`resultDetails` of a call, from the JSON that has it."""
    try:
        value = msgspec.json.decode(record)
    except UNREADABLE:
        return None
    found = next(_calls_in(value, tool_call_id, 0), None)
    return None if not found else Raw(msgspec.json.encode(found))


_DEEPEST = 8
"""Levels of objects and lists in which a call is looked for. A response has its calls above these; what a hostile file
nests deeper must not exhaust the stack."""


def _calls_in(value: object, call_id: str, depth: int) -> Iterator[dict[str, Any]]:
    fields = object_of(value)
    if fields.get("toolCallId") == call_id and object_of(fields.get("resultDetails")):
        yield object_of(fields["resultDetails"])
    if depth < _DEEPEST:
        for inner in (*fields.values(), *list_of(value)):
            yield from _calls_in(inner, call_id, depth + 1)
