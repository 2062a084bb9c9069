"""Tool parts -> what a model is told of them: the call, who was asked for leave, the answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, TypeAlias, cast

import msgspec

from turnlog.aisdk.model_rules import Fields, Rules, options, pick, pick_set, state_of

_UNAVAILABLE: Final = "Tool output omitted because the tool is no longer available."
_DENIED: Final = "Tool call execution denied."
_OUTPUTS = ("output-available", "output-error")


class ToolAnswer(NamedTuple):
    """What a tool was asked and answered, for a tool's own way to tell a model."""

    tool_call_id: str
    input: Any
    output: Any


ToModelOutput: TypeAlias = Callable[[ToolAnswer], Fields]
"""A tool's `toModelOutput`: the answer as a `ToolResultOutput` such as `{"type": "text", "value": …}`."""


class Calls:
    """Tells of tool parts by the rules of one version."""

    def __init__(self, rules: Rules, tools: Mapping[str, ToModelOutput | None]) -> None:
        """Know the tools that there are."""
        self._rules = rules
        self._tools = tools

    def call(self, part: Fields) -> list[Fields]:
        """What the assistant's message holds of it."""
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
        if self._answers_inline(part):
            made.append(self._result(part, self._output(part, "json"), self._inline_options(part)))
        return made

    def answers_apart(self, part: Fields) -> bool:
        """Whether a tool's answer is in a message of its own."""
        if part.get("providerExecuted") is not True or self._is_plain_dynamic(part):
            return True
        return self._rules.approvals and _approval(part).get("approved") is not None

    def answers(self, part: Fields) -> list[Fields]:
        """What the message of its tool holds of it."""
        made: list[Fields] = []
        approval = _approval(part)
        approved = approval.get("approved") if self._rules.approvals else None
        if approved is not None:
            made.append(_approval_response(part))
        reason = pick(approval, reason="reason")
        own = options(part, "callProviderMetadata")
        if self._rules.answers_denials and state_of(part) == "approval-responded" and approved is False:
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
        """Whether it is one of AI SDK 5's dynamic tools, of which little is told."""
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

    def _answers_inline(self, part: Fields) -> bool:
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
            return own(ToolAnswer(part["toolCallId"], part.get("input"), output))
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
