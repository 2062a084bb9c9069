"""UI messages -> model messages, by the rules of `convertToModelMessages` of AI SDK 5, 6 and 7.

Mirrors `src/ui/convert-to-model-messages.ts` of ai 5.0.277, 6.0.326 and 7.0.173. The result is the JSON of the real
function's result: plain dicts with AI SDK's own names, `undefined` left out. Nothing is validated
(`validate_ui_messages` does that): like the real functions these treat a missing field as undefined, and raise where
JavaScript would throw.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple, TypeAlias, cast

import msgspec

from turnlog.aisdk.codec import to_plain
from turnlog.aisdk.parts import UIMessage
from turnlog.aisdk.urls import normalize_url
from turnlog.aisdk.versions import Version, sdk_version
from turnlog.arguments import checked
from turnlog.errors import ConversionError

Fields: TypeAlias = dict[str, Any]


ConvertDataPart: TypeAlias = Callable[[Fields], Fields | None]


@checked
def to_model_messages(
    messages: Iterable[UIMessage | Fields],
    *,
    version: Version = 7,
    tools: Mapping[str, ToModelOutput | None] | None = None,
    ignore_incomplete_tool_calls: bool = False,
    convert_data_part: ConvertDataPart | None = None,
) -> list[Fields]:
    """Model messages as JSON, equal to the result of `convertToModelMessages` for these UI messages.

    Args:
        messages: UI messages, or their JSON as dicts.
        version: The AI SDK version; only the major matters.
        tools: Tool name -> its `toModelOutput`, or None.
        ignore_incomplete_tool_calls: Leave out calls without a final output, which providers refuse.
        convert_data_part: Converts a data part to a text or file part; None leaves it out.

    Raises:
        ConversionError: A message has another role or no list of parts, or a part has no type; for AI SDK 7, the URL of
            a file is not absolute.
        ValueError: The version is not supported.
    """
    rules = RULES[sdk_version(version).major]
    converter = _Converter(rules, tools or {}, convert_data_part)
    plain = [_plain(message) for message in messages]
    if rules.looks_for_raw_input:
        warn_of_raw_input(plain)
    for message in kept_parts(plain, rules, ignore_incomplete=ignore_incomplete_tool_calls):
        converter.add(message)
    return converter.done


class _Converter:
    def __init__(
        self, rules: VersionRules, tools: Mapping[str, ToModelOutput | None], convert_data_part: ConvertDataPart | None
    ) -> None:
        self._rules = rules
        self._calls = Calls(rules, tools)
        self._convert_data_part = convert_data_part or _drop_reasoning
        self.done: list[Fields] = []

    def add(self, message: Fields) -> None:
        role = message.get("role")
        if role == "system":
            self._add_system(parts_of(message))
        elif role == "user":
            content = [self._user_part(part) for part in parts_of(message)]
            self.done.append({"role": "user", "content": [part for part in content if part is not None]})
        elif role == "assistant":
            # JavaScript treats null and an empty string as no parts.
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
        """One model call: the assistant's content, then the outputs of its tools."""
        if not block:
            return
        content = [made for part in block for made in self._assistant_parts(part)]
        if content or self._rules.empty_messages:
            self.done.append({"role": "assistant", "content": content})
        tools = [part for part in block if is_tool(part) and self._calls.has_tool_message(part)]
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
            # AI SDK 5 drops the provider metadata of a file here.
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


def _drop_reasoning(part: Fields) -> None:
    """The default for data parts: leave them out."""


def _text(part: Fields) -> Fields:
    return {"type": "text", **pick(part, text="text")} | options(part, "providerMetadata")


def _url(part: Fields) -> Fields:
    url = part.get("url")
    if not isinstance(url, str):
        raise ConversionError("a file without an address")
    return {"type": "url", "url": normalize_url(url)}


_UNAVAILABLE: Final = "Tool output omitted because the tool is no longer available."
_DENIED: Final = "Tool call execution denied."
_OUTPUTS = ("output-available", "output-error")


class FinishedToolCall(NamedTuple):
    """The input and output of a call, for a tool's own `toModelOutput`."""

    tool_call_id: str
    input: Any
    output: Any


ToModelOutput: TypeAlias = Callable[[FinishedToolCall], Fields]
"""A tool's `toModelOutput`: returns a `ToolResultOutput` such as `{"type": "text", "value": …}`."""


