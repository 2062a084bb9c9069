"""Parts of the canonical model -> parts of a UI message.

Fields that the UI part contains are removed from the raw part, so that what the AI SDK has no field for remains;
`restore` is the inverse. A part without an AI SDK equivalent becomes `data-turnlog-part`, with its canonical JSON.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, TypeGuard, cast

import msgspec
from msgspec import UNSET, Raw, UnsetType

from turnlog.aisdk.checks import citation_check
from turnlog.aisdk.json_text import is_json_string, is_plain_json, parse_output
from turnlog.aisdk.metadata import KEY, SdkExtras, sdk_extras_of, to_sdk_keys
from turnlog.aisdk.raw_message import (
    RawApproval,
    RawData,
    RawFile,
    RawPart,
    RawProvider,
    RawReasoning,
    RawSourceDocument,
    RawSourceUrl,
    RawText,
    RawToolCall,
    RawToolResult,
    RawUnknown,
)
from turnlog.aisdk.versions import Loss
from turnlog.aisdk.view import View
from turnlog.errors import ShapeError
from turnlog.model import BlobRef, Citation
from turnlog.model.parts import STATE_OF_STATUS

UIPartJson = dict[str, Any]
"""A UI part that is being built: plain values and exact JSON."""

RESERVED: Final = "turnlog-"
"""Prefix of turnlog's own data parts; data of an application with such a name is not shown under it."""

OWN_PART: Final = "data-turnlog-part"
OWN_MESSAGE: Final = "data-turnlog-message"

_ADDRESS = re.compile(rb'"(?:https?://[^/\s"\\]|data:[^"\\]*,)', re.IGNORECASE)
"""The JSON of URLs that the AI SDK accepts for a file."""

_UI_PARTS = {"custom": "custom-content", "file": "provider-reference"}
"""Kinds of UI parts that are kept unchanged -> the feature that they need, if it has another name."""


class PartWriter:
    """Makes UI parts, and records losses at `place`."""

    def __init__(self, view: View, losses: list[Loss]) -> None:
        """Write for a view; losses are appended to the list."""
        self.view = view
        self.losses = losses
        self.place: tuple[int, int] = (0, 0)
        """Numbers of the message and of its part."""
        self._citations = "citations" in view.features

    def add_loss(self, feature: str, reason: str) -> None:
        """Record a loss at the current part."""
        message, part = self.place
        self.losses.append(Loss(feature=feature, path=f"$[{message}].parts[{part}]", reason=reason))

    def text(self, part: RawText) -> UIPartJson:
        """Text; a preview if the whole text is a blob."""
        ui_part: UIPartJson = {"type": "text", "text": part.text}
        if part.citations is not UNSET:
            self._add_citations(ui_part, part.citations)
        return self._finish_text(part, ui_part)

    def reasoning(self, part: RawReasoning) -> UIPartJson:
        """Reasoning, with the signature that its provider requires in later requests."""
        return self._finish_text(part, {"type": "reasoning", "text": part.text})

    def file(self, part: RawFile) -> UIPartJson:
        """A file by its URL, or with its bytes in a data URL."""
        address = self._address(part)
        if address is None:
            self.add_loss("file-address", "AI SDK takes http(s) and data URLs only; the file is sent as data")
            return self.own_part(part)
        ui_part: UIPartJson = {"type": "file", "mediaType": part.media_type, "url": address}
        if part.filename is not UNSET:
            ui_part["filename"] = part.filename
        add_provider(ui_part, "providerMetadata", part.provider)
        return ui_part

    def source_url(self, part: RawSourceUrl) -> UIPartJson:
        """A web page."""
        ui_part: UIPartJson = {"type": "source-url", "sourceId": part.source_id, "url": part.url}
        if part.title is not UNSET:
            ui_part["title"] = part.title
        part.source_id = part.url = part.title = UNSET
        add_provider(ui_part, "providerMetadata", part.provider)
        return ui_part

    def source_document(self, part: RawSourceDocument) -> UIPartJson:
        """A document."""
        ui_part: UIPartJson = {
            "type": "source-document",
            "sourceId": part.source_id,
            "mediaType": part.media_type,
            "title": part.title,
        }
        if part.filename is not UNSET:
            ui_part["filename"] = part.filename
        part.source_id = part.media_type = part.title = part.filename = UNSET
        add_provider(ui_part, "providerMetadata", part.provider)
        return ui_part

    def data(self, part: RawData) -> UIPartJson:
        """Data of an application, under its name."""
        if part.name is UNSET or part.name.startswith(RESERVED):
            return self.own_part(part)
        ui_part: UIPartJson = {"type": f"data-{part.name}", "data": part.data}
        if part.id is not UNSET:
            ui_part["id"] = part.id
        part.name = part.data = UNSET
        return ui_part

    def unknown(self, part: RawUnknown) -> UIPartJson:
        """A part of a newer AI SDK, or of an unknown kind."""
        if part.metadata is not UNSET and part.data is not UNSET and sdk_extras_of(part.metadata).ui_part:
            feature = _UI_PARTS.get(str(part.kind), str(part.kind))
            if feature in self.view.features:
                return cast("UIPartJson", part.data)
            self.add_loss(feature, f"AI SDK {self.view.version} does not know it; it is sent as data")
        return self.own_part(part)

    def own_part(self, part: RawPart) -> UIPartJson:
        """A whole part as turnlog's own data."""
        whole = Raw(msgspec.json.encode(part))
        for name in part.__struct_fields__:
            setattr(part, name, UNSET)
        return {"type": OWN_PART, "data": whole}

    def _finish_text(self, part: RawText | RawReasoning, ui_part: UIPartJson) -> UIPartJson:
        part.text = UNSET
        if part.state is not UNSET:
            ui_part["state"] = part.state
        if part.provider is not UNSET:
            add_provider(ui_part, "providerMetadata", part.provider)
        if part.blob is not UNSET:
            self.add_loss("large-text", "only a preview is shown; the whole is a blob of the store")
        return ui_part

    def _add_citations(self, ui_part: UIPartJson, citations: Raw) -> None:
        if not self._citations:
            self.add_loss("citations", f"AI SDK {self.view.version} has no citations on text")
            return
        found = [_citation(citation) for citation in msgspec.json.decode(citations, type=list[Citation])]
        known = [citation for citation in found if citation is not None]
        if known:
            ui_part["citations"] = known

    def _address(self, part: RawFile) -> Raw | str | None:
        if part.data is not UNSET and part.media_type is not UNSET:
            data, part.data = memoryview(part.data)[1:], Raw(b'""')
            return Raw(b'"data:%b;base64,%b' % (bytes(memoryview(part.media_type)[1:-1]), data))
        if part.blob is not UNSET and self.view.blob_url is not None:
            return self.view.blob_url(msgspec.json.decode(part.blob, type=BlobRef))
        # `convertToModelMessages` of 7 parses URLs with `new URL`, which throws for relative ones.
        if part.url is not UNSET and _ADDRESS.match(part.url):
            url, part.url = part.url, UNSET
            return url
        return None


