"""Metadata that crosses between AI SDK and the canonical model.

`metadata["aisdk"]` of a canonical message, part or result holds what AI SDK has a field for and the model has not.
`ProviderData.opaque` holds what a provider needs back under the provider's own keys, `providerMetadata[provider]` of
AI SDK the same under AI SDK's keys.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec
from msgspec import UNSET, Raw, UnsetType

from turnlog.aisdk.base import ProviderMetadata
from turnlog.aisdk.codec import to_plain
from turnlog.model import ProviderData

KEY = "aisdk"


class Marks(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The marks on one message, part or result."""

    metadata: Raw | UnsetType = UNSET
    """A UI message's own metadata."""
    named: bool = False
    """The call was a `tool-<name>` part."""
    ui_part: bool = False
    """The unknown part is a UI part, valid as it stands."""
    text_output: bool = False
    """The output was a string that happens to be JSON."""
    fields: dict[str, Raw] = {}
    """Keys of a UI part that nothing else stands for."""

    def to_metadata(self) -> dict[str, Any]:
        """The canonical `metadata` with these marks; empty where nothing is marked."""
        marks: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(self))
        return {KEY: marks} if marks else {}


class _Metadata(msgspec.Struct, frozen=True):
    aisdk: Marks = Marks()


_decoder = msgspec.json.Decoder(_Metadata)


def marks_of(metadata: Raw) -> Marks:
    """The marks in a canonical `metadata`; none where somebody else wrote something else there."""
    try:
        return _decoder.decode(metadata).aisdk
    except msgspec.ValidationError:
        return Marks()


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
