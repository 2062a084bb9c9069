"""UI messages -> model messages, by the rules of `convertToModelMessages` of AI SDK 5, 6 and 7.

What comes out is the JSON of the real function's result: plain dicts with AI SDK's own names, `undefined` left out.
The rules that differ between the versions stand in `_Rules`. Nothing is validated; `validate_ui_messages` does that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

from turnlog.aisdk.building import to_plain
from turnlog.aisdk.parts import UIMessage
from turnlog.aisdk.urls import normalize_url
from turnlog.aisdk.versions import Version, sdk_version
from turnlog.errors import ConversionError

Fields: TypeAlias = dict[str, Any]


class ToolAnswer(NamedTuple):
    """What a tool was asked and answered, for a tool's own way to tell a model."""

    tool_call_id: str
    input: Any
    output: Any


ToModelOutput: TypeAlias = Callable[[ToolAnswer], Fields]
"""A tool's `toModelOutput`: the answer as a `ToolResultOutput` such as `{"type": "text", "value": …}`."""

ConvertDataPart: TypeAlias = Callable[[Fields], Fields | None]

_UNAVAILABLE: Final = "Tool output omitted because the tool is no longer available."
_DENIED: Final = "Tool call execution denied."
_OUTPUTS = ("output-available", "output-error")


class _Rules(NamedTuple):
    """What differs between the versions."""

    kinds: frozenset[str]
    """Part types, besides tools and data, that stand in a block."""
    complete: frozenset[str] | None
    """States that `ignore_incomplete_tool_calls` keeps; None: all but `incomplete`."""
    incomplete: frozenset[str] = frozenset()
    approvals: bool = True
    empty_messages: bool = False
    """Whether a block without content is a message all the same."""
    urls: bool = False
    """Whether addresses are parsed and files are tagged."""
    answers_denials: bool = False
    drops_old_requests: bool = False


