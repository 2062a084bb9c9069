"""A response of Chat Completions, of OpenAI or a compatible server, as an assistant message (R-K28)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from turnlog.model import Message
from turnlog.providers.openai_chat.answers import answer_of

PROVIDER = "openai"


def from_response(body: bytes | str | Mapping[str, Any], *, requested_model: str | None = None) -> Message:
    """The assistant message of a response body. Raises as `Provider.from_response` says."""
    return answer_of(body, PROVIDER, requested_model)
