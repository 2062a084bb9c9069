"""UI messages -> model messages, by the rules of `convertToModelMessages` of AI SDK 5, 6 and 7.

What comes out is the JSON of the real function's result: plain dicts with AI SDK's own names, `undefined` left out.
Nothing is validated; `validate_ui_messages` does that. The rules of the versions stand in `model_rules`, tools in
`model_calls`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias, cast

from turnlog.aisdk.building import to_plain
from turnlog.aisdk.model_calls import Calls, ToModelOutput
from turnlog.aisdk.model_rules import (
    RULES,
    Fields,
    Rules,
    is_tool,
    kept_parts,
    look_for_raw_input,
    options,
    parts_of,
    pick,
    type_of,
)
from turnlog.aisdk.parts import UIMessage
from turnlog.aisdk.urls import normalize_url
from turnlog.aisdk.versions import Version, sdk_version
from turnlog.errors import ConversionError

ConvertDataPart: TypeAlias = Callable[[Fields], Fields | None]


def to_model_messages(
    messages: Iterable[UIMessage | Fields],
    *,
    version: Version = 7,
    tools: Mapping[str, ToModelOutput | None] | None = None,
    ignore_incomplete_tool_calls: bool = False,
    convert_data_part: ConvertDataPart | None = None,
) -> list[Fields]:
    """Model messages as JSON, the same as the real `convertToModelMessages` makes of these UI messages.

    Args:
        messages: UI messages, or their JSON as dicts.
        version: AI SDK's version; only the major matters.
        tools: The tools that there are, each with its own way to tell a model its output, or None.
        ignore_incomplete_tool_calls: Leave out calls that have no final output, which providers refuse.
        convert_data_part: Makes text or file parts of data parts; those for which it gives None are left out.

    Raises:
        ConversionError: A message has another role, or no parts, or a part no type; for AI SDK 7, the address of a
            file is not absolute.
        ValueError: The version is not supported.
    """
    rules = RULES[sdk_version(version).major]
    converter = _Converter(rules, tools or {}, convert_data_part)
    plain = [_plain(message) for message in messages]
    if rules.looks_for_raw_input:
        look_for_raw_input(plain)
    for message in kept_parts(plain, rules, ignore_incomplete=ignore_incomplete_tool_calls):
        converter.add(message)
    return converter.done


class _Converter:
    def __init__(
        self, rules: Rules, tools: Mapping[str, ToModelOutput | None], convert_data_part: ConvertDataPart | None
    ) -> None:
        self._rules = rules
        self._calls = Calls(rules, tools)
        self._convert_data_part = convert_data_part or _leave_out
        self.done: list[Fields] = []

    def add(self, message: Fields) -> None:
        role = message.get("role")
        if role == "system":
            self._add_system(parts_of(message))
        elif role == "user":
            content = [self._user_part(part) for part in parts_of(message)]
            self.done.append({"role": "user", "content": [part for part in content if part is not None]})
        elif role == "assistant":
            # What is none, and a text without characters, JavaScript takes for no parts.
            self._add_assistant([] if message.get("parts") in (None, "") else parts_of(message))
        else:
            raise ConversionError(f"Unsupported role: {role}")

    def _add_system(self, parts: list[Fields]) -> None:
        texts = [part for part in map(_fields, parts) if part.get("type") == "text"]
        merged: Fields = {}
        for part in texts:
            own: Any = part.get("providerMetadata")
            merged |= cast("Fields", own) if isinstance(own, dict) else {}
        content = "".join([text for part in texts if isinstance(text := part.get("text"), str)])
        self.done.append({"role": "system", "content": content} | ({"providerOptions": merged} if merged else {}))

    def _user_part(self, part: Fields) -> Fields | None:
        kind = type_of(part)
        if kind == "text":
            return _text(part)
        if kind == "file":
            return self._file(part)
        return self._convert_data_part(part) if kind.startswith("data-") else None

    def _add_assistant(self, parts: list[Fields]) -> None:
        block: list[Fields] = []
        for part in parts:
            kind = type_of(part)
            if kind in self._rules.kinds or is_tool(part) or kind.startswith("data-"):
                block.append(part)
            elif kind == "step-start":
                self._close(block)
            elif kind == "steering-message" and self._rules.urls:
                self._close(block)
                steered = map(_fields, parts_of(part))
                content = [_text(item) if item.get("type") == "text" else self._file(item) for item in steered]
                self.done.append({"role": "user", "content": content})
        self._close(block)

    def _close(self, block: list[Fields]) -> None:
        """One model call: what the assistant said, then what its tools answered."""
        if not block:
            return
        content = [made for part in block for made in self._assistant_parts(part)]
        if content or self._rules.empty_messages:
            self.done.append({"role": "assistant", "content": content})
        tools = [part for part in block if is_tool(part) and self._calls.answers_apart(part)]
        answers = [made for part in tools for made in self._calls.answers(part)]
        if answers or (tools and self._rules.empty_messages):
            self.done.append({"role": "tool", "content": answers})
        block.clear()

    def _assistant_parts(self, part: Fields) -> list[Fields]:
        kind = part["type"]
        if kind == "text":
            return [_text(part)]
        if kind == "reasoning":
            return [{"type": "reasoning", **pick(part, text="text", providerOptions="providerMetadata")}]
        if kind == "file":
            # AI SDK 5 forgets here what a provider said of a file.
            made = self._file(part)
            if not self._rules.approvals:
                made.pop("providerOptions", None)
            return [made]
        if is_tool(part):
            return self._calls.call(part)
        if kind == "custom":
            return [{"type": "custom", **pick(part, kind="kind")} | options(part, "providerMetadata")]
        if kind == "reasoning-file":
            return [
                {"type": kind, "data": _url(part)}
                | pick(part, mediaType="mediaType", providerOptions="providerMetadata")
            ]
        found = self._convert_data_part(part)
        return [] if found is None else [found]

    def _file(self, part: Fields) -> Fields:
        made: Fields = {"type": "file", **pick(part, mediaType="mediaType", filename="filename")}
        if not self._rules.urls:
            made |= pick(part, data="url")
        elif part.get("providerReference") is None:
            made["data"] = _url(part)
        else:
            made["data"] = {"type": "reference", "reference": part["providerReference"]}
        return made | options(part, "providerMetadata")


def _plain(message: UIMessage | Fields) -> Fields:
    return _fields(to_plain(message))


def _fields(value: Any) -> Fields:
    if value is None:
        raise ConversionError("null where a message or a part should be")
    return cast("Fields", value) if isinstance(value, dict) else {}


def _leave_out(part: Fields) -> None:
    """What becomes of data parts where nobody says it."""


def _text(part: Fields) -> Fields:
    return {"type": "text", **pick(part, text="text")} | options(part, "providerMetadata")


def _url(part: Fields) -> Fields:
    url = part.get("url")
    if not isinstance(url, str):
        raise ConversionError("a file without an address")
    return {"type": "url", "url": normalize_url(url)}
