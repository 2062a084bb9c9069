"""A history as the body of a Gemini request (`generateContent`; R-K22, R-K26). The model is in the address.

Function responses are in their own content right after their calls; `model` contents never follow each other.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from typing import Any

from turnlog.arguments import checked
from turnlog.model import FilePart, Message, Part, ReasoningPart, TextPart, ToolCallPart
from turnlog.providers import request_parts
from turnlog.providers.base import Conversion, Report, RequestOptions
from turnlog.providers.files import FileLimits
from turnlog.providers.repair import RequestRules, repair
from turnlog.providers.request_parts import is_own, proof
from turnlog.providers.unsent import lose_phases, lose_unsent

RULES = RequestRules(
    tool_name_characters=r"a-zA-Z0-9_.:-",
    tool_name_first=r"a-zA-Z_",
    tool_name_length=64,
    begins_with_user=True,
    files=FileLimits(
        images=frozenset({"image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"}),
        files=frozenset({"application/pdf", "text/plain", "audio/*", "video/*"}),
        file_bytes=20 * 1024 * 1024,
        most_images=3000,
        file_references=True,
        image_references=True,
    ),
)

_PROVIDERS = frozenset({"google", "gemini", "vertex", "googleVertex"})

_UNSIGNED = "skip_thought_signature_validator"
"""What the API documents for calls that another model made, or whose signature is lost."""

_OLD_MODELS = re.compile(r"gemini-[12](\.|-|$)")
"""They check no signatures, and take no files inside of a function response."""

_IN_RESPONSE = frozenset({"image/png", "image/jpeg", "image/webp", "application/pdf", "text/plain"})

_ATTACHED = "Tool result image:"

WirePart = dict[str, Any]


@checked
def to_request(messages: Sequence[Message], options: RequestOptions, *, strict: bool = False) -> Conversion:
    """The body of the request that continues a history. Raises as `Provider.to_request` says."""
    report = Report()
    repaired = repair(messages, RULES, options, report)
    writer = _Writer(options, report)
    for message in repaired.messages:
        writer.add(message)
    lose_unsent(repaired.messages, writer.contents, report)
    lose_phases(repaired.messages, report)
    system = [_text(text) for text in repaired.system]
    body: dict[str, Any] = {
        **({"systemInstruction": {"parts": system}} if system else {}),
        "contents": writer.contents,
        **({"tools": [dict(tool) for tool in options.tools]} if options.tools else {}),
        **({"generationConfig": {"maxOutputTokens": options.max_tokens}} if options.max_tokens is not None else {}),
        **options.extra,
    }
    return report.conversion(body, strict=strict)


class _Writer:
    """Writes contents one after another."""

    def __init__(self, options: RequestOptions, report: Report) -> None:
        self.contents: list[dict[str, Any]] = []
        self._model = options.model
        self._report = report
        self._is_old = _OLD_MODELS.search(options.model) is not None

    def add(self, message: Message) -> None:
        """Append what a message and the results of its calls become."""
        if message.role == "user":
            self._append("user", [found for part in message.parts for found in _user_parts(part)], message)
            return
        parts = [found for part in message.parts for found in self._model_parts(part, message)]
        # After a content of thoughts alone, the next answer would be a second `model` content (rule G4).
        while parts and parts[-1].get("thought"):
            self._report.mend("trailing-reasoning", message.id, "left out: nothing follows it")
            parts.pop()
        self._sign_calls(parts, message)
        self._append("model", parts, message)
        calls = [part for part in message.parts if isinstance(part, ToolCallPart) and not part.provider_executed]
        if calls:
            self._add_responses(calls, message)

    def _append(self, role: str, parts: list[WirePart], message: Message) -> None:
        if not parts:
            return
        last = self.contents[-1] if self.contents else None
        # Rule G3: the content after calls has the responses and nothing else.
        if last is not None and last["role"] == role and "functionResponse" not in last["parts"][0]:
            self._report.mend("merged-messages", message.id, f"sent as one with the {role} message before it")
            last["parts"] += parts
        else:
            self.contents.append({"role": role, "parts": parts})

    def _model_parts(self, part: Part, message: Message) -> list[WirePart]:
        own = is_own(part, message, _PROVIDERS, self._model)
        signature = proof(part, "thought_signature") or proof(part, "signature") if own else None
        # A signature that is no Base64 is another provider's, and the API would refuse the request.
        signed = {"thoughtSignature": signature} if signature is not None and _is_base64(signature) else {}
        if isinstance(part, TextPart):
            request_parts.lose_citations(part, message, self._report)
            return [{**_text(part.text), **signed}] if part.text.strip() or signed else []
        if isinstance(part, ReasoningPart):
            if own:
                return [{**_text(part.text), "thought": True, **signed}]
            text = request_parts.foreign_reasoning(part, message, self._report)
            return [] if text is None else [_text(text)]
        if isinstance(part, ToolCallPart):
            if part.provider_executed:
                return [_text(request_parts.server_tool_text(part, message, self._report))]
            args = request_parts.wrapped_arguments(part, message, self._report)
            return [{"functionCall": {"name": part.tool_name, "args": args}, **signed}]
        return []

    def _sign_calls(self, parts: list[WirePart], message: Message) -> None:
        """The first call of a step must be signed; where its signature is not known, it says so.

        Some agents keep the signature of a call with the thought right before it.
        """
        place = next((place for place, part in enumerate(parts) if "functionCall" in part), None)
        if place is None or "thoughtSignature" in parts[place] or self._is_old:
            return
        before = parts[place - 1] if place else {}
        if before.get("thought") and "thoughtSignature" in before:
            parts[place]["thoughtSignature"] = before["thoughtSignature"]
        else:
            parts[place]["thoughtSignature"] = _UNSIGNED
            self._report.mend("added-signature", message.id, "its call has no signature of this model's")

    def _add_responses(self, calls: list[ToolCallPart], message: Message) -> None:
        """All responses of a step in one content; files that do not fit into one come after it."""
        responses: list[WirePart] = []
        attached: list[WirePart] = []
        for call in calls:
            files = request_parts.result_files(request_parts.result_of(call))
            inside = [part for part in files if self._fits_inside(part)]
            responses.append(self._response(call, inside, message))
            attached += [_file(part) for part in files if part not in inside]
        self.contents.append({"role": "user", "parts": responses})
        if attached:
            self.contents.append({"role": "user", "parts": [_text(_ATTACHED), *attached]})

    def _fits_inside(self, part: FilePart) -> bool:
        return not self._is_old and part.data is not None and part.media_type in _IN_RESPONSE

    def _response(self, call: ToolCallPart, files: list[FilePart], message: Message) -> WirePart:
        result = request_parts.result_of(call)
        text = request_parts.result_text(result)
        response: dict[str, Any] = {
            "name": call.tool_name,
            "response": {"error" if request_parts.is_failed(result) else "output": text},
        }
        if files:
            response["parts"] = [_file(part) for part in files]
        return {"functionResponse": response}


def _user_parts(part: Part) -> list[WirePart]:
    if isinstance(part, TextPart):
        return [_text(part.text)] if part.text.strip() else []
    return [_file(part)] if isinstance(part, FilePart) else []


def _text(text: str) -> WirePart:
    return {"text": text}


def _is_base64(text: str) -> bool:
    """Whether the API can decode it: other providers' signatures may be any text."""
    try:
        return bool(base64.b64decode(text, validate=True))
    except ValueError:
        return False


def _file(part: FilePart) -> WirePart:
    if part.data is None:
        kind = {} if part.media_type == "image/*" else {"mimeType": part.media_type}
        return {"fileData": {**kind, "fileUri": proof(part, "file_id") or part.url}}
    return {"inlineData": {"mimeType": part.media_type, "data": request_parts.encoded(part)}}
