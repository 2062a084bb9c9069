"""Parts of the canonical model -> parts of a UI message.

Every field that the UI part holds is removed from the raw part, so that what remains is what AI SDK has no field for;
`restore` is the way back. A part for which AI SDK has no kind becomes `data-turnlog-part`, with its canonical JSON.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, TypeGuard, cast

import msgspec
from msgspec import UNSET, Raw, UnsetType

from turnlog.aisdk.json_text import is_json_string, parse_output
from turnlog.aisdk.metadata import KEY, Marks, marks_of, to_sdk_words
from turnlog.aisdk.options import View
from turnlog.aisdk.raw_message import (
    ApprovalPieces,
    CallPieces,
    DataPieces,
    FilePieces,
    PartPieces,
    ProviderPieces,
    ReasoningPieces,
    ResultPieces,
    SourceDocumentPieces,
    SourceUrlPieces,
    TextPieces,
    UnknownPieces,
)
from turnlog.aisdk.version_checks import citation_check
from turnlog.aisdk.versions import Loss
from turnlog.errors import ShapeError
from turnlog.model import BlobRef, Citation
from turnlog.model.tools import STATE_OF_STATUS

UIPartJson = dict[str, Any]
"""A UI part on its way into JSON: plain values and exact JSON."""

RESERVED: Final = "turnlog-"
"""How the names of our own data parts begin; an application's data of such a name is not shown under it."""

OWN_PART: Final = "data-turnlog-part"
OWN_MESSAGE: Final = "data-turnlog-message"

_ADDRESS = re.compile(rb'"(?:https?://[^/\s"\\]|data:[^"\\]*,)', re.IGNORECASE)
"""Addresses that AI SDK takes for a file."""

_UI_PARTS = {"custom": "custom-content", "file": "provider-reference"}
"""Kinds of UI parts that are kept as they are -> the feature that a version needs for them, if it is not called so."""


class PartWriter:
    """Makes UI parts, and notes what is lost on the way at `place`."""

    def __init__(self, view: View, losses: list[Loss]) -> None:
        """Write for a view; losses are added to the list."""
        self.view = view
        self.losses = losses
        self.place: tuple[int, int] = (0, 0)
        """Numbers of the message and of its part."""
        self._citations = "citations" in view.features

    def lose(self, feature: str, reason: str) -> None:
        """Note a loss where the writer stands."""
        message, part = self.place
        self.losses.append(Loss(feature=feature, path=f"$[{message}].parts[{part}]", reason=reason))

    def text(self, part: TextPieces) -> UIPartJson:
        """Text; a preview where the whole is a blob."""
        said: UIPartJson = {"type": "text", "text": part.text}
        if part.citations is not UNSET:
            self._add_citations(said, part.citations)
        return self._finish_text(part, said)

    def reasoning(self, part: ReasoningPieces) -> UIPartJson:
        """Reasoning, with the signature that its provider wants back."""
        return self._finish_text(part, {"type": "reasoning", "text": part.text})

    def file(self, part: FilePieces) -> UIPartJson:
        """A file by its address, or with its bytes in a data URL."""
        address = self._address(part)
        if address is None:
            self.lose("file-address", "AI SDK takes http(s) and data URLs only; the file is told of as data")
            return self.own_part(part)
        said: UIPartJson = {"type": "file", "mediaType": part.media_type, "url": address}
        if part.filename is not UNSET:
            said["filename"] = part.filename
        add_provider(said, "providerMetadata", part.provider)
        return said

    def source_url(self, part: SourceUrlPieces) -> UIPartJson:
        """A web page."""
        said: UIPartJson = {"type": "source-url", "sourceId": part.source_id, "url": part.url}
        if part.title is not UNSET:
            said["title"] = part.title
        part.source_id = part.url = part.title = UNSET
        add_provider(said, "providerMetadata", part.provider)
        return said

    def source_document(self, part: SourceDocumentPieces) -> UIPartJson:
        """A document."""
        said: UIPartJson = {
            "type": "source-document",
            "sourceId": part.source_id,
            "mediaType": part.media_type,
            "title": part.title,
        }
        if part.filename is not UNSET:
            said["filename"] = part.filename
        part.source_id = part.media_type = part.title = part.filename = UNSET
        add_provider(said, "providerMetadata", part.provider)
        return said

    def data(self, part: DataPieces) -> UIPartJson:
        """An application's data under its name."""
        if part.name is UNSET or part.name.startswith(RESERVED):
            return self.own_part(part)
        said: UIPartJson = {"type": f"data-{part.name}", "data": part.data}
        if part.id is not UNSET:
            said["id"] = part.id
        part.name = part.data = UNSET
        return said

    def unknown(self, part: UnknownPieces) -> UIPartJson:
        """A kind that only a newer AI SDK has, or that nobody knows."""
        if part.metadata is not UNSET and part.data is not UNSET and marks_of(part.metadata).ui_part:
            feature = _UI_PARTS.get(str(part.kind), str(part.kind))
            if feature in self.view.features:
                return cast("UIPartJson", part.data)
            self.lose(feature, f"AI SDK {self.view.version} does not know it; it is told of as data")
        return self.own_part(part)

    def own_part(self, part: PartPieces) -> UIPartJson:
        """Any part as data of ours, whole."""
        whole = Raw(msgspec.json.encode(part))
        for name in part.__struct_fields__:
            setattr(part, name, UNSET)
        return {"type": OWN_PART, "data": whole}

    def _finish_text(self, part: TextPieces | ReasoningPieces, said: UIPartJson) -> UIPartJson:
        part.text = UNSET
        if part.state is not UNSET:
            said["state"] = part.state
        if part.provider is not UNSET:
            add_provider(said, "providerMetadata", part.provider)
        if part.blob is not UNSET:
            self.lose("large-text", "only a preview is shown; the whole is a blob of the store")
        return said

    def _add_citations(self, said: UIPartJson, citations: Raw) -> None:
        if not self._citations:
            self.lose("citations", f"AI SDK {self.view.version} has no citations on text")
            return
        found = [_citation(citation) for citation in msgspec.json.decode(citations, type=list[Citation])]
        told = [citation for citation in found if citation is not None]
        if told:
            said["citations"] = told

    def _address(self, part: FilePieces) -> Raw | str | None:
        if part.data is not UNSET and part.media_type is not UNSET:
            data, part.data = memoryview(part.data)[1:], Raw(b'""')
            return Raw(b'"data:%b;base64,%b' % (bytes(memoryview(part.media_type)[1:-1]), data))
        if part.blob is not UNSET and self.view.blob_url is not None:
            return self.view.blob_url(msgspec.json.decode(part.blob, type=BlobRef))
        if part.url is not UNSET and _ADDRESS.match(part.url):
            url, part.url = part.url, UNSET
            return url
        return None


