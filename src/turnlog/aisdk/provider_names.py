"""The words of providers in AI SDK, where they differ from those in the providers' own APIs.

What a provider needs back is `ProviderData.opaque` in its own words, and `providerMetadata[provider]` in AI SDK's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from msgspec import UNSET, UnsetType

from turnlog.aisdk.base import ProviderMetadata
from turnlog.aisdk.building import to_plain
from turnlog.model import ProviderData

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


def provider_of(metadata: ProviderMetadata | UnsetType) -> ProviderData | None:
    """What one provider wants back, of AI SDK's `providerMetadata`; our own entry in it is none of a provider's.

    The model has room for one provider a part. Where several speak, the first is who produced it.
    """
    if metadata is UNSET:
        return None
    name = next((name for name in metadata if name != "turnlog"), None)
    if name is None:
        return None
    opaque = {word: to_plain(value) for word, value in to_own_words(name, metadata[name]).items()}
    return ProviderData(name=name, opaque=opaque)