class Calls:
    """Converts tool parts by the rules of one version."""

    def __init__(self, rules: VersionRules, tools: Mapping[str, ToModelOutput | None]) -> None:
        """Know the tools that there are."""
        self._rules = rules
        self._tools = tools

    def call(self, part: Fields) -> list[Fields]:
        """The content of the assistant's message for a tool part."""
        if state_of(part) == "input-streaming":
            return []
        call: Fields = {"type": "tool-call", **_names(part)}
        value = self._input(part)
        if value is not msgspec.UNSET:
            call["input"] = value
        if not self._is_plain_dynamic(part):
            call |= pick(part, providerExecuted="providerExecuted")
        made = [call | self._call_options(part)]
        if self._rules.approvals and part.get("approval") is not None:
            made.append(self._approval_request(part))
        # The message of a call that the provider ran contains its result.
        if self._has_inline_result(part):
            made.append(self._result(part, self._output(part, "json"), self._inline_options(part)))
        return made

    def has_tool_message(self, part: Fields) -> bool:
        """Whether a tool's output is in its own message."""
        if part.get("providerExecuted") is not True or self._is_plain_dynamic(part):
            return True
        return self._rules.approvals and _approval(part).get("approved") is not None

    def answers(self, part: Fields) -> list[Fields]:
        """The content of the tool's message for a tool part."""
        made: list[Fields] = []
        approval = _approval(part)
        approved = approval.get("approved") if self._rules.approvals else None
        if approved is not None:
            made.append(_approval_response(part))
        reason = pick(approval, reason="reason")
        own = options(part, "callProviderMetadata")
        if self._rules.has_denial_results and state_of(part) == "approval-responded" and approved is False:
            made.append(self._result(part, {"type": "execution-denied", **reason}, own))
        if part.get("providerExecuted") is True and not self._is_plain_dynamic(part):
            return made
        if state_of(part) == "output-denied" and self._rules.approvals:
            value = reason.get("reason")
            made.append(self._result(part, {"type": "error-text", "value": _DENIED if value is None else value}, own))
        elif state_of(part) in _OUTPUTS:
            made.append(self._result(part, self._output(part, "text"), own))
        return made

    def _input(self, part: Fields) -> Any:
        value = part.get("input", msgspec.UNSET)
        is_error = state_of(part) == "output-error"
        if is_error and value in (None, msgspec.UNSET) and not self._is_plain_dynamic(part):
            return part.get("rawInput", msgspec.UNSET)
        return value

    def _is_plain_dynamic(self, part: Fields) -> bool:
        """Whether it is a dynamic tool of AI SDK 5, from which few fields are used."""
        return not self._rules.approvals and part["type"] == "dynamic-tool"

    def _call_options(self, part: Fields) -> Fields:
        own = options(part, "callProviderMetadata")
        if not own and self._rules.approvals and state_of(part) == "output-error":
            return options(part, "resultProviderMetadata")
        return own

    def _inline_options(self, part: Fields) -> Fields:
        own = options(part, "resultProviderMetadata") if self._rules.approvals else {}
        return own or options(part, "callProviderMetadata")

    def _approval_request(self, part: Fields) -> Fields:
        approval = _approval(part)
        made: Fields = {
            "type": "tool-approval-request",
            **pick(approval, approvalId="id"),
            **pick(part, toolCallId="toolCallId"),
            **pick(approval, inputSchemaInput="inputSchemaInput"),
            **pick_set(approval, signature="signature"),
        }
        if self._rules.urls:
            made |= pick(approval, isAutomatic="isAutomatic") | pick_set(approval, reason="requestReason")
        return made

    def _has_inline_result(self, part: Fields) -> bool:
        executed = part.get("providerExecuted") is True and not self._is_plain_dynamic(part)
        return executed and state_of(part) in _OUTPUTS

    def _result(self, part: Fields, output: Fields, own: Fields) -> Fields:
        return {"type": "tool-result", **_names(part), "output": output} | own

    def _output(self, part: Fields, error_mode: str) -> Fields:
        if state_of(part) == "output-error":
            text = part.get("errorText")
            return {"type": f"error-{error_mode}", "value": _error_text(text) if error_mode == "text" else text}
        name, output = _tool_name(part), part.get("output")
        known = isinstance(name, str) and name in self._tools
        if not known and part["type"] == "dynamic-tool" and part.get("dynamic") is False:
            return {"type": "text", "value": _UNAVAILABLE}
        own = self._tools[cast("str", name)] if known else None
        if own is not None:
            return own(FinishedToolCall(part["toolCallId"], part.get("input"), output))
        return {"type": "text" if isinstance(output, str) else "json", "value": output}


def _names(part: Fields) -> Fields:
    name = _tool_name(part)
    return pick(part, toolCallId="toolCallId") | ({} if name is msgspec.UNSET else {"toolName": name})


def _tool_name(part: Fields) -> Any:
    kind: str = part["type"]
    return part.get("toolName", msgspec.UNSET) if kind == "dynamic-tool" else kind.partition("-")[2]


def _approval(part: Fields) -> Fields:
    approval: Any = part.get("approval")
    return cast("Fields", approval) if isinstance(approval, dict) else {}


