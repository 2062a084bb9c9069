"""What a stream tells of its model calls in the metadata of its message: `steps`, `usage`, `model`.

A message that goes on keeps what it said before.
"""

from __future__ import annotations

from typing import Any, cast

import msgspec

from turnlog.aisdk.building import to_plain
from turnlog.aisdk.parts import UIMessage
from turnlog.aisdk.writer_base import RefusedEvent
from turnlog.aisdk.writer_values import usage_json
from turnlog.model.stream import StepFinish, StepStart
from turnlog.model.usage import Usage, sum_usage


class Steps:
    """The model calls of one stream, one entry a step: `model, responseId, stopReason, rawStopReason, usage`."""

    def __init__(self, continued: UIMessage | None = None) -> None:
        """Begin behind the steps of a message that goes on."""
        metadata: Any = None if continued is None else to_plain(continued.metadata)
        told = cast("dict[str, Any]", metadata) if isinstance(metadata, dict) else {}
        steps = told.get("steps")
        self._before = cast("list[Any]", steps) if isinstance(steps, list) else []
        self._usage_before = _usage(told.get("usage"))
        self._steps: list[dict[str, Any]] = []

    def start(self, event: StepStart) -> None:
        """A model call begins."""
        told = {"model": event.model, "responseId": event.response_id}
        self._steps.append({name: value for name, value in told.items() if value is not None})

    def finish(self, event: StepFinish) -> None:
        """The newest call ends; raise RefusedEvent where there is none, and for a usage that cannot be counted."""
        if not self._steps:
            raise RefusedEvent("no step has begun")
        if event.usage is not None:
            # It is told and counted when the message ends, where nothing can be refused any more.
            usage_json(event.usage)
            try:
                sum_usage([event.usage])
            except (KeyError, TypeError) as error:
                raise RefusedEvent(f"no usage: {error}") from error
        told = {"stopReason": event.stop_reason, "rawStopReason": event.raw_stop_reason, "usage": event.usage}
        self._steps[-1] |= {name: value for name, value in told.items() if value is not None}

    def abort(self) -> None:
        """The newest call was stopped from outside, whatever it said of itself (R-K10)."""
        if self._steps:
            self._steps[-1]["stopReason"] = "aborted"

    def metadata(self, of_run: Usage | None = None) -> dict[str, Any]:
        """`steps`, the last `model` and the `usage` of the whole message, of each what was told.

        Args:
            of_run: The usage of the run, where it told its own; otherwise that of its steps.
        """
        usage = self._usage(of_run)
        found: dict[str, Any] = {} if usage is None else {"usage": usage_json(usage)}
        if any(self._steps):
            steps = [{name: _plain(value) for name, value in step.items()} for step in self._steps]
            found["steps"] = [*self._before, *steps]
        models = [step["model"] for step in self._steps if "model" in step]
        return found | ({"model": models[-1]} if models else {})

    def _usage(self, of_run: Usage | None) -> Usage | None:
        total = sum_usage([step.get("usage") for step in self._steps])
        usage = of_run or (total.usage if total.calls > total.unknown_calls else None)
        if usage is None or self._usage_before is None:
            return usage
        return sum_usage([self._usage_before, usage]).usage


def _plain(value: Any) -> Any:
    return usage_json(value) if isinstance(value, Usage) else value


def _usage(told: Any) -> Usage | None:
    try:
        return msgspec.convert(told, Usage | None)
    except msgspec.ValidationError:
        return None
