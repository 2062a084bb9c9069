"""A history as the body of an OpenAI Responses request: one flat list of items (R-K22, R-K27).

The whole history is sent each time and nothing is left with the provider (`store: false`), so reasoning goes back as
its encrypted content.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from turnlog.arguments import checked
from turnlog.model import Citation, FilePart, Message, Part, ReasoningPart, TextPart, ToolCallPart
from turnlog.providers import request_parts
from turnlog.providers.base import Conversion, Report, RequestOptions
from turnlog.providers.files import FileLimits
from turnlog.providers.repair import RequestRules, repair
from turnlog.providers.request_parts import is_own, proof
from turnlog.providers.unsent import lose_unsent, phase_of

RULES = RequestRules(
    call_id_length=64,
    tool_name_length=128,
    files=FileLimits(files=frozenset({"application/pdf"}), file_references=True, image_references=True),
)

_PROVIDERS = frozenset({"openai", "azure"})
_PHASES = ("commentary", "final_answer")
_DETAIL = {"detail": "auto"}
_SEARCH_ACTIONS = frozenset({"search", "open_page", "find_in_page"})

Item = dict[str, Any]


@checked
def to_request(messages: Sequence[Message], options: RequestOptions, *, strict: bool = False) -> Conversion:
    """The body of the request that continues a history. Raises as `Provider.to_request` says."""
    report = Report()
    repaired = repair(messages, RULES, options, report)
    writer = _Writer(options, report)
    for message in repaired.messages:
        writer.add(message)
    lose_unsent(repaired.messages, writer.items, report)
    body: dict[str, Any] = {
        "model": options.model,
        **({"instructions": "\n\n".join(repaired.system)} if repaired.system else {}),
        "input": writer.items,
        **({"tools": [dict(tool) for tool in options.tools]} if options.tools else {}),
        **({"max_output_tokens": options.max_tokens} if options.max_tokens is not None else {}),
        "store": False,
        "include": ["reasoning.encrypted_content"],
        **({"stream": True} if options.stream else {}),
        **options.extra,
    }
    return report.conversion(body, strict=strict)


class _Writer:
    """Writes items one after another."""

    def __init__(self, options: RequestOptions, report: Report) -> None:
        self.items: list[Item] = []
        self._model = options.model
        self._report = report
        self._custom_tools = {str(tool.get("name")) for tool in options.tools if tool.get("type") == "custom"}

    def add(self, message: Message) -> None:
        """Append what a message and the results of its calls become."""
        if message.role == "user":
            content = [block for part in message.parts for block in _user_blocks(part)]
            if content:
                self.items.append({"type": "message", "role": "user", "content": content})
            return
        items = self._answer_items(message)
        phases = {phase_of(part, message) for part in message.parts} - {None}
        if not phases <= {item.get("phase") for item in items}:
            self._report.lose("phase-omitted", message.id, "no text has the phase, or the API does not know it")
        # Rule R5: reasoning needs the item that it led to.
        while items and items[-1]["type"] == "reasoning":
            self._report.mend("trailing-reasoning", message.id, "left out: nothing follows it")
            items.pop()
        self.items += items
        for part in message.parts:
            if isinstance(part, ToolCallPart) and not part.provider_executed:
                self.items.append(self._output(part, message))

    def _answer_items(self, message: Message) -> list[Item]:
        """Items in order. Texts that directly follow each other are one: citations cut them in the middle of a line."""
        items: list[Item] = []
        before: Part | None = None
        for part in message.parts:
            found = self._part_items(part, message)
            if (
                found
                and isinstance(part, TextPart)
                and isinstance(before, TextPart)
                and _is_short(found[0])
                and _is_short(items[-1])
            ):
                items[-1]["content"] += found[0]["content"]
            else:
                items += found
            before = part if found else before
        return items

    def _part_items(self, part: Part, message: Message) -> list[Item]:
        if isinstance(part, TextPart):
            return [self._output_text(part, message)] if part.text.strip() else []
        if isinstance(part, ReasoningPart):
            return self._reasoning(part, message)
        if isinstance(part, ToolCallPart):
            return [self._call(part, message)]
        return []

    def _output_text(self, part: TextPart, message: Message) -> Item:
        """An answer: with its own id as the output it was, else in the short form, which needs none."""
        phase = phase_of(part, message)
        phases = {"phase": phase} if phase in _PHASES else {}
        # The SDK's type for a whole output item demands its id, and the API looks up ids, so none is made up.
        own_id = proof(part, "id") if is_own(part, message, _PROVIDERS, self._model) else None
        annotations = [found for citation in part.citations if (found := _annotation(citation)) is not None]
        if own_id is None or len(annotations) < len(part.citations):
            request_parts.lose_citations(part, message, self._report)
        if own_id is None:
            return {**_output_text(part.text), **phases}
        content: list[Item] = [{"type": "output_text", "text": part.text, "annotations": annotations}]
        return {**_output_text(""), "id": own_id, "status": "completed", "content": content, **phases}

    def _reasoning(self, part: ReasoningPart, message: Message) -> list[Item]:
        if is_own(part, message, _PROVIDERS, self._model):
            return [_reasoning(part)]
        text = request_parts.foreign_reasoning(part, message, self._report)
        return [] if text is None else [_output_text(text)]

    def _call(self, call: ToolCallPart, message: Message) -> Item:
        if call.provider_executed:
            return _search(call) or _output_text(request_parts.server_tool_text(call, message, self._report))
        if call.tool_name in self._custom_tools:
            text = request_parts.arguments_text(call)
            return {"type": "custom_tool_call", "call_id": call.tool_call_id, "name": call.tool_name, "input": text}
        own_id = proof(call, "id") if is_own(call, message, _PROVIDERS, self._model) else None
        return {
            "type": "function_call",
            **({"id": own_id} if own_id is not None else {}),
            "call_id": call.tool_call_id,
            "name": call.tool_name,
            "arguments": request_parts.arguments_text(call),
        }

    def _output(self, call: ToolCallPart, message: Message) -> Item:
        result = request_parts.result_of(call)
        request_parts.lose_status(call, message, self._report)
        text = request_parts.result_text(result)
        files = request_parts.result_files(result)
        output: str | list[Item] = text
        if files:
            output = [block for part in result.content for block in _user_blocks(part)]
        kind = "custom_tool_call_output" if call.tool_name in self._custom_tools else "function_call_output"
        return {"type": kind, "call_id": call.tool_call_id, "output": output}


def _user_blocks(part: Part) -> list[Item]:
    if isinstance(part, TextPart):
        return [_text(part.text)] if part.text.strip() else []
    return [_file(part)] if isinstance(part, FilePart) else []


def _text(text: str) -> Item:
    return {"type": "input_text", "text": text}


def _output_text(text: str) -> Item:
    return {"type": "message", "role": "assistant", "content": text}


_ANNOTATIONS = {
    "url_citation": ("url", "title", "start_index", "end_index"),
    "file_citation": ("file_id", "filename", "index"),
    "container_file_citation": ("container_id", "file_id", "filename", "start_index", "end_index"),
    "file_path": ("file_id", "index"),
}
"""Kind of annotation -> the fields that the API demands."""


def _annotation(citation: Citation) -> Item | None:
    """A citation of OpenAI's as it was; None for another, or where a field is missing."""
    kind = citation.metadata.get("type")
    named = {"url": citation.url, "title": citation.title, "filename": citation.document}
    places = {"start_index": citation.start_index, "end_index": citation.end_index}
    known = {**citation.metadata, **named, **places}
    names = _ANNOTATIONS.get(kind) if isinstance(kind, str) else None
    if names is None or any(known.get(name) is None for name in names):
        return None
    return {"type": kind, **{name: known[name] for name in names}}


