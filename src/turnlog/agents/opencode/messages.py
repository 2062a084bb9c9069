"""A message of OpenCode with its parts becomes messages of the model, one for each step, with usage and cost."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import Any, Literal, NamedTuple

import msgspec

from turnlog.agents.decoding import json_of, list_of, object_of, other_fields, text_of
from turnlog.agents.handoffs import MARK
from turnlog.agents.opencode import NAME
from turnlog.agents.opencode.rows import (
    PARTS,
    Row,
    RowVersion,
    TimelineEntry,
    part_position,
    time_of,
    time_position,
    to_datetime,
    to_int,
)
from turnlog.agents.opencode.snapshot import ASKED_MODEL, step_message_id, step_ranges
from turnlog.agents.opencode.tools import file_part, provider_data, read_call
from turnlog.model import (
    Cost,
    DataPart,
    Message,
    MessageError,
    Origin,
    Part,
    ProviderData,
    ReasoningPart,
    Role,
    StopReason,
    TextPart,
    UnknownPart,
    Usage,
)
from turnlog.model.merge import merge_messages

# -- usage and cost


_VERSION = re.compile(r"(\d+)\.(\d+)(?:\.(\d+))?")
_INCLUDES_CACHED = (1, 0, 61)
"""The last version in which `input` contains `cache.read`; 1.0.98 excludes it."""
_RELAYS = frozenset({"github-copilot", "openrouter"})
"""Providers that count Claude's cached tokens as input."""
_EXCLUDES_REASONING = (1, 3)
"""From this version on `output` excludes `reasoning`, where no total decides that."""


def usage_of(
    tokens: object, version: str | None, *, provider: str | None = None, model: str | None = None
) -> Usage | None:
    """The usage of one step in disjoint buckets; None if nothing was counted.

    Up to 1.0.61 `input` contained the cached tokens, except with Claude's own APIs. Whether `output` contains
    `reasoning` changed between 1.2.20 (it does) and 1.18.33 (it does not); `total` decides, where there is one.
    OpenCode writes zeros before a step has ended and where a provider counts nothing.

    Args:
        tokens: The `tokens` of a message or a part.
        version: OpenCode's version.
        provider: Its name of the provider.
        model: The model.
    """
    if not isinstance(tokens, dict):
        return None
    wire = object_of(tokens)  # pyright: ignore[reportUnknownArgumentType]  # JSON of any shape
    cached = object_of(wire.get("cache"))
    counts: dict[str, Any] = {
        "input": _count(wire.get("input")),
        "cache_read": _count(cached.get("read")),
        "cache_write": _count(cached.get("write")),
        "output": _count(wire.get("output")),
        "reasoning": _count(wire.get("reasoning")),
    }
    if not any(counts.values()):
        return None
    total = _count(wire.get("total"))
    if total is None and _contains_cached(counts, version, provider, model):
        counts["input"] = (counts["input"] or 0) - (counts["cache_read"] or 0)
    if _contains_reasoning(counts, total, version):
        counts["output"] = (counts["output"] or 0) - (counts["reasoning"] or 0)
    return Usage(**counts)


def step_tokens(parts: list[Row]) -> Row | None:
    """The tokens of a step, from its last `step-finish` part."""
    found = [part.get("tokens") for part in parts if part.get("type") == "step-finish"]
    return object_of(found[-1]) if found else None


def cost_of(amount: object) -> Cost | None:
    """The cost in US dollars that OpenCode computed from its own price list; it writes 0 where it knows no price."""
    if isinstance(amount, bool) or not isinstance(amount, int | float) or not amount > 0:
        return None
    try:
        return Cost(amount=Decimal(repr(amount)), kind="reported")
    except InvalidOperation:
        return None


def _contains_cached(counts: dict[str, Any], version: str | None, provider: str | None, model: str | None) -> bool:
    """Whether `input` contains `cache.read`.

    Anthropic's API, also when a cloud offers it, counts cached tokens apart, and it alone counts those written to the
    cache.
    """
    match = _VERSION.match(version or "")
    if (
        match is None
        or tuple(int(number or 0) for number in match.groups()) > _INCLUDES_CACHED
        or counts["cache_write"]
    ):
        return False
    if (counts["input"] or 0) < (counts["cache_read"] or 0):
        return False
    return provider in _RELAYS or "claude" not in (model or "")


