"""What Open Harness' runtime says in an event: the fields that the adapter reads, checked as they are (R-O14)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeAlias, cast

import msgspec
from msgspec import Raw

from turnlog.model.parts import ToolResult

RuntimeEvent: TypeAlias = Mapping[str, Any]
"""The JSON object of an event."""


class BadEvent(Exception):
    """An event that breaks the rules."""


def kind_of(event: object) -> str:
    """The type of an event; raise BadEvent where it breaks the rules."""
    if not isinstance(event, Mapping):
        raise BadEvent("it is no object")
    fields = cast("RuntimeEvent", event)
    kind = text_of(fields, "type")
    if kind is None:
        raise BadEvent("it has no type")
    required = [*(("runId", "nodeId") if kind.startswith("agent:") else ()), *(_REQUIRED.get(kind, ()))]
    missing = [name for name in required if text_of(fields, name) is None]
    if missing:
        raise BadEvent(f"{kind} without {' and '.join(missing)}")
    return kind


_REQUIRED = {"agent:tool": ("toolName",)}


def text_of(event: RuntimeEvent, name: str) -> str | None:
    """A text that says something; None for every other value."""
    value = event.get(name)
    return value if isinstance(value, str) and value else None


def content_of(event: RuntimeEvent) -> str:
    """The words of an event; raise BadEvent where they are none."""
    content = event.get("content", "")
    if not isinstance(content, str):
        raise BadEvent(f"{event['type']} whose content is no text")
    return content


def result_of(event: RuntimeEvent) -> ToolResult | None:
    """What a tool answered, if it has; raise BadEvent where that is no JSON."""
    error = event.get("error")
    if error:
        text = error if isinstance(error, str) else bytes(exact_json(error)).decode()
        return ToolResult(id="", status="error", error_text=text)
    if "toolOutput" not in event:
        return None
    return ToolResult(id="", structured=exact_json(event["toolOutput"]))


def exact_json(value: Any) -> Raw:
    """A value as JSON; raise BadEvent where it is none."""
    try:
        return Raw(_encode(value))
    except (TypeError, ValueError, RecursionError) as error:
        raise BadEvent(f"it holds no JSON: {error}") from error


def _encode(value: Any) -> bytes:
    try:
        return msgspec.json.encode(value, order="deterministic")
    except UnicodeEncodeError:  # half a character: JSON can say it, UTF-8 cannot
        return json.dumps(value, allow_nan=False, sort_keys=True).encode("ascii")
