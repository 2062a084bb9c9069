"""Short ways to write messages for the tests of the providers' requests."""

from __future__ import annotations

from typing import Any

import msgspec

from turnlog.model import (
    FilePart,
    Message,
    Part,
    ProviderData,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolResult,
)
from turnlog.model.parts import ResultStatus
from turnlog.providers.base import RequestOptions

MODEL = "the-model"
"""The model of requests and answers, where no other is named."""

PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108020000009077"
    "53de0000000c4944415408d763f8cfc000000301010018dd8db00000000049454e44ae426082"
)
"""One pixel."""


def png(width: int, height: int, size: int = 0) -> bytes:
    """The head of a PNG of so many pixels, followed by zeros up to so many bytes."""
    head = PNG[:16] + width.to_bytes(4, "big") + height.to_bytes(4, "big") + PNG[24:]
    return head + bytes(max(0, size - len(head)))


def asking(model: str = MODEL, **options: Any) -> RequestOptions:
    """Options of a request to the model."""
    return RequestOptions(model=model, **options)


def user(*parts: Part | str, id: str = "u") -> Message:
    return Message(id=id, role="user", parts=_parts(parts))


def developer(*parts: Part | str, id: str = "d", **fields: Any) -> Message:
    return Message(id=id, role="developer", parts=_parts(parts), **fields)


def system(text: str, id: str = "s") -> Message:
    return Message(id=id, role="system", parts=(TextPart(text=text),))


def assistant(*parts: Part | str, id: str = "a", model: str | None = MODEL, **fields: Any) -> Message:
    return Message(id=id, role="assistant", parts=_parts(parts), model=model, **fields)


def _parts(parts: tuple[Part | str, ...]) -> tuple[Part, ...]:
    return tuple(TextPart(text=part) if isinstance(part, str) else part for part in parts)


def call(call_id: str, *results: ToolResult, name: str = "Bash", input: Any = None, **fields: Any) -> ToolCallPart:
    """A call; its input is JSON of `input`, an empty object where nothing is given."""
    exact = msgspec.Raw(msgspec.json.encode({} if input is None else input))
    arguments: dict[str, Any] = {} if "input_text" in fields else {"input": exact}
    return ToolCallPart(
        id=f"{call_id}.part", tool_call_id=call_id, tool_name=name, results=results, **arguments, **fields
    )


def result(*parts: Part | str, status: ResultStatus = "success", id: str | None = None, **fields: Any) -> ToolResult:
    content = _parts(parts)
    return ToolResult(id=id or f"r.{content!r}", status=status, content=content, **fields)


def thinking(text: str, provider: str | None = None, model: str | None = MODEL, **opaque: Any) -> ReasoningPart:
    """Reasoning; with a provider, what that gave along with it."""
    made = ProviderData(name=provider, model=model, opaque=opaque) if provider is not None else None
    return ReasoningPart(id="thought", text=text, provider=made)


def image(data: bytes = PNG, media_type: str = "image/png", filename: str | None = None) -> FilePart:
    return FilePart(id="file", media_type=media_type, data=data, filename=filename)