def add_provider(said: UIPartJson, key: str, provider: ProviderPieces | msgspec.UnsetType) -> None:
    """Say what the provider wants back under its name; taken out of the pieces where it can be put back."""
    if provider is UNSET or not provider.opaque:
        return
    words = to_sdk_words(provider.name, provider.opaque)
    if words is None:
        words = provider.opaque
    else:
        provider.opaque = UNSET
    said[key] = {provider.name: words}


def _citation(citation: Citation) -> UIPartJson | None:
    """A citation in AI SDK's words, its own where it said it; None where it has no source that can be named."""
    try:
        return cast("UIPartJson", citation_check()(citation.metadata[KEY]))
    except (KeyError, ShapeError):
        pass
    if not citation.url:
        return None
    source: UIPartJson = {"type": "source", "sourceType": "url", "id": citation.url, "url": citation.url}
    if citation.title is not None:
        source["title"] = citation.title
    said: UIPartJson = {"source": source}
    optional = {
        "startIndex": citation.start_index,
        "endIndex": citation.end_index,
        "citedText": citation.cited_text,
    }
    return said | {name: value for name, value in optional.items() if value is not None}


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
    return is_json_string(written) and bool(msgspec.json.decode(written, type=str).strip())


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
    if is_json_string(result.error_text):
        return result.error_text
    texts = [
        msgspec.json.decode(item.text, type=str)
        for item in result.content or ()
        if isinstance(item, TextPieces) and item.text is not UNSET
    ]
    return "\n".join(texts)


def _was_asked(approval: ApprovalPieces | UnsetType) -> bool:
    """Whether somebody was asked, and said yes; what a rule allowed without asking is no approval to AI SDK."""
    return approval is not UNSET and approval.approved is True and is_json_string(approval.id)


def _answer(part: CallPieces, approval: ApprovalPieces | UnsetType, state: str) -> UIPartJson:
    """The approval of a part; a log that gives it no id means the call."""
    known = ApprovalPieces() if approval is UNSET else approval
    said: UIPartJson = {"id": known.id if is_json_string(known.id) else part.tool_call_id}
    if state == "approval-responded":
        said["approved"] = known.approved is True
    elif state == "output-denied":
        said["approved"] = False
        words = _said_by(part)
        if words:
            said["reason"] = words
    if state != "approval-requested" and is_json_string(known.reason):
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
