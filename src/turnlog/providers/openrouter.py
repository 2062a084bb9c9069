"""A history as the body of an OpenRouter request (R-K22, R-K23, R-K24): Chat Completions with `reasoning_details`.

A model gets its own reasoning back as details, with what proves it; another model's becomes text in its place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import msgspec

from turnlog.arguments import checked
from turnlog.model import Message, Part, ReasoningPart
from turnlog.providers.base import Conversion, Provider, Report, RequestOptions
from turnlog.providers.openai_chat.request import FILES, ChatWriter, chat_body
from turnlog.providers.openai_chat.response import ChunkAssembler, answer_of
from turnlog.providers.repair import RequestRules, repair
from turnlog.providers.request_parts import foreign_reasoning, is_own, proof
from turnlog.providers.unsent import lose_phases, lose_unsent

RULES = RequestRules(
    call_id_characters="a-zA-Z0-9_-",
    call_id_length=40,
    tool_name_length=64,
    files=msgspec.structs.replace(
        FILES, file_addresses=True, file_references=False, image_bytes=5 * 1024 * 1024, most_images=100
    ),
)
"""The strictest of the providers that it forwards to: which one answers is not known beforehand."""

_PROVIDERS = frozenset({"openrouter"})


@checked
def to_request(messages: Sequence[Message], options: RequestOptions, *, strict: bool = False) -> Conversion:
    """The body of the request that continues a history. Raises as `Provider.to_request` says."""
    report = Report()
    repaired = repair(messages, RULES, options, report)
    writer = _Writer(options.model, report, text_lists=True)
    writer.add_system(repaired.system)
    for message in repaired.messages:
        writer.add(message)
    lose_unsent(repaired.messages, writer.messages, report)
    lose_phases(repaired.messages, report)
    _mark_cached(writer.messages, options)
    return report.conversion(chat_body(writer.messages, options, "max_tokens"), strict=strict)


def _mark_cached(messages: list[dict[str, Any]], options: RequestOptions) -> None:
    """Where it is asked for, and Claude answers: at the end of the system prompt and of the conversation."""
    if options.cache_control is None or "claude" not in options.model:
        return
    last = next((message for message in reversed(messages) if message["role"] in ("user", "tool")), None)
    for message in (*[message for message in messages[:1] if message["role"] == "system"], *([last] if last else [])):
        content = message["content"]
        parts: list[dict[str, Any]] = [{"type": "text", "text": content}] if isinstance(content, str) else content
        parts[-1]["cache_control"] = dict(options.cache_control)
        message["content"] = parts


class _Writer(ChatWriter):
    def reasoning_text(self, part: ReasoningPart, message: Message) -> str | None:
        if is_own(part, message, _PROVIDERS, self.model):
            return None
        return foreign_reasoning(part, message, self.report)

    def reasoning_fields(self, message: Message) -> dict[str, Any]:
        """Details are on reasoning, and for some models also on their calls; each is sent once."""
        details: list[dict[str, Any]] = []
        for part in message.parts:
            if is_own(part, message, _PROVIDERS, self.model):
                details += [detail for detail in _details_of(part) if detail not in details]
        return {"reasoning_details": details} if details else {}


def _is_sealed(facts: dict[str, Any]) -> bool:
    """Whether what an agent calls a signature is the whole thought, sealed, as OpenAI gives it."""
    return str(facts.get("format", "")).startswith(("openai", "azure", "xai"))


def _details_of(part: Part) -> list[dict[str, Any]]:
    whole = proof(part, "reasoning_details")
    if whole is not None:
        return whole
    if not isinstance(part, ReasoningPart):
        return []
    facts = {name: value for name in ("id", "format") if (value := proof(part, name)) is not None}
    signature = proof(part, "signature")
    sealed = proof(part, "data") or proof(part, "encrypted_content") or (signature if _is_sealed(facts) else None)
    if sealed is not None:
        summary = {"type": "reasoning.summary", "summary": part.text, **facts}
        return [*([summary] if part.text.strip() else []), {"type": "reasoning.encrypted", "data": sealed, **facts}]
    signed = {"signature": signature} if signature is not None else {}
    return [{"type": "reasoning.text", "text": part.text, **signed, **facts}]


SERVED_BY = "openrouter"


@checked
def from_response(body: bytes | str | Mapping[str, Any], *, requested_model: str | None = None) -> Message:
    """The assistant message of a response body. Raises as `Provider.from_response` says."""
    return answer_of(body, SERVED_BY, requested_model)


PROVIDER = Provider(
    name="openrouter",
    to_request=to_request,
    from_response=from_response,
    assembler=partial(ChunkAssembler, SERVED_BY),
)
