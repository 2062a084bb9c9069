"""What all values of the AI SDK have in common: frozen, keyword-only, JSON names in camel case, no unknown key lost.

A field that may be missing is `UNSET` when it is; `None` is JSON's null, which only fields of any JSON may hold. So
a required null is always written and an optional one never.

The structs hold what all versions know together. What a version lacks is an annotation of the field (`Since`,
`InStates`) or on the class (`feature`); `turnlog.aisdk.checks` makes the checks of every version from these.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Final, NamedTuple, TypeAlias, cast

import msgspec
from msgspec import UnsetType

ProviderMetadata: TypeAlias = dict[str, dict[str, Any]]
"""What providers want back, one object a provider."""

OptionalText: TypeAlias = str | UnsetType
OptionalFlag: TypeAlias = bool | UnsetType
OptionalMetadata: TypeAlias = ProviderMetadata | UnsetType

JSON_PROPERTY = "$extra"
"""The JSON name of `extra`: one that nobody uses, so that an unknown key called `extra` is like any other."""


class Since(NamedTuple):
    """Annotation of a field: releases without this feature do not know it."""

    feature: str
    """A key of `versions.FEATURES`."""
    validated: int | None = None
    """The first major version that checks the field, where that is not the first one with the feature."""
    values: Mapping[str, str] = MappingProxyType({})
    """Single values of the field that came with a feature of their own."""


class InStates(NamedTuple):
    """Annotation of a field of a tool part or its approval: where it belongs. A field may have several of them.

    In other states the validators take the field out, or refuse the part (`REFUSED_ELSEWHERE`).
    """

    states: tuple[str, ...]
    required: bool = False
    type: Any = None
    """What the field must be in these states, where that is less than its own type."""
    since: Since | None = None
    """Which releases know it in these states."""


class CheckedAs(NamedTuple):
    """Annotation of a field: validators accept less than it can hold."""

    type: Any


class Without(NamedTuple):
    """Annotation of a field with parts in it: fields that these have only elsewhere."""

    names: tuple[str, ...]


REFUSED_ELSEWHERE: Final = "refused elsewhere"
"""Annotation beside `InStates`: in any other state the field is an error."""

STRIPPED: Final = "stripped"
"""Annotation of a field that streams put on a part and every validator takes out."""


class UIValue(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    omit_defaults=True,
    forbid_unknown_fields=True,
    rename="camel",
):
    """A frozen value; `extra` keeps the keys that it does not know, and they are written back.

    Fields of any JSON hold plain Python values, or `msgspec.Raw` where the exact JSON is at hand.
    """

    feature: ClassVar[str] = "base"
    """The key of `versions.FEATURES` that brought this kind of value."""

    extra: dict[str, Any] = msgspec.field(default={}, name=JSON_PROPERTY)


def type_of(value: Any) -> str:
    """What a JSON object calls itself, or an empty string."""
    kind = cast("dict[str, Any]", value).get("type") if isinstance(value, dict) else None
    return kind if isinstance(kind, str) else ""


class Chunk(UIValue, frozen=True, kw_only=True, tag_field="type"):
    """An event of a stream whose type is one word."""