_CONTENT = frozenset({"text", "reasoning", "file"})
_COMPLETE = frozenset({"approval-responded", "output-available", "output-error", "output-denied"})
_RULES = {
    5: _Rules(
        _CONTENT,
        None,
        incomplete=frozenset({"input-streaming", "input-available"}),
        approvals=False,
        empty_messages=True,
    ),
    6: _Rules(_CONTENT, _COMPLETE),
    7: _Rules(
        _CONTENT | {"custom", "reasoning-file"},
        _COMPLETE,
        urls=True,
        answers_denials=True,
        drops_old_requests=True,
    ),
}


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
        ConversionError: A message has another role; for AI SDK 7, the address of a file is not absolute.
        ValueError: The version is not supported.
    """
    rules = _RULES[sdk_version(version).major]
    converter = _Converter(rules, tools or {}, convert_data_part)
    plain = [to_plain(message) for message in messages]
    for message in _filter(plain, rules, ignore_incomplete=ignore_incomplete_tool_calls):
        converter.add(message)
    return converter.done


def is_tool(part: Fields) -> bool:
    """Whether a UI part is a tool part, declared or dynamic."""
    return part["type"] == "dynamic-tool" or part["type"].startswith("tool-")


def _filter(messages: list[Fields], rules: _Rules, *, ignore_incomplete: bool) -> list[Fields]:
    last_user = max((index for index, message in enumerate(messages) if message["role"] == "user"), default=-1)
    drops_requests = rules.drops_old_requests and last_user > 0

    def keeps(part: Fields, index: int) -> bool:
        if not is_tool(part):
            return True
        if drops_requests and part["state"] == "approval-requested" and index < last_user:
            return False
        return not ignore_incomplete or _is_complete(part, rules)

    if not ignore_incomplete and not drops_requests:
        return messages
    return [
        {**message, "parts": [part for part in message["parts"] if keeps(part, index)]}
        for index, message in enumerate(messages)
    ]


def _is_complete(part: Fields, rules: _Rules) -> bool:
    if part["state"] == "output-available" and part.get("preliminary") is True:
        return False
    return part["state"] not in rules.incomplete if rules.complete is None else part["state"] in rules.complete


class _Converter:
    def __init__(
        self, rules: _Rules, tools: Mapping[str, ToModelOutput | None], convert_data_part: ConvertDataPart | None
    ) -> None:
        self._rules = rules
        self._tools = tools
        self._convert_data_part = convert_data_part or _leave_out
        self.done: list[Fields] = []

    def add(self, message: Fields) -> None:
        role = message["role"]
        if role == "system":
            self._add_system(message["parts"])
        elif role == "user":
            content = [self._user_part(part) for part in message["parts"]]
            self.done.append({"role": "user", "content": [part for part in content if part is not None]})
        elif role == "assistant":
            self._add_assistant(message.get("parts") or [])
        else:
            raise ConversionError(f"Unsupported role: {role}")

    def _add_system(self, parts: list[Fields]) -> None:
        texts = [part for part in parts if part["type"] == "text"]
        merged: Fields = {}
        for part in texts:
            merged |= part.get("providerMetadata") or {}
        message: Fields = {"role": "system", "content": "".join([part["text"] for part in texts])}
        self.done.append(message | ({"providerOptions": merged} if merged else {}))

    def _user_part(self, part: Fields) -> Fields | None:
        kind = part["type"]
        if kind == "text":
            return _text(part)
        if kind == "file":
            return self._file(part)
        return self._convert_data_part(part) if kind.startswith("data-") else None

    def _add_assistant(self, parts: list[Fields]) -> None:
        block: list[Fields] = []
        for part in parts:
            kind = part["type"]
            if kind in self._rules.kinds or is_tool(part) or kind.startswith("data-"):
                block.append(part)
            elif kind == "step-start":
                self._close(block)
            elif kind == "steering-message" and self._rules.urls:
                self._close(block)
                content = [_text(item) if item["type"] == "text" else self._file(item) for item in part["parts"]]
                self.done.append({"role": "user", "content": content})
        self._close(block)

    def _close(self, block: list[Fields]) -> None:
        """One model call: what the assistant said, then what its tools answered."""
        if not block:
            return
        content = [made for part in block for made in self._assistant_parts(part)]
        if content or self._rules.empty_messages:
            self.done.append({"role": "assistant", "content": content})
        tools = [part for part in block if is_tool(part) and self._answers_apart(part)]
        answers = [made for part in tools for made in self._answers(part)]
        if answers or (tools and self._rules.empty_messages):
            self.done.append({"role": "tool", "content": answers})
        block.clear()

    def _assistant_parts(self, part: Fields) -> list[Fields]:
        kind = part["type"]
        if kind == "text":
            return [_text(part)]
        if kind == "reasoning":
            return [{"type": "reasoning", "text": part["text"], **_pick(part, providerOptions="providerMetadata")}]
        if kind == "file":
            # AI SDK 5 forgets here what a provider said of a file.
            made = self._file(part)
            if not self._rules.approvals:
                made.pop("providerOptions", None)
            return [made]
        if is_tool(part):
            return self._call(part)
        if kind == "custom":
            return [{"type": "custom", "kind": part["kind"]} | _options(part, "providerMetadata")]
        if kind == "reasoning-file":
            made = {"type": kind, "data": _url(part), "mediaType": part["mediaType"]}
            return [made | _pick(part, providerOptions="providerMetadata")]
        found = self._convert_data_part(part)
        return [] if found is None else [found]

    def _file(self, part: Fields) -> Fields:
        data: Any = part["url"]
        if self._rules.urls:
            reference = part.get("providerReference")
            data = _url(part) if reference is None else {"type": "reference", "reference": reference}
        made = {"type": "file", "mediaType": part["mediaType"], **_pick(part, filename="filename"), "data": data}
        return made | _options(part, "providerMetadata")

    def _call(self, part: Fields) -> list[Fields]:
        if part["state"] == "input-streaming":
            return []
        call: Fields = {"type": "tool-call", "toolCallId": part["toolCallId"], "toolName": _tool_name(part)}
        value = self._call_input(part)
        if value is not msgspec.UNSET:
            call["input"] = value
        if not self._is_plain_dynamic(part):
            call |= _pick(part, providerExecuted="providerExecuted")
        made = [call | self._call_options(part)]
        if self._rules.approvals and part.get("approval") is not None:
            made.append(self._approval_request(part))
        if self._answers_inline(part):
            made.append(self._result(part, self._output(part, "json"), self._inline_options(part)))
        return made

    def _call_input(self, part: Fields) -> Any:
        value = part.get("input", msgspec.UNSET)
        if part["state"] == "output-error" and value in (None, msgspec.UNSET) and not self._is_plain_dynamic(part):
            return part.get("rawInput", msgspec.UNSET)
        return value

    def _is_plain_dynamic(self, part: Fields) -> bool:
        """Whether it is one of AI SDK 5's dynamic tools, of which little is told."""
        return not self._rules.approvals and part["type"] == "dynamic-tool"

    def _call_options(self, part: Fields) -> Fields:
        options = _options(part, "callProviderMetadata")
        if not options and self._rules.approvals and part["state"] == "output-error":
            return _options(part, "resultProviderMetadata")
        return options

    def _inline_options(self, part: Fields) -> Fields:
        own = _options(part, "resultProviderMetadata") if self._rules.approvals else {}
        return own or _options(part, "callProviderMetadata")

    def _approval_request(self, part: Fields) -> Fields:
        approval: Fields = part["approval"]
        made: Fields = {
            "type": "tool-approval-request",
            "approvalId": approval["id"],
            "toolCallId": part["toolCallId"],
            **_pick(approval, inputSchemaInput="inputSchemaInput"),
            **_pick_set(approval, signature="signature"),
        }
        if self._rules.urls:
            made |= _pick(approval, isAutomatic="isAutomatic") | _pick_set(approval, reason="requestReason")
        return made

    def _answers_inline(self, part: Fields) -> bool:
        executed = part.get("providerExecuted") is True and not self._is_plain_dynamic(part)
        return executed and part["state"] in _OUTPUTS

    def _answers_apart(self, part: Fields) -> bool:
        """Whether a tool's answer is in a message of its own."""
        if part.get("providerExecuted") is not True or self._is_plain_dynamic(part):
            return True
        return self._rules.approvals and _approved(part) is not None

    def _answers(self, part: Fields) -> list[Fields]:
        made: list[Fields] = []
        approved = _approved(part) if self._rules.approvals else None
        if approved is not None:
            made.append(_approval_response(part))
        reason = _pick(part.get("approval") or {}, reason="reason")
        options = _options(part, "callProviderMetadata")
        if self._rules.answers_denials and part["state"] == "approval-responded" and approved is False:
            made.append(self._result(part, {"type": "execution-denied", **reason}, options))
        if part.get("providerExecuted") is True and not self._is_plain_dynamic(part):
            return made
        if part["state"] == "output-denied" and self._rules.approvals:
            value = reason.get("reason")
            made.append(
                self._result(part, {"type": "error-text", "value": _DENIED if value is None else value}, options)
            )
        elif part["state"] in _OUTPUTS:
            made.append(self._result(part, self._output(part, "text"), options))
        return made

    def _result(self, part: Fields, output: Fields, options: Fields) -> Fields:
        made = {"type": "tool-result", "toolCallId": part["toolCallId"], "toolName": _tool_name(part), "output": output}
        return made | options

    def _output(self, part: Fields, error_mode: str) -> Fields:
        if part["state"] == "output-error":
            text = part.get("errorText")
            value = "unknown error" if text is None and error_mode == "text" else text
            return {"type": f"error-{error_mode}", "value": value}
        name, output = _tool_name(part), part.get("output")
        if name not in self._tools and part["type"] == "dynamic-tool" and part.get("dynamic") is False:
            return {"type": "text", "value": _UNAVAILABLE}
        own = self._tools.get(name)
        if own is not None:
            return own(ToolAnswer(part["toolCallId"], part.get("input"), output))
        return {"type": "text" if isinstance(output, str) else "json", "value": output}