def _is_short(item: Item) -> bool:
    return isinstance(item["content"], str) and "phase" not in item


def _reasoning(part: ReasoningPart) -> Item:
    """A reasoning item. The API wants an id; where the log has none, one is made of the content."""
    sealed = proof(part, "encrypted_content") or proof(part, "signature")
    digest = hashlib.sha256(f"{part.id}\0{sealed}\0{part.text}".encode(errors="replace")).hexdigest()
    text = proof(part, "summary") or part.text
    summary = [{"type": "summary_text", "text": text}] if text else []
    item: Item = {"type": "reasoning", "id": proof(part, "id") or f"rs_{digest[:48]}", "summary": summary}
    return {**item, "encrypted_content": sealed} if sealed is not None else item


def _search(call: ToolCallPart) -> Item | None:
    """A web search that OpenAI ran; None if it is not one, or not known well enough."""
    action = request_parts.arguments_object(call)
    if not call.tool_call_id.startswith("ws_") or action.get("type") not in _SEARCH_ACTIONS:
        return None
    return {"type": "web_search_call", "id": call.tool_call_id, "status": "completed", "action": action}


def _file(part: FilePart) -> Item:
    file_id = proof(part, "file_id")
    if file_id is not None:
        is_image = part.media_type.startswith("image/")
        return {
            "type": "input_image" if is_image else "input_file",
            "file_id": file_id,
            **(_DETAIL if is_image else {}),
        }
    if part.media_type.startswith("image/"):
        return {"type": "input_image", "image_url": request_parts.data_url(part), **_DETAIL}
    if part.data is None:
        return {"type": "input_file", "file_url": part.url}
    return {"type": "input_file", "filename": part.filename or "file.pdf", "file_data": request_parts.data_url(part)}
