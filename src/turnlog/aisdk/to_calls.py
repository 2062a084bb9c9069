"""Tool calls of the canonical model -> tool parts of a UI message, in every state (R-H2 to R-H8, R-S9 to R-S11).

A call and its results are one part. Its state says which result is shown; the others, and everything about the one
shown but its output, remain in the pieces. An aborted call is an error to AI SDK: `callProviderMetadata.turnlog`
names the difference.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeGuard

import msgspec
from msgspec import UNSET, Raw, UnsetType

from turnlog.aisdk.marks import Marks, marks_of
from turnlog.aisdk.outputs import parse_output
from turnlog.aisdk.pieces import (
    ApprovalPieces,
    CallPieces,
    DataPieces,
    FilePieces,
    PartPieces,
    ReasoningPieces,
    ResultPieces,
    SourceDocumentPieces,
    SourceUrlPieces,
    TextPieces,
    UnknownPieces,
    is_text,
)
from turnlog.aisdk.to_parts import PartWriter, UIPartJson, add_provider
from turnlog.model.tools import STATE_OF_STATUS

_NULL: Final = Raw(b"null")
"""An output that is not told; among the pieces that remain: the input that is shown is none that the log told."""

_NO_INPUT: Final = Raw(b"{}")
"""The input of a call without arguments: AI SDK demands one, and providers an object."""

_STATUS_OF_STATE = {state.value: status for status, state in STATE_OF_STATUS.items()}

_UNMARKED: Final = Marks()

_OPEN_STATES = frozenset({"input-streaming", "input-available", "approval-requested", "approval-responded"})
_NEEDS_APPROVALS = frozenset({"approval-requested", "approval-responded", "output-denied"})

_SAID_BY_DEFAULT = {
    "error": "The tool failed.",
    "aborted": "The tool call was aborted.",
    "denied": "The tool call was denied.",
}


_CALL_FIELDS = {"toolMetadata": "tool-metadata", "resultProviderMetadata": "result-metadata"}
_APPROVAL_FIELDS = {
    "signature": "approval-signature",
    "descriptor": "approval-descriptor",
    "inputSchemaInput": "approval-schema-input",
    "requestReason": "approval-request-reason",
    "isAutomatic": "automatic-approvals",
}
"""Fields that only AI SDK knows -> the feature that they came with."""


class CallWriter(PartWriter):
    """Makes every kind of UI part, tool parts among them."""

    def part(self, part: PartPieces) -> UIPartJson:
        """The UI part of any part."""
        return _WRITERS[type(part)](self, part)

    def call(self, part: CallPieces) -> UIPartJson:
        """A tool call with what came of it."""
        marks = _UNMARKED if part.metadata is UNSET else marks_of(part.metadata)
        said = self._head(part, marks)
        state = self._state(part)
        said["state"] = state
        if state == "input-streaming":
            self._streaming_input(part, said)
        else:
            said["input"] = self._input(part)
        if state == "output-available":
            self._output(part, said)
        elif state == "output-error":
            said["errorText"] = error_text(part)
        self._approval(part, said, state)
        self._metadata(part, said, marks)
        return said

    def _head(self, part: CallPieces, marks: Marks) -> UIPartJson:
        name, part.tool_name = part.tool_name, UNSET
        if marks.named or self.view.tools == "named":
            kind = Raw(b'"tool-' + bytes(memoryview(name if name is not UNSET else b'""')[1:]))
            said: UIPartJson = {"type": kind, "toolCallId": part.tool_call_id}
        else:
            said = {"type": "dynamic-tool", "toolName": name, "toolCallId": part.tool_call_id}
        if part.title is not UNSET:
            if "tool-title" in self.view.features:
                said["title"] = part.title
            else:
                self.lose("tool-title", f"AI SDK {self.view.version} has no title on tool parts")
        if part.provider_executed is True:
            said["providerExecuted"] = True
        return said

    def _state(self, part: CallPieces) -> str:
        state = part.state
        if not self.view.merge_tool_results and state not in _OPEN_STATES:
            if part.results:
                self.lose("tool-results", "left out, as asked for")
            part.results = UNSET
            return "input-available"
        if state == "aborted":
            return "output-error"
        if state in _NEEDS_APPROVALS and "approvals" not in self.view.features:
            self.lose("approvals", f"AI SDK {self.view.version} knows no approvals")
            return "output-error" if state == "output-denied" else "input-available"
        return state

    def _input(self, part: CallPieces) -> Raw:
        if part.input_blob is not UNSET:
            self.lose("large-text", "only a preview of the input is shown; the whole is a blob of the store")
        if part.input is not UNSET:
            value, part.input = part.input, UNSET
            return value
        part.input = _NULL
        return part.input_text if _says_something(part.input_text) else _NO_INPUT

    def _streaming_input(self, part: CallPieces, said: UIPartJson) -> None:
        if part.input is not UNSET:
            said["input"], part.input = part.input, UNSET
        elif part.input_text is not UNSET:
            if "raw-input" in self.view.features:
                said["rawInput"] = part.input_text
            else:
                self.lose("raw-input", f"AI SDK {self.view.version} keeps no input that is not complete")

    def _output(self, part: CallPieces, said: UIPartJson) -> None:
        result = shown_result(part)
        if result is None:
            said["output"] = _NULL
            return
        said["output"] = self._content(result)
        if result.preliminary is True:
            said["preliminary"] = True

    def _content(self, result: ResultPieces) -> Raw | list[UIPartJson]:
        content = result.content
        if content is UNSET or not content:
            return _NULL
        if len(content) == 1 and isinstance(content[0], TextPieces) and content[0].citations is UNSET:
            return self._text_output(content[0], result)
        return [self.part(part) for part in content]

    def _text_output(self, part: TextPieces, result: ResultPieces) -> Raw:
        text = part.text
        if text is UNSET:
            return _NULL
        if part.blob is not UNSET:
            self.lose("large-text", "only a preview of the output is shown; the whole is a blob of the store")
            part.text = UNSET
            return text
        found = parse_output(text)
        if found is None or (result.metadata is not UNSET and marks_of(result.metadata).text_output):
            part.text = UNSET
            return text
        if found.exact:
            part.text = UNSET
        return found.value

    def _approval(self, part: CallPieces, said: UIPartJson, state: str) -> None:
        approval = part.approval
        if "approvals" not in self.view.features:
            return
        if state in _NEEDS_APPROVALS:
            said["approval"] = _answer(part, approval, state)
        elif state in ("output-available", "output-error") and _was_asked(approval):
            said["approval"] = _answer(part, approval, "approval-responded")
        else:
            return
        if approval is not UNSET and approval.metadata is not UNSET:
            self._add_fields(said["approval"], marks_of(approval.metadata), _APPROVAL_FIELDS)

    def _metadata(self, part: CallPieces, said: UIPartJson, marks: Marks) -> None:
        if said["state"] != "input-streaming" or "streamed-call-metadata" in self.view.features:
            add_provider(said, "callProviderMetadata", part.provider)
        if part.state == "aborted":
            said["callProviderMetadata"] = {**said.get("callProviderMetadata", {}), "turnlog": {"state": "aborted"}}
        if marks.fields:
            self._add_fields(said, marks, _CALL_FIELDS)

    def _add_fields(self, said: UIPartJson, marks: Marks, features: dict[str, str]) -> None:
        """Say again what AI SDK said and the model has no field for, as far as the version knows it."""
        for name, value in marks.fields.items():
            if features.get(name) in self.view.features:
                said[name] = value
            elif name in features:
                self.lose(features[name], f"AI SDK {self.view.version} does not know {name}")


def _says_something(written: Raw | UnsetType) -> TypeGuard[Raw]:
    """Whether a text is not blank: some servers write the arguments of a call that has none as an empty one."""
    return is_text(written) and bool(msgspec.json.decode(written, type=str).strip())


def shown_result(part: CallPieces) -> ResultPieces | None:
    """The result that a tool part shows: the last that brought its state about, a final one before a preliminary."""
    if not part.results:
        return None
    if len(part.results) == 1:
        return part.results[0]
    status = _STATUS_OF_STATE.get(part.state)
    found = [result for result in part.results if result.status == status]
    final = [result for result in found if result.preliminary is not True]
    return (final or found or part.results)[-1]


def error_text(part: CallPieces) -> Raw | str:
    """What a call says that failed, was aborted or denied: never empty."""
    status = _STATUS_OF_STATE.get(part.state, "error")
    return _said_by(part) or _SAID_BY_DEFAULT.get(status, _SAID_BY_DEFAULT["error"])


def _said_by(part: CallPieces) -> Raw | str:
    """The words of the result that a call shows; empty where it has none."""
    result = shown_result(part)
    if result is None:
        return ""
    if is_text(result.error_text):
        return result.error_text
    texts = [
        msgspec.json.decode(item.text, type=str)
        for item in result.content or ()
        if isinstance(item, TextPieces) and item.text is not UNSET
    ]
    return "\n".join(texts)


def _was_asked(approval: ApprovalPieces | UnsetType) -> bool:
    """Whether somebody was asked, and said yes; what a rule allowed without asking is no approval to AI SDK."""
    return approval is not UNSET and approval.approved is True and is_text(approval.id)


def _answer(part: CallPieces, approval: ApprovalPieces | UnsetType, state: str) -> UIPartJson:
    """The approval of a part; a log that gives it no id means the call."""
    known = ApprovalPieces() if approval is UNSET else approval
    said: UIPartJson = {"id": known.id if is_text(known.id) else part.tool_call_id}
    if state == "approval-responded":
        said["approved"] = known.approved is True
    elif state == "output-denied":
        said["approved"] = False
        words = _said_by(part)
        if words:
            said["reason"] = words
    if state != "approval-requested" and is_text(known.reason):
        said["reason"] = known.reason
    return said


# Each writer takes the kind under which it stands, which no type of a mapping can say: the check is off at its end.
_WRITERS: dict[type[PartPieces], Callable[[CallWriter, PartPieces], UIPartJson]] = {
    TextPieces: CallWriter.text,
    ReasoningPieces: CallWriter.reasoning,
    CallPieces: CallWriter.call,
    FilePieces: CallWriter.file,
    SourceUrlPieces: CallWriter.source_url,
    SourceDocumentPieces: CallWriter.source_document,
    DataPieces: CallWriter.data,
    UnknownPieces: CallWriter.unknown,
}  # pyright: ignore[reportAssignmentType]  # each writer takes the kind under which it stands