def add_provider(ui_part: UIPartJson, key: str, provider: RawProvider | msgspec.UnsetType) -> None:
    """Add the provider data under its name, and remove it from the raw part if `restore` can rebuild it."""
    if provider is UNSET or not provider.opaque:
        return
    fields = to_sdk_keys(provider.name, provider.opaque)
    if fields is None:
        fields = provider.opaque
    else:
        provider.opaque = UNSET
    ui_part[key] = {provider.name: fields}


def _citation(citation: Citation) -> UIPartJson | None:
    """A citation for the AI SDK, unchanged if it came from there; None if it has no source."""
    try:
        return cast("UIPartJson", citation_check()(citation.metadata[KEY]))
    except (KeyError, ShapeError):
        pass
    if not citation.url:
        return None
    source: UIPartJson = {"type": "source", "sourceType": "url", "id": citation.url, "url": citation.url}
    if citation.title is not None:
        source["title"] = citation.title
    ui_part: UIPartJson = {"source": source}
    optional = {
        "startIndex": citation.start_index,
        "endIndex": citation.end_index,
        "citedText": citation.cited_text,
    }
    return ui_part | {name: value for name, value in optional.items() if value is not None}


_NULL: Final = Raw(b"null")
"""An output that is not shown."""

NO_INPUT: Final = Raw(b"null")
"""In the raw part: the input shown is not that of the log."""

_NO_INPUT: Final = Raw(b"{}")
"""The input of a call without arguments: the AI SDK requires one, and providers an object."""

_STATUS_OF_STATE = {state.value: status for status, state in STATE_OF_STATUS.items()}

_NO_EXTRAS: Final = SdkExtras()

_OPEN_STATES = frozenset({"input-streaming", "input-available", "approval-requested", "approval-responded"})
_NEEDS_APPROVALS = frozenset({"approval-requested", "approval-responded", "output-denied"})