def _leave_out(part: Fields) -> None:
    """What becomes of data parts where nobody says it."""


def _text(part: Fields) -> Fields:
    return {"type": "text", "text": part["text"]} | _options(part, "providerMetadata")


def _url(part: Fields) -> Fields:
    return {"type": "url", "url": normalize_url(part["url"])}


def _tool_name(part: Fields) -> str:
    return part["toolName"] if part["type"] == "dynamic-tool" else part["type"].partition("-")[2]


def _approved(part: Fields) -> bool | None:
    approval: Fields = part.get("approval") or {}
    return approval.get("approved")


def _approval_response(part: Fields) -> Fields:
    approval: Fields = part["approval"]
    return {
        "type": "tool-approval-response",
        "approvalId": approval["id"],
        "approved": approval["approved"],
        **_pick(approval, reason="reason"),
        **_pick(part, providerExecuted="providerExecuted"),
    }


def _options(part: Fields, key: str) -> Fields:
    return _pick_set(part, providerOptions=key)


def _pick(fields: Fields, **names: str) -> Fields:
    """Of new name -> old name those that are there."""
    return {new: fields[old] for new, old in names.items() if old in fields}


def _pick_set(fields: Fields, **names: str) -> Fields:
    """Of new name -> old name those that are there and not null."""
    return {new: fields[old] for new, old in names.items() if fields.get(old) is not None}
