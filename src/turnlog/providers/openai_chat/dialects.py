"""What servers that speak Chat Completions do differently, as one table."""

from __future__ import annotations

import msgspec

from turnlog.providers.base import Dialect


class ChatDialect(msgspec.Struct, frozen=True, kw_only=True):
    """One server's habits."""

    reasoning_field: str | None = None
    """Where a message carries reasoning; None: only where the message came with a field of its own."""
    missing_reasoning: str | None = None
    """What stands there when an answer with tool calls has none; None: the field may be missing."""
    max_tokens_field: str = "max_tokens"
    text_lists: bool = False
    """Whether several texts of a message may be a list of parts."""


OPENAI = ChatDialect(max_tokens_field="max_completion_tokens", text_lists=True)

DIALECTS: dict[Dialect, ChatDialect] = {
    # With thinking on, an answer with tool calls is refused without the field; it may be empty.
    "deepseek": ChatDialect(reasoning_field="reasoning_content", missing_reasoning=""),
    # As DeepSeek, but an empty one counts as missing.
    "kimi": ChatDialect(reasoning_field="reasoning_content", missing_reasoning=" "),
    "minimax": ChatDialect(reasoning_field="reasoning_details", max_tokens_field="max_completion_tokens"),
    "qwen": ChatDialect(reasoning_field="reasoning_content"),
}
