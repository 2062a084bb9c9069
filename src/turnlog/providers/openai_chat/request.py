"""A history as the body of a Chat Completions request (R-K22, R-K23, R-K24), for OpenAI and compatible servers.

OpenAI takes no reasoning back here; DeepSeek, Kimi, MiniMax and Qwen do, in fields of their own (`dialects`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from turnlog.model import Message, ReasoningPart, ToolCallPart
from turnlog.providers.base import Conversion, Report, RequestOptions, dialect_of
from turnlog.providers.openai_chat.dialects import DIALECTS, OPENAI, ChatDialect
from turnlog.providers.openai_chat.writer import FILES, ChatWriter
from turnlog.providers.reasoning import is_own, proof
from turnlog.providers.repair import Rules, repair

RULES = Rules(call_id_length=40, tool_name_length=64, files=FILES)


def to_request(messages: Sequence[Message], options: RequestOptions, *, strict: bool = False) -> Conversion:
    """The body of the request that continues a history. Raises as `Provider.to_request` says."""
    report = Report()
    repaired = repair(messages, RULES, options, report)
    named = dialect_of(options)
    dialect = DIALECTS[named] if named else OPENAI
    writer = _Writer(options.model, dialect, report)
    writer.add_system(repaired.system)
    for message in repaired.messages:
        writer.add(message)
    body: dict[str, Any] = {
        "model": options.model,
        "messages": writer.messages,
        **({"tools": [dict(tool) for tool in options.tools]} if options.tools else {}),
        **({dialect.max_tokens_field: options.max_tokens} if options.max_tokens is not None else {}),
        **({"stream": True, "stream_options": {"include_usage": True}} if options.stream else {}),
        **options.extra,
    }
    return report.conversion(body, strict=strict)


class _Writer(ChatWriter):
    """Reasoning goes into the field it came from, or into the dialect's, if this very model made it."""

    def __init__(self, model: str, dialect: ChatDialect, report: Report) -> None:
        super().__init__(model, report, text_lists=dialect.text_lists)
        self._dialect = dialect

    def reasoning_text(self, part: ReasoningPart, message: Message) -> str | None:
        return None

    def reasoning_fields(self, message: Message) -> dict[str, Any]:
        fields: dict[str, Any] = {}
        for part in message.parts:
            if isinstance(part, ReasoningPart):
                self._carry(part, message, fields)
        field, missing = self._dialect.reasoning_field, self._dialect.missing_reasoning
        if field is not None and missing is not None and any(isinstance(part, ToolCallPart) for part in message.parts):
            fields.setdefault(field, missing)
        return fields

    def _carry(self, part: ReasoningPart, message: Message, fields: dict[str, Any]) -> None:
        field = self._field_of(part, message)
        if field is None:
            self.report.lose("reasoning-omitted", message.id, "the API has no place for it", part=part.id)
        elif field == "reasoning_details":
            details = proof(part, "reasoning_details") or [{"type": "reasoning.text", "text": part.text}]
            fields[field] = [*fields.get(field, []), *details]
        else:
            before = f"{fields[field]}\n" if field in fields else ""
            fields[field] = before + part.text

    def _field_of(self, part: ReasoningPart, message: Message) -> str | None:
        """The field for it; None when it is another model's, or was withheld."""
        if not is_own(part, message, None, self.model):
            return None
        if not part.text.strip():
            return "reasoning_details" if proof(part, "reasoning_details") else None
        field = proof(part, "reasoning_field")
        details = proof(part, "reasoning_details")
        return field or ("reasoning_details" if details else self._dialect.reasoning_field)
