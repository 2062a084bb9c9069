"""What all values of the AI SDK have in common: frozen, keyword-only, JSON names in camel case, no foreign key lost.

A field that may be missing is `UNSET` when it is; `None` is JSON's null, which only fields of any JSON may hold. So
a required null is always written and an optional one never.
"""

from __future__ import annotations

from typing import Any, TypeAlias, cast

import msgspec
from msgspec import UnsetType

ProviderMetadata: TypeAlias = dict[str, dict[str, Any]]
"""What providers want back, one object a provider."""

OptionalText: TypeAlias = str | UnsetType
OptionalFlag: TypeAlias = bool | UnsetType
OptionalMetadata: TypeAlias = ProviderMetadata | UnsetType

JSON_PROPERTY = "$extra"
"""The JSON name of `extra`: one that nobody uses, so that a foreign key called `extra` is just another one."""


class UIValue(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    omit_defaults=True,
    forbid_unknown_fields=True,
    rename="camel",
):
    """A frozen value; `extra` keeps the keys that it does not know, and they are written back where they stood.

    Fields of any JSON hold plain Python values, or `msgspec.Raw` where the exact JSON is at hand.
    """

    extra: dict[str, Any] = msgspec.field(default={}, name=JSON_PROPERTY)


def type_of(value: Any) -> str:
    """What a JSON object calls itself, or an empty string."""
    kind = cast("dict[str, Any]", value).get("type") if isinstance(value, dict) else None
    return kind if isinstance(kind, str) else ""


class Chunk(UIValue, frozen=True, kw_only=True, tag_field="type"):
    """An event of a stream whose type is one word."""
