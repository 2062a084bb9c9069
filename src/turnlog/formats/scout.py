"""Sessions as transcripts of Inspect Scout: a row of its transcript database each, with chat messages of inspect_ai.

The conversation is in its order, with what was compacted and without what was rewound. What a call returned follows
its message, also if it came later. A message's tokens, cost and time, for which a chat message has no field, are in its
`metadata`. Columns that Scout's schema does not name are metadata of the transcript there.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple, cast

import msgspec

from turnlog.formats.call_arguments import readable_arguments
from turnlog.formats.token_counts import completion_tokens, prompt_tokens
from turnlog.model import (
    CompactionEvent,
    Cost,
    ErrorEvent,
    Fate,
    FilePart,
    HistoryEvent,
    InterruptEvent,
    Membership,
    Message,
    Origin,
    Part,
    ReasoningPart,
    RewindEvent,
    Session,
    TextPart,
    ToolCallPart,
    ToolResult,
    ToolResultEvent,
    ToolState,
    Usage,
)

ColumnKind = Literal["text", "name", "count", "dollars"]

COLUMNS: Final[Mapping[str, ColumnKind]] = {
    # Of Scout's schema.
    **dict.fromkeys(("transcript_id", "source_type", "source_id", "source_uri", "date", "task_set", "task_id"), "name"),
    **{"agent": "name", "model": "name", "message_count": "count", "total_tokens": "count", "error": "name"},
    "messages": "text",
    # Metadata there.
    **dict.fromkeys(("title", "cwd", "git_branch", "git_commit", "agent_version", "updated_at"), "name"),
    **{"parent_id": "name", "turns": "count", "failed_tool_calls": "count", "unpriced_calls": "count"},
    "cost_usd": "dollars",
}
"""Column -> what it holds."""

_ROLES: Final = {"developer": "system"}

_ERRORS: Final = {
    ToolState.OUTPUT_ERROR: "unknown",
    ToolState.OUTPUT_DENIED: "approval",
    ToolState.ABORTED: "cancelled",
}
"""States of calls -> kinds of errors of a tool message."""

_UNSAID: Final = {
    ToolState.OUTPUT_ERROR: "the tool failed",
    ToolState.OUTPUT_DENIED: "the call was refused",
    ToolState.ABORTED: "the call was stopped",
}

_LOST_EVENTS: Final[dict[type[HistoryEvent], str]] = {
    CompactionEvent: "compaction",
    RewindEvent: "rewind",
    InterruptEvent: "interrupt",
    ErrorEvent: "error",
    ToolResultEvent: "result without a call",
}

_AUDIO: Final = {"audio/mpeg": "mp3", "audio/mp3": "mp3", "audio/wav": "wav", "audio/x-wav": "wav"}

_VIDEO: Final = {"video/mp4": "mp4", "video/mpeg": "mpeg", "video/quicktime": "mov"}

_ORDER: Final[dict[type[Part], int]] = {ReasoningPart: 0, TextPart: 0, FilePart: 0, ToolCallPart: 1}
"""A chat message has its contents before its calls."""


class ScoutConversation(NamedTuple):
    """One session, as it is written."""

    session: Session
    placed: Sequence[tuple[Message, Membership, Cost | None]]
    """Its messages with their results, contents whole, their places, and what they cost."""
    events: Sequence[HistoryEvent]
    read_spill: Callable[[str], str | None]
    """The whole of an output that a result previews, by its name."""


class ScoutTranscript(NamedTuple):
    """A row, and what it does not contain."""

    row: Mapping[str, str | int | float | None]
    """Column -> value; `messages` is JSON."""
    losses: tuple[tuple[str, str], ...]
    """Kind and place of each."""


def to_scout(conversation: ScoutConversation) -> ScoutTranscript:
    """A session as a transcript. A session without messages has an empty list of them."""
    writer = _Writer(conversation.read_spill)
    messages = [made for message, place, cost in conversation.placed for made in writer.messages(message, place, cost)]
    for event in conversation.events:
        if type(event) in _LOST_EVENTS:
            writer.lose(_LOST_EVENTS[type(event)], f"at position {event.position}")
    session = conversation.session
    parents = [link.parent_session_id for link in session.relationships if link.kind == "subagent"]
    usage = session.usage.usage
    counted = [count for count in (prompt_tokens(usage), completion_tokens(usage)) if count is not None]
    project = session.project
    row = {
        "transcript_id": session.id,
        "source_type": "turnlog",
        "source_id": None if project is None else project.path,
        "source_uri": None,
        "date": _time(session.created_at),
        "task_set": None if project is None else project.name,
        "task_id": session.id,
        "agent": session.agent,
        "model": session.models[-1] if session.models else None,
        "message_count": len(messages),
        "total_tokens": sum(counted) if counted else None,
        "error": _final_error(conversation.placed),
        "messages": msgspec.json.encode(messages).decode(),
        "title": session.title,
        "cwd": session.cwd,
        "git_branch": session.git_branch,
        "git_commit": session.git_commit,
        "agent_version": session.agent_version,
        "updated_at": _time(session.updated_at),
        "parent_id": parents[0] if parents else None,
        "turns": session.counts.turns,
        "failed_tool_calls": session.counts.failed_tool_calls,
        "unpriced_calls": session.unpriced_calls,
        "cost_usd": _dollars(session.cost),
    }
    return ScoutTranscript({name: row[name] for name in COLUMNS}, tuple(writer.losses))


def _final_error(placed: Sequence[tuple[Message, Membership, Cost | None]]) -> str | None:
    """The error in which a session ended."""
    last = next((message for message, place, _ in reversed(placed) if _is_part(place)), None)
    return None if last is None or last.error is None else last.error.text


def _is_part(place: Membership) -> bool:
    return place.fate in (Fate.ACTIVE, Fate.COMPACTED)


class _Writer:
    """Writes the messages of one session."""

    def __init__(self, read_spill: Callable[[str], str | None]) -> None:
        self._read_spill = read_spill
        self.losses: list[tuple[str, str]] = []

    def lose(self, kind: str, place: str) -> None:
        self.losses.append((kind, place))

    def messages(self, message: Message, place: Membership, cost: Cost | None) -> Iterator[dict[str, Any]]:
        """A message, and one for what each of its calls returned."""
        if not _is_part(place):
            self.lose(place.fate.value, f"message {message.id} is not part of the conversation")
            return
        ranks = [_ORDER[type(part)] for part in message.parts if type(part) in _ORDER]
        if ranks != sorted(ranks):
            self.lose("order", f"message {message.id}: calls are apart from texts")
        calls = [part for part in message.parts if isinstance(part, ToolCallPart)]
        made: dict[str, Any] = {
            "id": message.id,
            "role": _ROLES.get(message.role, message.role),
            "content": self._contents(message.parts, message.id),
            "metadata": _known(self._facts(message, place, cost)) or None,
        }
        if message.role == "assistant":
            made["source"] = "generate"
            made["model"] = message.model
            made["tool_calls"] = [self._call(call) for call in calls] or None
        elif message.origin is Origin.PROMPT:
            made["source"] = "input"
        yield made
        for call in calls:
            if message.role == "assistant":
                yield from self._outcome(call, message.id)
            else:
                self.lose("tool-call", f"message {message.id} is not the agent's")

    def _facts(self, message: Message, place: Membership, cost: Cost | None) -> dict[str, Any]:
        usage = message.usage or Usage()
        paid = (cost or message.cost) if place.is_billed else None
        return {
            "created_at": _time(message.created_at),
            "completed_at": _time(message.completed_at),
            "turn": place.turn,
            "step": place.step,
            "role": message.role if message.role in _ROLES else None,
            "origin": message.origin,
            "fate": None if place.fate is Fate.ACTIVE else place.fate.value,
            "copied": None if place.is_billed else True,
            "stop_reason": message.stop_reason,
            "error": None if message.error is None else message.error.text,
            "input_tokens": prompt_tokens(usage),
            "cached_tokens": usage.cache_read,
            "output_tokens": completion_tokens(usage),
            "reasoning_tokens": usage.reasoning,
            "cost_usd": _dollars(paid),
        }

    def _contents(self, parts: Sequence[Part], owner: str) -> str | list[dict[str, Any]]:
        """One text as itself, anything else as a list."""
        made = [found for part in parts if (found := self._content(part, owner)) is not None]
        if not made:
            return ""
        return cast(str, made[0]["text"]) if len(made) == 1 and made[0]["type"] == "text" else made

    def _content(self, part: Part, owner: str) -> dict[str, Any] | None:
        if part.provider is not None:
            self.lose("provider data", f"message {owner}: what its provider signed or encrypted")
        if isinstance(part, TextPart):
            if part.citations:
                self.lose("citations", f"message {owner}")
            return {"type": "text", "text": part.text}
        if isinstance(part, ReasoningPart):
            return {"type": "reasoning", "reasoning": part.text, "redacted": part.redacted or not part.text}
        if isinstance(part, FilePart):
            return self._file(part, owner)
        if not isinstance(part, ToolCallPart):
            self.lose(part.type, f"message {owner}")
        return None

    def _file(self, part: FilePart, owner: str) -> dict[str, Any] | None:
        kind = part.media_type.partition(";")[0].strip().lower()
        place = part.url if part.data is None else f"data:{kind};base64,{base64.b64encode(part.data).decode()}"
        if place is None:
            self.lose("file", f"{part.media_type} {part.filename or ''}".rstrip() + f" in {owner}")
            return None
        if kind.startswith("image/"):
            return {"type": "image", "image": place}
        if kind in _AUDIO:
            return {"type": "audio", "audio": place, "format": _AUDIO[kind]}
        if kind in _VIDEO:
            return {"type": "video", "video": place, "format": _VIDEO[kind]}
        return {"type": "document", "document": place, "filename": part.filename or "", "mime_type": kind}

    def _call(self, call: ToolCallPart) -> dict[str, Any]:
        arguments = readable_arguments(call)
        if arguments.loss is not None:
            self.lose("arguments", f"call {call.tool_call_id}: {arguments.loss}, so they are a text")
        is_text = arguments.is_wrapped and call.input_text is not None
        return {
            "id": call.tool_call_id,
            "function": call.tool_name,
            "arguments": arguments.json,
            "type": "custom" if is_text else "function",
        }

    def _outcome(self, call: ToolCallPart, owner: str) -> Iterator[dict[str, Any]]:
        final = [result for result in call.results if not result.preliminary] or list(call.results)
        if len(call.results) > 1:
            self.lose("result", f"call {call.tool_call_id} has {len(call.results)}: the last one is there")
        if not final and call.state not in _ERRORS:
            return
        result = final[-1] if final else None
        contents = "" if result is None else self._output(result)
        made: dict[str, Any] = {
            "id": f"{owner}/{call.tool_call_id}",
            "role": "tool",
            "content": contents,
            "tool_call_id": call.tool_call_id,
            "function": call.tool_name,
        }
        if call.state in _ERRORS:
            reason = None if result is None else result.error_text or result.output_text
            made["error"] = {"type": _ERRORS[call.state], "message": reason or _UNSAID[call.state]}
        facts = {"kind": call.kind, "child_session_id": call.child_session_id, "started_at": _time(call.started_at)}
        if result is not None:
            facts |= {"completed_at": _time(result.completed_at), "duration_ms": result.duration_ms}
            facts |= {"exit_code": result.exit_code}
        yield made | {"metadata": _known(facts) or None}

    def _output(self, result: ToolResult) -> str | list[dict[str, Any]]:
        whole = self._read_spill(result.spilled_to) if result.spilled_to else None
        return self._contents(result.content, result.id) if whole is None else whole


def _known(facts: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in facts.items() if value is not None}


def _time(moment: Any) -> str | None:
    return None if moment is None else moment.isoformat()


def _dollars(cost: Cost | None) -> float | None:
    return float(cost.amount) if cost is not None and cost.currency == "USD" else None
