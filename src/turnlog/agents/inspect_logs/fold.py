"""The fold of a sample, which is one line: its messages, what models and tools did, its scores and how it ended."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final

import msgspec
from msgspec import Raw

from turnlog.agents.conversation import ConversationContext, ConversationFold
from turnlog.agents.decoding import list_of, object_of, text_of
from turnlog.agents.inspect_logs import NAME, SAMPLE_END
from turnlog.agents.inspect_logs.contents import (
    Attachments,
    ModelCall,
    calls_of,
    decoded,
    kept,
    model_call,
    parts_of,
    result_of,
    stop_reason,
    time_of,
    usage_of,
)
from turnlog.agents.inspect_logs.log_files import header_fields, writer_version
from turnlog.agents.inspect_logs.sources import HEADER, JSON, LOST, SAMPLE
from turnlog.agents.row_files import ROWS, RowLine, json_in
from turnlog.model import (
    ErrorEvent,
    Message,
    MessageError,
    Origin,
    Role,
    RunMetadataEvent,
    SessionTotal,
    ToolCallPart,
    ToolResult,
    Usage,
)
from turnlog.model.merge import add_results
from turnlog.model.session import title_line
from turnlog.model.usage import sum_usage

_ROLES: Final[dict[str, Role]] = {"system": "system", "user": "user", "assistant": "assistant"}

_BESIDE: Final = "scorers and other calls"
"""What calls of models were for whose answers are no messages of the sample."""


class SampleFold(ConversationFold[RowLine]):
    """Reads a sample. See `turnlog.agents.base.Fold`."""

    records = ROWS

    def session_id(self) -> str:
        """The source has it; of a source by itself the path names it."""
        return self._source.session_id or f"{NAME}:{self._source.path.rpartition('#')[2]}"

    def read(self, context: ConversationContext, record: RowLine) -> None:
        """See `ConversationFold.read`."""
        found = object_of(decoded(json_in(record, JSON) or b"null"))
        if record.table != SAMPLE or not found:
            context.report("the line is no sample")
            context.changes.counts.unreadable += 1
            return
        context.changes.counts.messages += 1
        for reason in list_of(decoded(json_in(record, LOST) or b"null")):
            context.report(str(reason))
        _Reading(context, found, json_in(record, HEADER) or b"{}").read()


class _Reading:
    """One reading of a sample."""

    def __init__(self, context: ConversationContext, sample: dict[str, Any], header: bytes) -> None:
        self._context = context
        self._attached = Attachments(object_of(sample.get("attachments")))
        self._sample = sample
        self._header = header
        self._position = 0
        self._before = time_of(sample.get("started_at"))
        """When messages before the first answer were there."""
        self._calls: dict[str, ModelCall] = {}
        """Id of the message that a model returned -> its call."""
        self._others: list[ModelCall] = []
        self._began: dict[str, datetime | None] = {}
        self._ended: dict[str, datetime | None] = {}
        """Calls of tools -> when they began and ended."""

    def read(self) -> None:
        """Read what happened, then the messages, then how it ended."""
        self._read_events()
        self._read_facts()
        messages = list(self._messages())
        for message in messages:
            self._context.add(message, position=self._next(), is_counted=False)
            calls = [part for part in message.parts if isinstance(part, ToolCallPart)]
            self._position += sum(len(call.results) for call in calls)
        if not messages:
            self._context.report("no message in the sample", json_path="$.messages")
        self._read_totals()
        self._read_end()
        if missing := sorted(self._attached.missing):
            self._context.report(
                f"attachments that are missing, or too large together: {', '.join(missing[:10])}",
                json_path="$.attachments",
            )

    def _next(self) -> int:
        self._position += 1
        return self._position

    # -- facts

    def _read_facts(self) -> None:
        sample, change = self._sample, self._context.session
        fields, spec = header_fields(self._header)
        change.agent_version = writer_version(self._header)
        task, name, epoch = text_of(spec.get("task")), sample.get("id"), sample.get("epoch")
        again = f", epoch {epoch}" if type(epoch) is int and epoch > 1 else ""
        title = title_line(f"{task or 'sample'}: {name}{again}")
        if title:
            change.titles["generated"] = title
        change.git_commit = text_of(object_of(spec.get("revision")).get("commit"))
        change.first_at, change.last_at = time_of(sample.get("started_at")), time_of(sample.get("completed_at"))
        change.metadata = kept(
            {
                "task": task,
                "sample": name,
                "epoch": epoch,
                "uuid": text_of(sample.get("uuid")),
                "model": text_of(spec.get("model")),
                "status": text_of(fields.get("status")),
                "target": _small(sample.get("target")),
                "scores": {
                    scorer: _small(object_of(score).get("value"))
                    for scorer, score in object_of(sample.get("scores")).items()
                },
                "eval_id": text_of(spec.get("eval_id")),
                "run_id": text_of(spec.get("run_id")),
            }
        )

    def _read_events(self) -> None:
        for number, each in enumerate(list_of(self._sample.get("events"))):
            event = object_of(each)
            if event.get("event") == "model":
                call = model_call(event)
                if event.get("pending") is True:
                    continue
                if call.message is None or call.message in self._calls:
                    self._others.append(call)
                else:
                    self._calls[call.message] = call
            elif event.get("event") == "tool" and isinstance(event.get("id"), str):
                self._began[event["id"]] = time_of(event.get("timestamp"))
                self._ended[event["id"]] = time_of(event.get("completed"))
            elif not event:
                self._context.report("no event", json_path=f"$.events[{number}]")

    # -- messages

    def _messages(self) -> Iterator[Message]:
        """The messages of the sample, each call with its results."""
        found: list[Message] = []
        # A call may have thousands of results, which are added together.
        results: dict[tuple[int, int], list[ToolResult]] = {}
        for number, each in enumerate(list_of(self._sample.get("messages"))):
            record, place = object_of(each), f"$.messages[{number}]"
            identity = f"{self._context.external_id}.{number}"
            role = text_of(record.get("role"))
            if role == "tool":
                self._add_result(found, results, self._attached.fields(record), identity, place)
            elif role in _ROLES:
                found.append(self._message(self._attached.fields(record), _ROLES[role], identity))
            else:
                self._context.report(f"no message of a known role: {role}", json_path=place)
        for (number, index), added in results.items():
            parts = list(found[number].parts)
            call = parts[index]
            assert isinstance(call, ToolCallPart)
            parts[index] = add_results(call, added)
            found[number] = msgspec.structs.replace(found[number], parts=tuple(parts))
        return iter(found)

    def _message(self, record: dict[str, Any], role: Role, identity: str) -> Message:
        own = text_of(record.get("id"))
        call = self._calls.pop(own, None) if own is not None else None
        parts = parts_of(record.get("content"), identity)
        # Before 0.3.60 reasoning had a field of its own.
        if isinstance(record.get("reasoning"), str):
            parts[:0] = parts_of([{"type": "reasoning", "reasoning": record["reasoning"]}], f"{identity}.thought")
        parts += calls_of(record, identity, self._began)
        is_answer = role == "assistant"
        if is_answer:
            self._before = None
        return Message(
            id=identity,
            role=role,
            parts=tuple(parts),
            origin=self._origin(record, role),
            created_at=(None if call is None else call.started_at) or self._before,
            completed_at=None if call is None else call.completed_at,
            model=(text_of(record.get("model")) or (None if call is None else call.model)) if is_answer else None,
            stop_reason=None if call is None else stop_reason(call.stop),
            raw_stop_reason=None if call is None else call.stop,
            usage=None if call is None else call.usage,
            cost=None if call is None else call.cost,
            error=None if call is None or call.error is None else MessageError(text=call.error),
            metadata=kept(
                {
                    "message_id": own,
                    "source": text_of(record.get("source")),
                    "tool_call_id": record.get("tool_call_id") if role == "user" else None,
                    "metadata": _small(record.get("metadata")),
                }
            ),
        )

    def _origin(self, record: Mapping[str, Any], role: Role) -> Origin | None:
        """A prompt is what the data set or an operator said; what the solver adds between is its own."""
        if role != "user":
            return None
        is_said = record.get("source") in ("input", "operator") or not self._prompted
        self._prompted = self._prompted or is_said
        return Origin.PROMPT if is_said else Origin.HARNESS

    _prompted = False

    def _add_result(
        self,
        found: list[Message],
        results: dict[tuple[int, int], list[ToolResult]],
        record: dict[str, Any],
        identity: str,
        place: str,
    ) -> None:
        named = text_of(record.get("tool_call_id"))
        for number in range(len(found) - 1, -1, -1):
            for index, part in enumerate(found[number].parts):
                if isinstance(part, ToolCallPart) and part.tool_call_id == named:
                    result = result_of(record, identity, self._ended.get(named or ""))
                    results.setdefault((number, index), []).append(result)
                    return
        self._context.report("a result without its call", json_path=f"{place}.tool_call_id")
        found.append(
            Message(
                id=identity,
                role="developer",
                parts=tuple(parts_of(record.get("content"), identity)),
                origin=Origin.HARNESS,
                metadata=kept({"tool_call_id": named, "function": text_of(record.get("function"))}),
            )
        )

    # -- what is of the whole sample

    def _read_totals(self) -> None:
        """Tokens of calls that are no messages; where there are no events, of all calls."""
        totals = self._context.session.totals
        external = self._context.external_id
        beside: dict[str | None, list[Usage]] = {}
        for call in (*self._others, *self._calls.values()):
            if call.usage is not None:
                beside.setdefault(call.model, []).append(call.usage)
        for model, usages in beside.items():
            totals[f"{external}.{model}"] = SessionTotal(
                model=model, usage=sum_usage(usages).usage, calls=len(usages), task=_BESIDE
            )
        if not list_of(self._sample.get("events")):
            for model, value in object_of(self._sample.get("model_usage")).items():
                usage = usage_of(value)
                if usage is not None:
                    totals[f"{external}.{model}"] = SessionTotal(model=model, usage=usage)

    def _read_end(self) -> None:
        external = self._context.external_id
        error = object_of(self._sample.get("error"))
        at = time_of(self._sample.get("completed_at"))
        if error:
            text = text_of(error.get("message")) or "the sample failed"
            self._context.add_event(
                ErrorEvent(id=f"{external}.error", position=self._next(), error_text=text, created_at=at)
            )
        facts = {name: found for name in ("scores", "limit") if (found := object_of(self._sample.get(name)))}
        data = Raw(msgspec.json.encode(_small(self._attached.fields(facts))))
        self._context.add_event(
            RunMetadataEvent(id=f"{external}.end", position=self._next(), kind=SAMPLE_END, data=data, created_at=at)
        )


_LARGEST: Final = 4096
"""Bytes of JSON up to which a value is kept beside the messages; the archive has all of it."""


def _small(value: Any) -> Any:
    size = len(msgspec.json.encode(value))
    return value if size <= _LARGEST else {"bytes": size}