def _approval_response(part: Fields) -> Fields:
    return {
        "type": "tool-approval-response",
        **pick(_approval(part), approvalId="id", approved="approved", reason="reason"),
        **pick(part, providerExecuted="providerExecuted"),
    }


def _error_text(error: Any) -> str:
    if error is None:
        return "unknown error"
    return error if isinstance(error, str) else msgspec.json.encode(error).decode()


class VersionRules(NamedTuple):
    """The differences between versions."""

    kinds: frozenset[str]
    """Part types, in addition to tools and data, that belong to a block."""
    complete: frozenset[str] | None
    """States that `ignore_incomplete_tool_calls` keeps; None: all except incomplete ones."""
    incomplete: frozenset[str] = frozenset()
    approvals: bool = True
    empty_messages: bool = False
    """Whether a block without content still makes a message: in 5; fixed in 6.0.221 and 7.0.7."""
    urls: bool = False
    """Whether URLs are parsed and files are tagged."""
    has_denial_results: bool = False
    """Whether a denied call has a denial as its result before the client has received it."""
    drops_old_requests: bool = False
    """Whether approval requests before the last user message are left out: by writing on, the user has declined
    them."""
    looks_for_raw_input: bool = False
    """Whether parts are first searched for a deprecated field."""


_CONTENT = frozenset({"text", "reasoning", "file"})
_COMPLETE = frozenset({"approval-responded", "output-available", "output-error", "output-denied"})
RULES = {
    5: VersionRules(
        _CONTENT,
        None,
        incomplete=frozenset({"input-streaming", "input-available"}),
        approvals=False,
        empty_messages=True,
    ),
    6: VersionRules(_CONTENT, _COMPLETE),
    7: VersionRules(
        _CONTENT | {"custom", "reasoning-file"},
        _COMPLETE,
        urls=True,
        has_denial_results=True,
        drops_old_requests=True,
        looks_for_raw_input=True,
    ),
}


def parts_of(message: Fields) -> list[Fields]:
    """The parts of a message. Raises ConversionError if there is no list."""
    parts = message.get("parts")
    if not isinstance(parts, list):
        raise ConversionError("a message without a list of parts")
    return cast("list[Fields]", parts)


def type_of(part: Any) -> str:
    """The type of a part. Raises ConversionError if it has none."""
    kind: Any = cast("Fields", part).get("type") if isinstance(part, dict) else None
    if not isinstance(kind, str):
        raise ConversionError("a part without a type")
    return kind


def is_tool(part: Any) -> bool:
    """Whether a UI part is a static or dynamic tool part."""
    kind = type_of(part)
    return kind == "dynamic-tool" or kind.startswith("tool-")


def warn_of_raw_input(messages: list[Fields]) -> None:
    """Raise ConversionError for a message without parts, up to the first one with the deprecated `rawInput`."""
    for message in messages:
        if any(_has_raw_input(part) for part in parts_of(message)):
            return


def _has_raw_input(part: Any) -> bool:
    if not isinstance(part, dict) or "rawInput" not in part or not isinstance(cast("Fields", part).get("type"), str):
        return False
    return is_tool(part) and state_of(cast("Fields", part)) == "output-error"


def state_of(part: Fields) -> str | None:
    """The state of a tool part."""
    state: Any = part.get("state")
    return state if isinstance(state, str) else None


def kept_parts(messages: list[Fields], rules: VersionRules, *, ignore_incomplete: bool) -> list[Fields]:
    """The messages without the calls that a model does not see."""
    last_user = max((index for index, message in enumerate(messages) if message.get("role") == "user"), default=-1)
    drops_requests = rules.drops_old_requests and last_user > 0

    def keeps(part: Fields, index: int) -> bool:
        if not is_tool(part):
            return True
        if drops_requests and state_of(part) == "approval-requested" and index < last_user:
            return False
        return not ignore_incomplete or _is_complete(part, rules)

    if not ignore_incomplete and not drops_requests:
        return messages
    return [
        {**message, "parts": [part for part in parts_of(message) if keeps(part, index)]}
        for index, message in enumerate(messages)
    ]


def _is_complete(part: Fields, rules: VersionRules) -> bool:
    state = state_of(part)
    if state == "output-available" and part.get("preliminary") is True:
        return False
    return state not in rules.incomplete if rules.complete is None else state in rules.complete


def options(part: Fields, key: str) -> Fields:
    """The provider metadata at a key as `providerOptions`, if there is any."""
    return pick_set(part, providerOptions=key)


def pick(fields: Fields, **names: str) -> Fields:
    """Copy existing keys under new names, given new name -> old name."""
    return {new: fields[old] for new, old in names.items() if old in fields}


def pick_set(fields: Fields, **names: str) -> Fields:
    """Like `pick`, without keys that are null."""
    return {new: fields[old] for new, old in names.items() if fields.get(old) is not None}
