"""The request types of the providers' SDKs, made strict: what an SDK would pass on unchecked is an error here.

The SDKs describe requests as TypedDicts with `Iterable` fields, which pydantic neither closes nor looks into. Here each
becomes one that knows no further field, and each `Iterable` a list.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from os import PathLike
from typing import IO, Annotated, Any, NotRequired, Required, get_args, get_origin, get_type_hints

import anthropic.types
import openai.types.chat.completion_create_params as chat
import openai.types.responses.response_create_params as responses
from google.genai import types as google
from pydantic import ConfigDict, TypeAdapter
from typing_extensions import TypedDict, is_typeddict


def strict_type(kind: Any, making: tuple[Any, ...] = ()) -> Any:
    """The type with every TypedDict in it closed. One that holds itself is left open inside."""
    if is_typeddict(kind):
        return Any if kind in making else _closed(kind, (*making, kind))
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (IO, PathLike):
        # What the SDK would read and encode by itself.
        return type(None)
    if origin is None:
        return kind
    if origin in (Required, NotRequired, Annotated):
        return strict_type(arguments[0], making)
    inner = [strict_type(argument, making) for argument in arguments]
    if origin is Iterable or getattr(origin, "__name__", "") == "Iterable":
        return list[inner[0]]
    if origin is type or str(origin) in ("typing.Literal", "typing_extensions.Literal"):
        return kind
    if str(kind).startswith(("typing.Union", "typing.Optional")) or "|" in str(kind):
        joined = inner[0]
        for one in inner[1:]:
            joined = joined | one
        return joined
    return origin[tuple(inner)]


def _closed(kind: Any, making: tuple[Any, ...]) -> Any:
    # Tools are the caller's, passed on as they are.
    hints = {**get_type_hints(kind, include_extras=True), **({"tools": Any} if not making[1:] else {})}
    required: frozenset[str] = kind.__required_keys__
    fields = {
        name: (Required if name in required else NotRequired)[strict_type(hint, making)] for name, hint in hints.items()
    }
    # A type made at run time, which no checker follows.
    made: Any = TypedDict(kind.__name__, fields)  # pyright: ignore[reportArgumentType]
    made.__pydantic_config__ = ConfigDict(extra="forbid")
    return made


@cache
def _adapter(name: str, stream: bool) -> TypeAdapter[Any]:
    messages = anthropic.types.message_create_params
    kinds: dict[str, tuple[Any, Any]] = {
        "anthropic": (messages.MessageCreateParamsNonStreaming, messages.MessageCreateParamsStreaming),
        "openai-chat": (chat.CompletionCreateParamsNonStreaming, chat.CompletionCreateParamsStreaming),
        "responses": (responses.ResponseCreateParamsNonStreaming, responses.ResponseCreateParamsStreaming),
    }
    return TypeAdapter(strict_type(kinds[name][stream]))


def check_with_sdk(name: str, body: dict[str, Any]) -> None:
    """Raise pydantic.ValidationError where a body is none that the provider's own SDK describes."""
    if name == "gemini":
        _check_gemini(body)
    elif name in ("openai-chat", "openrouter"):
        _adapter("openai-chat", "stream" in body).validate_python(_without_reasoning(body))
    else:
        _adapter(name, "stream" in body).validate_python(body)


def _without_reasoning(body: dict[str, Any]) -> dict[str, Any]:
    """What OpenRouter and the dialects add to OpenAI's API is described by no SDK."""
    added = {"reasoning_details", "reasoning_content", "reasoning", "reasoning_text"}
    messages = [{key: value for key, value in message.items() if key not in added} for message in body["messages"]]
    return {**{key: value for key, value in body.items() if key not in added}, "messages": messages}


def _check_gemini(body: dict[str, Any]) -> None:
    """The SDK's models are closed by themselves; in a request, settings are where its configuration has them."""
    for content in body["contents"]:
        google.Content.model_validate(content)
    if "systemInstruction" in body:
        google.Content.model_validate(body["systemInstruction"])
    google.GenerateContentConfig.model_validate({"tools": body.get("tools"), **body.get("generationConfig", {})})
