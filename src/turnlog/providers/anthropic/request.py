"""A history as the body of an Anthropic Messages request (`POST /v1/messages`; R-K22, R-K25, R-K29).

Results are in the user message right after their calls, thinking keeps its place, and users and assistants
alternate. Sources of the rules are in docs/reference/providers.md.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, cast

from turnlog.arguments import checked
from turnlog.model import (
    Citation,
    DataPart,
    FilePart,
    Message,
    Part,
    ReasoningPart,
    SourceUrlPart,
    TextPart,
    ToolCallPart,
    ToolResult,
)
from turnlog.model.lenient_json import parse_json
from turnlog.providers import request_parts
from turnlog.providers.base import Conversion, Report, RequestOptions, dialect_of
from turnlog.providers.files import FileLimits
from turnlog.providers.repair import RequestRules, repair
from turnlog.providers.request_parts import is_own, proof
from turnlog.providers.unsent import lose_phases, lose_unsent

RULES = RequestRules(
    call_id_characters="a-zA-Z0-9_-",
    tool_name_length=200,
    sendable_data={"tool_reference": "tool_name"},
    begins_with_user=True,
    files=FileLimits(
        file_references=True,
        image_references=True,
        files=frozenset({"application/pdf", "text/plain"}),
        image_bytes=5 * 1024 * 1024,
        file_bytes=32 * 1024 * 1024,
        image_pixels=8000,
        most_images=100,
        many_images=20,
        many_pixels=2000,
    ),
)

DEFAULT_MAX_TOKENS = 32_000
"""The API wants a number; every model of the last two years may write so much."""

_SERVER_CALL = re.compile(r"srvtoolu_[a-zA-Z0-9_]+")
"""Ids of calls that Anthropic itself ran."""

_RESULT_BLOCKS = {
    "web_search": "web_search_tool_result",
    "web_fetch": "web_fetch_tool_result",
    "code_execution": "code_execution_tool_result",
    "bash_code_execution": "bash_code_execution_tool_result",
    "text_editor_code_execution": "text_editor_code_execution_tool_result",
    "tool_search_tool_regex": "tool_search_tool_result",
    "tool_search_tool_bm25": "tool_search_tool_result",
}

Block = dict[str, Any]


@checked
def to_request(messages: Sequence[Message], options: RequestOptions, *, strict: bool = False) -> Conversion:
    """The body of the request that continues a history. Raises as `Provider.to_request` says."""
    report = Report()
    repaired = repair(messages, RULES, options, report)
    writer = _Writer(options, report)
    for message in repaired.messages:
        writer.add(message)
    turns = writer.finished()
    lose_unsent(repaired.messages, turns, report)
    lose_phases(repaired.messages, report)
    system: list[Block] = [_text(text) for text in repaired.system]
    _mark_cached(system, turns, options)
    body: dict[str, Any] = {
        "model": options.model,
        "max_tokens": options.max_tokens or DEFAULT_MAX_TOKENS,
        **({"system": system} if system else {}),
        "messages": turns,
        **({"tools": [dict(tool) for tool in options.tools]} if options.tools else {}),
        **({"stream": True} if options.stream else {}),
        **options.extra,
    }
    return report.conversion(body, strict=strict)


def _mark_cached(system: list[Block], turns: list[dict[str, Any]], options: RequestOptions) -> None:
    if options.cache_control is None:
        return
    for blocks in (system, turns[-1]["content"] if turns else []):
        if blocks:
            blocks[-1]["cache_control"] = dict(options.cache_control)


class _Writer:
    """Writes messages one after another."""

    def __init__(self, options: RequestOptions, report: Report) -> None:
        self._model = options.model
        dialect = dialect_of(options)
        self._takes_unsigned = dialect is not None
        self._providers = frozenset({"anthropic", *((dialect,) if dialect else ())})
        self._report = report
        self._turns: list[dict[str, Any]] = []
        self._last: Message | None = None

    def add(self, message: Message) -> None:
        if message.role == "user":
            self._append("user", [block for part in message.parts for block in _user_blocks(part)], message)
            return
        blocks = [block for part in message.parts for block in self._assistant_blocks(part, message)]
        # Rule A6: an answer that was cut off while thinking is refused.
        while blocks and blocks[-1]["type"] in ("thinking", "redacted_thinking"):
            self._report.mend("trailing-reasoning", message.id, "left out: nothing follows it")
            blocks.pop()
        self._append("assistant", blocks, message)
        calls = [part for part in message.parts if isinstance(part, ToolCallPart) and not part.provider_executed]
        # Rule A5: the next turn begins with all results. What the user says after them joins the same turn (A2).
        self._append("user", [_result_block(call) for call in calls], message)

    def finished(self) -> list[dict[str, Any]]:
        """The turns. An answer to be continued must not end in white space."""
        if self._turns and self._turns[-1]["role"] == "assistant" and self._last is not None:
            block = self._turns[-1]["content"][-1]
            if block["type"] == "text" and block["text"] != block["text"].rstrip():
                block["text"] = block["text"].rstrip()
                self._report.mend("trailing-space", self._last.id, "left out at the end of the request")
        return self._turns

    def _append(self, role: str, blocks: list[Block], message: Message) -> None:
        if not blocks:
            return
        if self._turns and self._turns[-1]["role"] == role:
            if self._turns[-1]["content"][-1]["type"] != "tool_result":
                self._report.mend("merged-messages", message.id, f"sent as one with the {role} message before it")
            self._turns[-1]["content"] += blocks
        else:
            self._turns.append({"role": role, "content": blocks})
        self._last = message

    def _assistant_blocks(self, part: Part, message: Message) -> list[Block]:
        if isinstance(part, ReasoningPart):
            return self._reasoning(part, message)
        if isinstance(part, ToolCallPart):
            return self._call(part, message)
        if isinstance(part, TextPart):
            return [self._answer(part, message)] if part.text.strip() else []
        return []

    def _answer(self, part: TextPart, message: Message) -> Block:
        citations = [_citation(citation) for citation in part.citations]
        if all(citation is not None for citation in citations):
            return {**_text(part.text), **({"citations": citations} if citations else {})}
        request_parts.lose_citations(part, message, self._report)
        return _text(part.text)

    def _reasoning(self, part: ReasoningPart, message: Message) -> list[Block]:
        if is_own(part, message, self._providers, self._model):
            if (data := proof(part, "data")) is not None:
                return [{"type": "redacted_thinking", "data": data}]
            # Anthropic checks signatures; compatible servers give and want none.
            signature = proof(part, "signature")
            if signature is not None or self._takes_unsigned:
                return [{"type": "thinking", "thinking": part.text, "signature": signature or ""}]
        text = request_parts.foreign_reasoning(part, message, self._report)
        return [] if text is None else [_text(text)]

    def _call(self, call: ToolCallPart, message: Message) -> list[Block]:
        if not call.provider_executed:
            return [_call("tool_use", call, request_parts.wrapped_arguments(call, message, self._report))]
        result = _server_result(call)
        if result is None:
            return [_text(request_parts.server_tool_text(call, message, self._report))]
        return [_call("server_tool_use", call, request_parts.arguments_object(call)), result]


def _user_blocks(part: Part) -> list[Block]:
    if isinstance(part, TextPart):
        return [_text(part.text)] if part.text.strip() else []
    return [_file(part)] if isinstance(part, FilePart) else []


def _result_block(call: ToolCallPart) -> Block:
    result = request_parts.result_of(call)
    return {
        "type": "tool_result",
        "tool_use_id": call.tool_call_id,
        "content": _result_content(result),
        "is_error": request_parts.is_failed(result),
    }


def _result_content(result: ToolResult) -> str | list[Block]:
    if all(isinstance(part, TextPart) for part in result.content):
        return request_parts.result_text(result)
    blocks: list[Block] = []
    for part in result.content:
        if isinstance(part, TextPart):
            blocks += [_text(part.text)] if part.text.strip() else []
        elif isinstance(part, FilePart):
            blocks.append(_file(part))
        elif isinstance(part, DataPart):
            blocks.append({"type": part.name, "tool_name": parse_json(bytes(part.data))["tool_name"]})
    return blocks


def _text(text: str) -> Block:
    return {"type": "text", "text": text}


def _file(part: FilePart) -> Block:
    if part.media_type.startswith("image/"):
        return {"type": "image", "source": _source(part)}
    if part.media_type == "text/plain" and part.data is not None:
        data = part.data.decode(errors="replace")
        source: dict[str, Any] = {"type": "text", "media_type": "text/plain", "data": data}
    else:
        source = _source(part)
    return {"type": "document", "source": source, **({"title": part.filename} if part.filename else {})}


def _source(part: FilePart) -> dict[str, Any]:
    file_id = proof(part, "file_id")
    if file_id is not None:
        return {"type": "file", "file_id": file_id}
    if part.data is None:
        return {"type": "url", "url": part.url}
    return {"type": "base64", "media_type": part.media_type, "data": request_parts.encoded(part)}


def _citation(citation: Citation) -> dict[str, Any] | None:
    """A citation of a web search; others name documents by numbers that a history does not keep."""
    index = citation.metadata.get("encrypted_index")
    if not isinstance(index, str) or citation.url is None:
        return None
    return {
        "type": "web_search_result_location",
        "url": citation.url,
        "title": citation.title,
        "cited_text": citation.cited_text or "",
        "encrypted_index": index,
    }


def _call(kind: str, call: ToolCallPart, arguments: dict[str, Any]) -> Block:
    return {"type": kind, "id": call.tool_call_id, "name": call.tool_name, "input": arguments}


def _server_result(call: ToolCallPart) -> Block | None:
    """The result block of a tool that Anthropic ran; None if it cannot be had exactly as it was."""
    kind = _RESULT_BLOCKS.get(call.tool_name)
    if kind is None or not _SERVER_CALL.fullmatch(call.tool_call_id) or not call.results:
        return None
    parts = request_parts.result_of(call).content
    sources = [_search_result(part) for part in parts]
    content: Any = None
    if len(parts) == 1 and isinstance(parts[0], DataPart):
        content = _outcome(parts[0], kind)
    elif kind == "web_search_tool_result" and all(source is not None for source in sources):
        content = sources
    return None if content is None else {"type": kind, "tool_use_id": call.tool_call_id, "content": content}


def _outcome(part: DataPart, kind: str) -> Any:
    """The result of a server tool, if it has the form of that kind of tool: an object with its name, or no page."""
    value: Any = parse_json(bytes(part.data))
    if value == [] and kind == "web_search_tool_result":
        return value
    found = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    named = found.get("type")
    return found if isinstance(named, str) and kind.removesuffix("_tool_result") in named else None


def _search_result(part: Part) -> dict[str, Any] | None:
    opaque = part.provider.opaque if part.provider else {}
    if not isinstance(part, SourceUrlPart) or not isinstance(opaque.get("encrypted_content"), str):
        return None
    known = {name: opaque[name] for name in ("encrypted_content", "page_age") if name in opaque}
    return {"type": "web_search_result", "url": part.url, "title": part.title or "", **known}