_DEFAULT_ERROR_TEXTS = {
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
"""Fields that only the AI SDK has -> the feature that they need."""


class CallWriter(PartWriter):
    """Makes UI parts of every kind, including tool parts."""

    def part(self, part: RawPart) -> UIPartJson:
        """The UI part of any part."""
        return _WRITERS[type(part)](self, part)

    def call(self, part: RawToolCall) -> UIPartJson:
        """A tool call and its outcome."""
        extras = _NO_EXTRAS if part.metadata is UNSET else sdk_extras_of(part.metadata)
        ui_part = self._head(part, extras)
        state = self._state(part)
        ui_part["state"] = state
        if state == "input-streaming":
            self._streaming_input(part, ui_part)
        else:
            ui_part["input"] = self._input(part)
        if state == "output-available":
            self._output(part, ui_part)
        elif state == "output-error":
            ui_part["errorText"] = error_text(part)
        self._approval(part, ui_part, state)
        self._metadata(part, ui_part, extras)
        return ui_part

    def _head(self, part: RawToolCall, extras: SdkExtras) -> UIPartJson:
        name, part.tool_name = part.tool_name, UNSET
        # Validators check `tool-<name>` parts against the tools that a page declares; a dynamic part needs none.
        if extras.named or self.view.tools == "named":
            kind = Raw(b'"tool-' + bytes(memoryview(name if name is not UNSET else b'""')[1:]))
            ui_part: UIPartJson = {"type": kind, "toolCallId": part.tool_call_id}
        else:
            ui_part = {"type": "dynamic-tool", "toolName": name, "toolCallId": part.tool_call_id}
        if part.title is not UNSET:
            if "tool-title" in self.view.features:
                ui_part["title"] = part.title
            else:
                self.add_loss("tool-title", f"AI SDK {self.view.version} has no title on tool parts")
        if part.provider_executed is True:
            ui_part["providerExecuted"] = True
        return ui_part

    def _state(self, part: RawToolCall) -> str:
        state = part.state
        if not self.view.merge_tool_results and state not in _OPEN_STATES:
            if part.results:
                self.add_loss("tool-results", "left out, as asked for")
            part.results = UNSET
            return "input-available"
        # The AI SDK has no such state; `turnlog.state` in the metadata distinguishes it from an error.
        if state == "aborted":
            return "output-error"
        if state in _NEEDS_APPROVALS and "approvals" not in self.view.features:
            self.add_loss("approvals", f"AI SDK {self.view.version} knows no approvals")
            return "output-error" if state == "output-denied" else "input-available"
        return state

    def _input(self, part: RawToolCall) -> Raw:
        if part.input_blob is not UNSET:
            self.add_loss("large-text", "only a preview of the input is shown; the whole is a blob of the store")
        if part.input is not UNSET:
            value, part.input = part.input, kept_input(part.input)
            return value
        part.input = NO_INPUT
        return part.input_text if _has_text(part.input_text) else _NO_INPUT

    def _streaming_input(self, part: RawToolCall, ui_part: UIPartJson) -> None:
        if part.input is not UNSET:
            ui_part["input"], part.input = part.input, kept_input(part.input)
        elif part.input_text is not UNSET:
            if "raw-input" in self.view.features:
                ui_part["rawInput"] = part.input_text
            else:
                self.add_loss("raw-input", f"AI SDK {self.view.version} keeps no input that is not complete")

    def _output(self, part: RawToolCall, ui_part: UIPartJson) -> None:
        result = shown_result(part)
        # Clients with zod 4.4 or newer refuse a part without `output`; null is any JSON.
        if result is None:
            ui_part["output"] = _NULL
            return
        ui_part["output"] = self._content(result)
        if result.preliminary is True:
            ui_part["preliminary"] = True

    def _content(self, result: RawToolResult) -> Raw | list[UIPartJson]:
        content = result.content
        if content is UNSET or not content:
            return _NULL
        if len(content) == 1 and isinstance(content[0], RawText) and content[0].citations is UNSET:
            return self._text_output(content[0], result)
        return [self.part(part) for part in content]

    def _text_output(self, part: RawText, result: RawToolResult) -> Raw:
        text = part.text
        if text is UNSET:
            return _NULL
        if part.blob is not UNSET:
            self.add_loss("large-text", "only a preview of the output is shown; the whole is a blob of the store")
            part.text = UNSET
            return text
        # An output that was a string in the AI SDK is a string again, even if it contains JSON.
        found = parse_output(text)
        if found is None or (result.metadata is not UNSET and sdk_extras_of(result.metadata).text_output):
            part.text = UNSET
            return text
        if found.exact:
            part.text = UNSET
        return found.value

    def _approval(self, part: RawToolCall, ui_part: UIPartJson, state: str) -> None:
        approval = part.approval
        if "approvals" not in self.view.features:
            return
        # Validators require an approval in these states, and accept only a granted one next to an outcome.
        if state in _NEEDS_APPROVALS:
            ui_part["approval"] = _approval_json(part, approval, state)
        elif state in ("output-available", "output-error") and _was_approved(approval):
            ui_part["approval"] = _approval_json(part, approval, "approval-responded")
        else:
            return
        if approval is not UNSET and approval.metadata is not UNSET:
            self._add_fields(ui_part["approval"], sdk_extras_of(approval.metadata), _APPROVAL_FIELDS)

    def _metadata(self, part: RawToolCall, ui_part: UIPartJson, extras: SdkExtras) -> None:
        if ui_part["state"] != "input-streaming" or "streamed-call-metadata" in self.view.features:
            add_provider(ui_part, "callProviderMetadata", part.provider)
        if part.state == "aborted":
            ui_part["callProviderMetadata"] = {
                **ui_part.get("callProviderMetadata", {}),
                "turnlog": {"state": "aborted"},
            }
        if extras.fields:
            self._add_fields(ui_part, extras, _CALL_FIELDS)

    def _add_fields(self, ui_part: UIPartJson, extras: SdkExtras, features: dict[str, str]) -> None:
        """Add the AI SDK's own fields, as far as the version knows them."""
        for name, value in extras.fields.items():
            if features.get(name) in self.view.features:
                ui_part[name] = value
            elif name in features:
                self.add_loss(features[name], f"AI SDK {self.view.version} does not know {name}")


def kept_input(value: Raw) -> Raw | UnsetType:
    """What stays in the raw part of an input that is shown: the text of its JSON, if parsing and writing changes it."""
    return UNSET if is_plain_json(value) else Raw(msgspec.json.encode(bytes(value).decode()))


def _has_text(written: Raw | UnsetType) -> TypeGuard[Raw]:
    """Whether a text is not blank: some servers send empty arguments for a call without any."""
    return is_json_string(written) and bool(msgspec.json.decode(written, type=str).strip())


def shown_result(part: RawToolCall) -> RawToolResult | None:
    """The result that a tool part shows: the last one with its state, a final one before a preliminary one."""
    if not part.results:
        return None
    if len(part.results) == 1:
        return part.results[0]
    status = _STATUS_OF_STATE.get(part.state)
    found = [result for result in part.results if result.status == status]
    final = [result for result in found if result.preliminary is not True]
    return (final or found or part.results)[-1]


def error_text(part: RawToolCall) -> Raw | str:
    """The error text of a call that failed, was aborted or denied; never empty."""
    status = _STATUS_OF_STATE.get(part.state, "error")
    return _result_text(part) or _DEFAULT_ERROR_TEXTS.get(status, _DEFAULT_ERROR_TEXTS["error"])


def _result_text(part: RawToolCall) -> Raw | str:
    """The text of the result that a call shows; empty if it has none."""
    result = shown_result(part)
    if result is None:
        return ""
    if is_json_string(result.error_text):
        return result.error_text
    texts = [
        msgspec.json.decode(item.text, type=str)
        for item in result.content or ()
        if isinstance(item, RawText) and item.text is not UNSET
    ]
    return "\n".join(texts)


def _was_approved(approval: RawApproval | UnsetType) -> bool:
    """Whether a person approved the call; the AI SDK has no approval for a call that a rule allowed without asking."""
    return approval is not UNSET and approval.approved is True and is_json_string(approval.id)


def _approval_json(part: RawToolCall, approval: RawApproval | UnsetType, state: str) -> UIPartJson:
    """The approval of a part; without an id in the log it gets the id of the call."""
    known = RawApproval() if approval is UNSET else approval
    ui_part: UIPartJson = {"id": known.id if is_json_string(known.id) else part.tool_call_id}
    if state == "approval-responded":
        ui_part["approved"] = known.approved is True
    elif state == "output-denied":
        ui_part["approved"] = False
        text = _result_text(part)
        if text:
            ui_part["reason"] = text
    if state != "approval-requested" and is_json_string(known.reason):
        ui_part["reason"] = known.reason
    return ui_part


# Each method takes the kind of part of its key. The type of a mapping cannot express that, so the check is off below.
_WRITERS: dict[type[RawPart], Callable[[CallWriter, RawPart], UIPartJson]] = {
    RawText: CallWriter.text,
    RawReasoning: CallWriter.reasoning,
    RawToolCall: CallWriter.call,
    RawFile: CallWriter.file,
    RawSourceUrl: CallWriter.source_url,
    RawSourceDocument: CallWriter.source_document,
    RawData: CallWriter.data,
    RawUnknown: CallWriter.unknown,
}  # pyright: ignore[reportAssignmentType]  # each method takes the kind of its key