def _contains_reasoning(counts: dict[str, Any], total: int | None, version: str | None) -> bool:
    """Whether `output` contains `reasoning`."""
    output, reasoning = counts["output"] or 0, counts["reasoning"] or 0
    # Reasoning that is part of the output cannot be more than it.
    if not reasoning or reasoning > output:
        return False
    known = sum(count or 0 for count in counts.values())
    if total is not None and total in (known, known - reasoning):
        return total != known
    match = _VERSION.match(version or "")
    return match is not None and (int(match[1]), int(match[2])) < _EXCLUDES_REASONING


def _count(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1 << 53:
        return None
    return int(value)


# -- parts


_MESSAGE_FACTS = frozenset(kind for kind, outcome in PARTS.items() if outcome == "message")
_DATA = frozenset(kind for kind, outcome in PARTS.items() if outcome == "data")

_ID_FIELDS = frozenset({"id", "sessionID", "messageID"})
_FIELDS = _ID_FIELDS | {"type", "text", "synthetic", "ignored", "time", "metadata", "providerMetadata"}


class ReadPart(NamedTuple):
    """A part of the model, and for a call when its result arrived (Unix milliseconds) and the session it started."""

    part: Part
    ended_at: int | None = None
    child: str | None = None


def read_part(part: Row, part_id: str, model: str | None, *, is_over: bool) -> ReadPart | None:
    """What a part becomes; None for a part that only has facts about its message.

    Args:
        part: Its JSON.
        part_id: Its id in the model.
        model: The model that wrote it.
        is_over: Whether the agent has continued since, so that it stays as it is.
    """
    kind = str(part.get("type"))
    if kind in _MESSAGE_FACTS:
        return None
    if kind == "text":
        return ReadPart(_text(part, part_id, model, is_over=is_over))
    if kind == "reasoning":
        return ReadPart(_reasoning(part, part_id, model, is_over=is_over))
    if kind == "file":
        return ReadPart(file_part(part, part_id))
    if kind == "tool":
        return ReadPart(*read_call(part, part_id, model, is_over=is_over))
    if kind in _DATA:
        return ReadPart(DataPart(id=part_id, name=kind, data=json_of(_without_ids(part))))
    return ReadPart(UnknownPart(id=part_id, kind=kind, data=json_of(_without_ids(part))))


def _without_ids(part: Row) -> Row:
    """A part without the ids that say where it belongs: copies and exports have others, and a database has columns."""
    return {name: value for name, value in part.items() if name not in _ID_FIELDS}


def _text(part: Row, part_id: str, model: str | None, *, is_over: bool) -> TextPart:
    flags = {name: True for name in ("synthetic", "ignored") if part.get(name) is True} | other_fields(part, _FIELDS)
    return TextPart(
        id=part_id,
        text=_string(part.get("text")),
        state=_state(part, is_over=is_over),
        provider=provider_data(part.get("metadata"), model),
        metadata={NAME: flags} if flags else {},
    )


def _reasoning(part: Row, part_id: str, model: str | None, *, is_over: bool) -> ReasoningPart:
    start, end = time_of(part, "start"), time_of(part, "end")
    return ReasoningPart(
        id=part_id,
        text=_string(part.get("text")),
        state=_state(part, is_over=is_over),
        duration_ms=end - start if start and end >= start else None,
        provider=provider_data(part.get("metadata"), model),
        metadata={NAME: others} if (others := other_fields(part, _FIELDS)) else {},
    )


def _state(part: Row, *, is_over: bool) -> Literal["streaming", "done"]:
    """A part that has begun and not ended is still being written, unless the agent has continued since."""
    is_unfinished = time_of(part, "start") > 0 and not time_of(part, "end")
    return "streaming" if is_unfinished and not is_over else "done"


def _string(value: object) -> str:
    return value if isinstance(value, str) else ""


# -- messages


_STOP_REASONS: dict[str, StopReason] = {
    "stop": "stop",
    "tool-calls": "tool_use",
    "length": "length",
    "content-filter": "content_filter",
    "error": "error",
}
_ERROR_STOP_REASONS: dict[str, StopReason] = {
    "MessageAbortedError": "aborted",
    "MessageOutputLengthError": "length",
    "ContextOverflowError": "context_window",
    "ContentFilterError": "content_filter",
    "aborted": "aborted",
    "provider.content-filter": "content_filter",
}
ABORTED = frozenset({"MessageAbortedError", "aborted"})
"""The names of the error of a message that the user stopped."""
_MODELLED = frozenset(
    {
        "id",
        "sessionID",
        "role",
        "time",
        "modelID",
        "providerID",
        "cost",
        "tokens",
        "finish",
        "error",
        "parts",
        MARK,
        ASKED_MODEL,
    }
)
_DIFF_FACTS = ("file", "additions", "deletions", "status")


class SubagentCall(NamedTuple):
    """A session that a call started."""

    session: str
    tool_call_id: str


class StepMessage(NamedTuple):
    """The message of the model for one step, its place in the session, and what its parts say besides."""

    message: Message
    position: int
    step: int | None
    parent: str | None
    results: tuple[tuple[str, int], ...]
    """Ids of results, and the positions at which they arrived."""
    children: tuple[SubagentCall, ...]


def read_message(
    key: str, info: Row, parts: Sequence[Row], entry: TimelineEntry, *, version: str | None, updated_at: datetime | None
) -> Iterator[StepMessage]:
    """Every step in a message, in order.

    Args:
        key: OpenCode's id of the message.
        info: Its JSON.
        parts: The JSON of its parts, in order.
        entry: Its timeline entry.
        version: OpenCode's version, as the session names it.
        updated_at: When the record was last rewritten.
    """
    message_id = entry.id_of(key)
    ranges = step_ranges(parts) if info.get("role") == "assistant" else [(0, len(parts))]
    parent = entry.parent
    for number, (start, end) in enumerate(ranges):
        own_id = step_message_id(message_id, number)
        step = _Step(key, info, parts, start, end, entry, number, len(ranges), version)
        position = entry.position if number == 0 else part_position(entry.position, key, step.first_id, start)
        found, results, children = step.content(message_id, position)
        yield StepMessage(
            step.message(own_id, found, updated_at),
            position,
            None if entry.step is None else entry.step + number,
            parent,
            results,
            children,
        )
        parent = own_id


class _Step(NamedTuple):
    """One step in a message: its parts from `start` to before `end`."""

    key: str
    info: Row
    parts: Sequence[Row]
    start: int
    end: int
    entry: TimelineEntry
    number: int
    steps: int
    """How many steps the message has."""
    version: str | None

    @property
    def first_id(self) -> str:
        return str(self.parts[self.start].get("id") or "") if self.start < self.end else ""

    @property
    def own(self) -> list[Row]:
        return list(self.parts[self.start : self.end])

    @property
    def model(self) -> str | None:
        return text_of(self.info.get("modelID")) or text_of(object_of(self.info.get("model")).get("modelID"))

    def content(
        self, message_id: str, position: int
    ) -> tuple[tuple[Part, ...], tuple[tuple[str, int], ...], tuple[SubagentCall, ...]]:
        """The parts, the results' ids with the positions at which they arrived, and the sessions that calls started."""
        found: list[Part] = []
        results: list[tuple[str, int]] = []
        children: list[SubagentCall] = []
        is_over = self.entry.is_over or self.number < self.steps - 1 or self._is_ended
        for number in range(self.start, self.end):
            read = read_part(self.parts[number], f"{message_id}.{number}", self.model, is_over=is_over)
            if read is None:
                continue
            found.append(read.part)
            if read.part.type != "tool-call":
                continue
            if read.child is not None:
                children.append(SubagentCall(read.child, read.part.tool_call_id))
            # A result has no row. Its position is when its call ended, and never before its message.
            arrival = position + 1 if read.ended_at is None else max(position + 1, time_position(read.ended_at))
            results += [(result.id, arrival) for result in read.part.results]
        return tuple(found), tuple(results), tuple(children)

    @property
    def _is_ended(self) -> bool:
        return "completed" in object_of(self.info.get("time")) or self.info.get("error") is not None

    def _cost(self) -> object:
        """The cost of the step. Kilo adds those of subagents that it started to the message, so the step's own wins."""
        own = _step_cost(self.own)
        return self.info.get("cost") if own is None and self.steps == 1 else own

    def message(self, message_id: str, parts: tuple[Part, ...], updated_at: datetime | None) -> Message:
        info, time = self.info, object_of(self.info.get("time"))
        is_answer, is_last = info.get("role") == "assistant", self.number == self.steps - 1
        provider = text_of(info.get("providerID")) or text_of(object_of(info.get("model")).get("providerID"))
        # Tokens and cost of a message with several steps are sums: then those of the step itself count.
        is_only, tokens = self.steps == 1, step_tokens(self.own)
        finish = text_of(info.get("finish")) if is_last else None
        finish = finish or _finish_reason(self.own)
        error = _error(info.get("error")) if is_last else None
        return Message(
            id=message_id,
            role=_role(info, self.entry),
            parts=parts,
            origin=Origin(self.entry.origin) if self.entry.origin else None,
            created_at=to_datetime(time.get("created")),
            completed_at=to_datetime(time.get("completed")) if is_last else None,
            updated_at=updated_at,
            model=self.model if is_answer else None,
            stop_reason=_stop_reason(finish, error),
            raw_stop_reason=finish,
            usage=self._usage(info.get("tokens") if is_only else tokens, tokens, provider) if is_answer else None,
            cost=cost_of(self._cost()) if is_answer else None,
            error=error,
            provider=ProviderData(name=provider, model=self.model) if provider else None,
            metadata={NAME: facts} if (facts := self._facts()) else {},
        )

    def _usage(self, tokens: object, own_tokens: object, provider: str | None) -> Usage | None:
        # OpenCode wrote the call of a `!` command itself: no tokens were spent, which is not the same as unknown.
        if ASKED_MODEL not in self.info and _is_without_model(self.own):
            return Usage(input=0, output=0)
        found = (usage_of(each, self.version, provider=provider, model=self.model) for each in (tokens, own_tokens))
        return next((usage for usage in found if usage is not None), None)

    def _facts(self) -> Row:
        facts = {name: value for name, value in self.info.items() if name not in _MODELLED}
        # The summary of a turn has both texts of every file that it changed: megabytes that its calls have too.
        if isinstance(facts.get("summary"), dict):
            facts["summary"] = _without_diff_texts(object_of(facts["summary"]))
        snapshots = [part["snapshot"] for part in self.own if _is_step(part) and part.get("snapshot")]
        return facts | ({"snapshots": snapshots} if snapshots else {})


def _role(info: Row, entry: TimelineEntry) -> Role:
    if info.get("role") == "assistant":
        return "assistant"
    return "developer" if entry.origin == Origin.HARNESS else "user"


def _stop_reason(finish: str | None, error: MessageError | None) -> StopReason | None:
    if error is not None:
        return _ERROR_STOP_REASONS.get(error.kind or "", "error")
    return _STOP_REASONS.get(finish or "")


def _error(error: object) -> MessageError | None:
    if not isinstance(error, dict):
        return None
    facts = object_of(error)  # pyright: ignore[reportUnknownArgumentType]  # JSON of any shape
    data = object_of(facts.get("data"))
    kind = text_of(facts.get("name"))
    status = data.get("statusCode")
    text = text_of(data.get("message")) or text_of(facts.get("message")) or kind or "error"
    return MessageError(text=text, kind=kind, status=to_int(status) or None)


def _finish_reason(parts: Sequence[Row]) -> str | None:
    found = [part.get("reason") for part in parts if part.get("type") == "step-finish"]
    return text_of(found[-1]) if found else None


def _step_cost(parts: Sequence[Row]) -> object:
    return next((part.get("cost") for part in parts if part.get("type") == "step-finish"), None)


def _is_step(part: Row) -> bool:
    return part.get("type") in ("step-start", "step-finish")


def _is_without_model(parts: Sequence[Row]) -> bool:
    """Whether OpenCode wrote an answer itself, as it does for `!` and for a command that is a subtask: only a call.

    An answer of a model begins with a `step-start`.
    """
    return bool(parts) and all(part.get("type") == "tool" for part in parts)


def _without_diff_texts(summary: Row) -> Row:
    """The summary of a turn's changes without the texts of the files, which tool calls have."""
    if "diffs" not in summary:
        return summary
    diffs = [object_of(diff) for diff in list_of(summary["diffs"])]
    return summary | {"diffs": [{name: diff[name] for name in _DIFF_FACTS if name in diff} for diff in diffs]}


def is_mixed(before: Sequence[StepMessage], now: Sequence[StepMessage]) -> bool:
    """Whether two readings of a message that have the same time, merged, say anything but the later one.

    Parts have the numbers of their rows: without a row before it, a part has another number.
    """
    known = {step.message.id: step.message for step in before}
    merged = [
        merge_messages(msgspec.structs.replace(known.get(one.id, one), updated_at=one.updated_at), one) != one
        for one in (step.message for step in now)
    ]
    return any(merged)


def updated_at(line: RowVersion, info: Row, parts: Sequence[Row]) -> datetime | None:
    """When a message or one of its parts was last changed, as far as its rows or their JSON say."""
    changed = max((to_int(row.get("time_updated")) for row in (line.row, *line.parts)), default=0)
    return to_datetime(changed or None) or newest_time(info, parts)


def newest_time(info: Row, parts: Sequence[Row]) -> datetime | None:
    """The latest time in the JSON of a message and its parts."""
    times: list[int] = []
    for document in (info, *parts, *(object_of(part.get("state")) for part in parts)):
        times += [to_int(value) for value in object_of(document.get("time")).values()]
    return to_datetime(max(times, default=0)) if any(times) else None
