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


class SdkExtras(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The marks on one message, part or result."""

    metadata: Raw | UnsetType = UNSET
    """A UI message's own metadata."""
    named: bool = False
    """The call was a `tool-<name>` part."""
    ui_part: bool = False
    """The unknown part is a valid UI part."""
    text_output: bool = False
    """The output was a string that happens to be JSON."""
    fields: dict[str, Raw] = {}
    """Keys of a UI part for which the model has no field."""

    def to_metadata(self) -> dict[str, Any]:
        """The canonical `metadata` with these marks; empty where nothing is marked."""
        extras: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(self))
        return {KEY: extras} if extras else {}


class _Metadata(msgspec.Struct, frozen=True):
    aisdk: SdkExtras = SdkExtras()


_decoder = msgspec.json.Decoder(_Metadata)


def sdk_extras_of(metadata: Raw) -> SdkExtras:
    """The extras in a canonical `metadata`; none where the key holds something else."""
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
"""Provider -> its own key -> AI SDK's, as `@ai-sdk/anthropic`, `@ai-sdk/openai` and `@ai-sdk/google` read them back."""

_PROVIDER_KEYS = {name: {theirs: own for own, theirs in keys.items()} for name, keys in _SDK_KEYS.items()}


def to_sdk_keys(provider: str, opaque: Mapping[str, ValueT]) -> dict[str, ValueT] | None:
    """`opaque` under AI SDK's keys; None where the way back would be ambiguous, because it has such a key already."""
    keys = _SDK_KEYS.get(provider)
    if keys is None:
        return dict(opaque)
    if any(theirs in opaque for theirs in keys.values()):
        return None
    return {keys.get(key, key): value for key, value in opaque.items()}


def to_provider_keys(provider: str, metadata: Mapping[str, ValueT]) -> dict[str, ValueT]:
    """AI SDK's `providerMetadata` of one provider under the provider's own keys."""
    keys = _PROVIDER_KEYS.get(provider, {})
    return {keys.get(key, key): value for key, value in metadata.items()}


def provider_of(metadata: ProviderMetadata | UnsetType) -> ProviderData | None:
    """What one provider wants back, of AI SDK's `providerMetadata`; our own entry in it is none of a provider's.

    The model has room for one provider a part. Where several speak, the first is who produced it.
    """
    if metadata is UNSET:
        return None
    name = next((name for name in metadata if name != "turnlog"), None)
    if name is None:
        return None
    opaque = {key: to_plain(value) for key, value in to_provider_keys(name, metadata[name]).items()}
    return ProviderData(name=name, opaque=opaque)
