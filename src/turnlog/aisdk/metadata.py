"""Metadata exchanged between the AI SDK and the canonical model.

`metadata["aisdk"]` of a canonical message, part or result has what the AI SDK has a field for and the model has not.
`ProviderData.opaque` has what a provider requires in later requests, under the provider's own keys;
`providerMetadata[provider]` of the AI SDK has the same under the AI SDK's keys.
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


class SdkExtras(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The AI SDK's extra facts about one message, part or result."""

    metadata: Raw | UnsetType = UNSET
    """A UI message's own metadata."""
    named: bool = False
    """The call was a `tool-<name>` part."""
    ui_part: bool = False
    """The unknown part is a valid UI part."""
    text_output: bool = False
    """The output was a string that happens to contain JSON."""
    fields: dict[str, Raw] = {}
    """Keys of a UI part for which the model has no field."""

    def to_metadata(self) -> dict[str, Any]:
        """The canonical `metadata` with these facts; empty if there are none."""
        extras: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(self))
        return {KEY: extras} if extras else {}


class _Metadata(msgspec.Struct, frozen=True):
    aisdk: SdkExtras = SdkExtras()


_decoder = msgspec.json.Decoder(_Metadata)


def sdk_extras_of(metadata: Raw) -> SdkExtras:
    """The extras in a canonical `metadata`; empty if the key has another type."""
    try:
        return _decoder.decode(metadata).aisdk
    except msgspec.ValidationError:
        return SdkExtras()


ValueT = TypeVar("ValueT")

_SDK_KEYS: dict[str, dict[str, str]] = {
    "anthropic": {"data": "redactedData"},
    "openai": {"id": "itemId", "encrypted_content": "reasoningEncryptedContent"},
    "google": {"thought_signature": "thoughtSignature"},
}
"""Provider -> its own key -> the AI SDK's key, as `@ai-sdk/anthropic`, `@ai-sdk/openai` and `@ai-sdk/google` read
it."""

_PROVIDER_KEYS = {name: {theirs: own for own, theirs in keys.items()} for name, keys in _SDK_KEYS.items()}


def to_sdk_keys(provider: str, opaque: Mapping[str, ValueT]) -> dict[str, ValueT] | None:
    """`opaque` with the AI SDK's keys; None if it has such a key already, which would make the inverse ambiguous."""
    keys = _SDK_KEYS.get(provider)
    if keys is None:
        return dict(opaque)
    if any(theirs in opaque for theirs in keys.values()):
        return None
    return {keys.get(key, key): value for key, value in opaque.items()}


def to_provider_keys(provider: str, metadata: Mapping[str, ValueT]) -> dict[str, ValueT]:
    """The AI SDK's `providerMetadata` of one provider with the provider's own keys."""
    keys = _PROVIDER_KEYS.get(provider, {})
    return {keys.get(key, key): value for key, value in metadata.items()}


def provider_of(metadata: ProviderMetadata | UnsetType) -> ProviderData | None:
    """The first provider's entry in the AI SDK's `providerMetadata`; turnlog's own entry does not count.

    The model keeps one provider per part. If there are several, the first one produced the part.
    """
    if metadata is UNSET:
        return None
    name = next((name for name in metadata if name != "turnlog"), None)
    if name is None:
        return None
    opaque = {key: to_plain(value) for key, value in to_provider_keys(name, metadata[name]).items()}
    return ProviderData(name=name, opaque=opaque)
