"""The words of providers in AI SDK, where they differ from those in the providers' own APIs.

What a provider needs back is `ProviderData.opaque` in its own words, and `providerMetadata[provider]` in AI SDK's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

ValueT = TypeVar("ValueT")

_SDK_WORDS: dict[str, dict[str, str]] = {
    "anthropic": {"data": "redactedData"},
    "openai": {"id": "itemId", "encrypted_content": "reasoningEncryptedContent"},
    "google": {"thought_signature": "thoughtSignature"},
}
"""Provider -> its own word -> AI SDK's."""

_OWN_WORDS = {name: {theirs: own for own, theirs in words.items()} for name, words in _SDK_WORDS.items()}


def to_sdk_words(provider: str, opaque: Mapping[str, ValueT]) -> dict[str, ValueT] | None:
    """`opaque` in AI SDK's words; None where it could not be turned back, which only foreign words bring about."""
    words = _SDK_WORDS.get(provider)
    if words is None:
        return dict(opaque)
    if any(theirs in opaque for theirs in words.values()):
        return None
    return {words.get(word, word): value for word, value in opaque.items()}


def to_own_words(provider: str, metadata: Mapping[str, ValueT]) -> dict[str, ValueT]:
    """AI SDK's `providerMetadata` of one provider in the provider's own words."""
    words = _OWN_WORDS.get(provider, {})
    return {words.get(word, word): value for word, value in metadata.items()}
