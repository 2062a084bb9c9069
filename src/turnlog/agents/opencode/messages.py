"""A message with its parts -> messages of the model: one for each model call."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import NamedTuple

from turnlog.agents.opencode.ids import NAME, moment, part_position, time_position, whole
from turnlog.agents.opencode.parts import read_part
from turnlog.agents.opencode.rows import Place, Row, list_of, object_of, text_of
from turnlog.agents.opencode.timeline import segment_id, segments
from turnlog.agents.opencode.usage import cost_of, sum_tokens, usage_of
from turnlog.model import Message, MessageError, Origin, Part, ProviderData, Role, StopReason, Usage

_STOPS: dict[str, StopReason] = {
    "stop": "stop",
    "tool-calls": "tool_use",
    "length": "length",
    "content-filter": "content_filter",
    "error": "error",
}
_ERROR_STOPS: dict[str, StopReason] = {
    "MessageAbortedError": "aborted",
    "MessageOutputLengthError": "length",
    "ContextOverflowError": "context_window",
    "ContentFilterError": "content_filter",
}
ABORTED = "MessageAbortedError"

_MODELLED = frozenset(
    {"id", "sessionID", "role", "time", "modelID", "providerID", "cost", "tokens", "finish", "error", "parts"}
)
_DIFF_FACTS = ("file", "additions", "deletions", "status")


class Child(NamedTuple):
    """A session that a call started."""

    session: str
    tool_call_id: str


class ReadMessage(NamedTuple):
    """A message of the model, its place, and what else its record tells."""

    message: Message
    position: int
    step: int | None
    parent: str | None
    results: tuple[tuple[str, int], ...]
    """Ids of results and the positions at which they arrived."""
    children: tuple[Child, ...]


def read_message(
    key: str, info: Row, parts: Sequence[Row], place: Place, *, version: str | None, updated_at: datetime | None
) -> Iterator[ReadMessage]:
    """Every model call in a message, in order.

    Args:
        key: OpenCode's id of the message.
        info: Its JSON.
        parts: That of its parts, in order.
        place: Its place in the session.
        version: OpenCode's version, as the session names it.
        updated_at: When the record was last rewritten.
    """
    message_id = place.copy_of or key
    ranges = segments(parts) if info.get("role") == "assistant" else [(0, len(parts))]
    parent = place.parent
    for number, (start, end) in enumerate(ranges):
        own = segment_id(message_id, number)
        read = _Segment(key, info, parts, start, end, place, number, len(ranges), version)
        position = place.position if number == 0 else part_position(place.position, key, read.first_id, start)
        found, results, children = read.content(message_id, position)
        yield ReadMessage(
            read.message(own, found, updated_at),
            position,
            None if place.step is None else place.step + number,
            parent,
            results,
            children,
        )
        parent = own


class _Segment(NamedTuple):
    """One model call in a message: parts `start` to `end`."""

    key: str
    info: Row
    parts: Sequence[Row]
    start: int
    end: int
    place: Place
    number: int
    calls: int
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
    ) -> tuple[tuple[Part, ...], tuple[tuple[str, int], ...], tuple[Child, ...]]:
        """Parts, when results arrived, and the sessions that calls started."""
        found: list[Part] = []
        results: list[tuple[str, int]] = []
        children: list[Child] = []
        over = self.place.over or self.number < self.calls - 1 or self._ended
        for index in range(self.start, self.end):
            read = read_part(self.parts[index], f"{message_id}.{index}", self.model, over=over)
            if read is None:
                continue
            found.append(read.part)
            if read.part.type != "tool-call":
                continue
            if read.child is not None:
                children.append(Child(read.child, read.part.tool_call_id))
            after = position + 1 if read.ended is None else max(position + 1, time_position(read.ended))
            results += [(result.id, after) for result in read.part.results]
        return tuple(found), tuple(results), tuple(children)

    @property
    def _ended(self) -> bool:
        return "completed" in object_of(self.info.get("time")) or self.info.get("error") is not None

    def message(self, message_id: str, parts: tuple[Part, ...], updated_at: datetime | None) -> Message:
        info, time = self.info, object_of(self.info.get("time"))
        is_answer, last = info.get("role") == "assistant", self.number == self.calls - 1
        provider = text_of(info.get("providerID")) or text_of(object_of(info.get("model")).get("providerID"))
        whole_tokens, whole_cost = info.get("tokens"), info.get("cost")
        step = sum_tokens(self.own)
        finish = text_of(info.get("finish")) if last else None
        finish = finish or _finish(self.own)
        error = _error(info.get("error")) if last else None
        return Message(
            id=message_id,
            role=_role(info, self.place),
            parts=parts,
            origin=Origin(self.place.origin) if self.place.origin else None,
            created_at=moment(time.get("created")),
            completed_at=moment(time.get("completed")) if last else None,
            updated_at=updated_at,
            model=self.model if is_answer else None,
            stop_reason=_stop(finish, error),
            raw_stop_reason=finish,
            usage=self._usage(whole_tokens if self.calls == 1 else step, step, provider) if is_answer else None,
            cost=cost_of(whole_cost if self.calls == 1 else _step_cost(self.own)) if is_answer else None,
            error=error,
            provider=ProviderData(name=provider, model=self.model) if provider else None,
            metadata={NAME: facts} if (facts := self._facts()) else {},
        )

    def _usage(self, tokens: object, step: object, provider: str | None) -> Usage | None:
        if _is_unasked(self.own):
            return Usage(input=0, output=0)
        told = (usage_of(each, self.version, provider=provider, model=self.model) for each in (tokens, step))
        return next((usage for usage in told if usage is not None), None)

    def _facts(self) -> Row:
        facts = {name: value for name, value in self.info.items() if name not in _MODELLED}
        if isinstance(facts.get("summary"), dict):
            facts["summary"] = _brief(object_of(facts["summary"]))
        snapshots = [part["snapshot"] for part in self.own if _is_step(part) and part.get("snapshot")]
        return facts | ({"snapshots": snapshots} if snapshots else {})


def _role(info: Row, place: Place) -> Role:
    if info.get("role") == "assistant":
        return "assistant"
    return "developer" if place.origin == Origin.HARNESS else "user"


def _stop(finish: str | None, error: MessageError | None) -> StopReason | None:
    if error is not None:
        return _ERROR_STOPS.get(error.kind or "", "error")
    return _STOPS.get(finish or "")


def _error(error: object) -> MessageError | None:
    if not isinstance(error, dict):
        return None
    facts = object_of(error)  # pyright: ignore[reportUnknownArgumentType]  # JSON of any shape
    data = object_of(facts.get("data"))
    kind = text_of(facts.get("name"))
    status = data.get("statusCode")
    text = text_of(data.get("message")) or text_of(facts.get("message")) or kind or "error"
    return MessageError(text=text, kind=kind, status=whole(status) or None)


def _finish(parts: Sequence[Row]) -> str | None:
    found = [part.get("reason") for part in parts if part.get("type") == "step-finish"]
    return text_of(found[-1]) if found else None


def _step_cost(parts: Sequence[Row]) -> object:
    return next((part.get("cost") for part in parts if part.get("type") == "step-finish"), None)


def _is_step(part: Row) -> bool:
    return part.get("type") in ("step-start", "step-finish")


def _is_unasked(parts: Sequence[Row]) -> bool:
    """Whether OpenCode wrote an answer without a model: of `!` and of a command that is a subtask, the call alone.

    What a model answers begins with a `step-start`.
    """
    return bool(parts) and all(part.get("type") == "tool" for part in parts)


def _brief(summary: Row) -> Row:
    """What a turn changed, without the texts of the files: tool calls have those."""
    if "diffs" not in summary:
        return summary
    diffs = [object_of(diff) for diff in list_of(summary["diffs"])]
    return summary | {"diffs": [{name: diff[name] for name in _DIFF_FACTS if name in diff} for diff in diffs]}


def newest_time(info: Row, parts: Sequence[Row]) -> datetime | None:
    """The latest time that a message's own JSON names."""
    times: list[int] = []
    for thing in (info, *parts, *(object_of(part.get("state")) for part in parts)):
        times += [whole(value) for value in object_of(thing.get("time")).values()]
    return moment(max(times, default=0)) if any(times) else None
