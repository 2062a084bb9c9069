"""Whose reasoning it is, and what its provider needs to take it back.

Thinking, signatures and encrypted content go only to the model that made them; any other model reads the text, where
it stood. The names of what an agent's log keeps in `ProviderData.opaque` differ; `proof` knows them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from turnlog.model import Message, Part, ProviderData, ReasoningPart
from turnlog.providers.base import same_model

_SPELLINGS: dict[str, tuple[str, ...]] = {
    "signature": ("signature",),
    "data": ("data", "redactedData"),
    "id": ("id", "itemId"),
    "encrypted_content": ("encrypted_content", "reasoningEncryptedContent"),
    "thought_signature": ("thought_signature", "thoughtSignature"),
    "reasoning_details": ("reasoning_details",),
    "reasoning_field": ("reasoning_field",),
    "format": ("format",),
    "phase": ("phase",),
    "summary": ("summary",),
}
"""Our name for what a provider wants back -> the API's own and the AI SDK's."""

REASONING_FIELDS = ("reasoning_content", "reasoning", "reasoning_text")
"""Where servers that speak Chat Completions put an answer's reasoning."""

_FORMATS: tuple[tuple[str, frozenset[str]], ...] = (
    ("anthropic", frozenset({"anthropic", "openrouter"})),
    ("openai", frozenset({"openai", "azure", "openrouter"})),
    ("azure", frozenset({"openai", "azure", "openrouter"})),
    ("google", frozenset({"google", "gemini", "vertex", "googleVertex", "openrouter"})),
    ("xai", frozenset({"openrouter"})),
)
"""How the format of a proof begins (`anthropic`, `openai-responses-v1`) -> the providers that give such ones."""

_UNTOLD = "unknown"
"""The name of a provider where a log has a proof and does not tell whose."""

_PROOFS = ("signature", "data", "encrypted_content", "thought_signature", "reasoning_details")


def provider_of(part: Part, message: Message) -> ProviderData | None:
    """Who made a part, as far as the log tells."""
    return part.provider or message.provider


def is_own(part: Part, message: Message, providers: frozenset[str] | None, model: str) -> bool:
    """Whether a part was made by this very model, at one of these providers (None: at any).

    A part without a provider's mark is known by the message's model alone; without any model it is foreign. The format
    of a proof says more than the name beside it, which may be that of whoever ran the model for a router.
    """
    provider = provider_of(part, message)
    if provider is not None and providers is not None and not _is_of(provider, providers):
        return False
    maker = (part.provider.model if part.provider else None) or message.model
    if maker is None and provider is not None:
        maker = provider.model
    return maker is not None and same_model(maker, model)


def _is_of(provider: ProviderData, providers: frozenset[str]) -> bool:
    told = provider.opaque.get("format")
    known = next((names for begin, names in _FORMATS if isinstance(told, str) and told.startswith(begin)), None)
    if known is not None:
        return bool(known & providers)
    return provider.name in providers or provider.name == _UNTOLD


def proof(part: Part, name: str) -> Any:
    """What the provider gave with a part under this name; None when it gave nothing, or what it never gives."""
    opaque = part.provider.opaque if part.provider else {}
    fits = _FITTING.get(name, _is_text)
    return next((opaque[spelling] for spelling in _SPELLINGS[name] if fits(opaque.get(spelling))), None)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and value != ""


def _is_details(value: Any) -> bool:
    return isinstance(value, list) and value != [] and all(isinstance(item, dict) for item in cast("list[Any]", value))


def _is_field(value: Any) -> bool:
    return value in REASONING_FIELDS


_FITTING: dict[str, Callable[[Any], bool]] = {"reasoning_details": _is_details, "reasoning_field": _is_field}


def has_proof(part: Part) -> bool:
    """Whether a part without text still means something to its provider."""
    return any(proof(part, name) is not None for name in _PROOFS)


def as_text(part: ReasoningPart) -> str:
    """Reasoning for a model that did not make it."""
    return f"<thinking>\n{part.text}\n</thinking>"
