"""The base of all AI SDK values: frozen, keyword-only, JSON names in camel case, unknown keys kept.

An optional field without a value is `UNSET`; `None` is JSON's null, which only fields of any JSON may have. So a
required null is always written and an optional one never.

The structs have the fields of all versions. What a version lacks is an annotation of the field (`Since`, `InStates`) or
of the class (`feature`), from which `turnlog.aisdk.checks` makes the checks of every version.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Final, NamedTuple, TypeAlias, cast

import msgspec
from msgspec import UnsetType

ProviderMetadata: TypeAlias = dict[str, dict[str, Any]]
"""Provider metadata: one object per provider, which it needs back in later requests."""

OptionalText: TypeAlias = str | UnsetType
OptionalFlag: TypeAlias = bool | UnsetType
OptionalMetadata: TypeAlias = ProviderMetadata | UnsetType

JSON_PROPERTY = "$extra"
"""The JSON name of `extra`. Nothing else has it, so an unknown key named `extra` is like any other."""


class Since(NamedTuple):
    """Annotation of a field: releases without this feature do not know it."""

    feature: str
    """A key of `versions.FEATURES`."""
    validated: int | None = None
    """The first major version that checks the field, if that is later than the feature."""
    values: Mapping[str, str] = MappingProxyType({})
    """Values of the field that came with their own feature."""


class InStates(NamedTuple):
    """Annotation of a field of a tool part or its approval: the states that have it. A field may have several of them.

    In other states validators remove the field or refuse the part (`REFUSED_ELSEWHERE`).
    """

    states: tuple[str, ...]
    required: bool = False
    type: Any = None
    """The type of the field in these states, if it is narrower than the declared one."""
    since: Since | None = None
    """The feature with which the field came in these states."""


class CheckedAs(NamedTuple):
    """Annotation of a field: validators accept only part of what its type allows."""

    type: Any


class Without(NamedTuple):
    """Annotation of a field that contains parts: fields that parts may not have there."""

    names: tuple[str, ...]


REFUSED_ELSEWHERE: Final = "refused elsewhere"
"""Annotation next to `InStates`: in any other state the field is an error."""

STRIPPED: Final = "stripped"
"""Annotation of a field that streams set on a part and every validator removes."""


class UIValue(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    omit_defaults=True,
    forbid_unknown_fields=True,
    rename="camel",
):
    """A frozen value. `extra` keeps unknown keys, which are written back.

    Fields of any JSON contain plain Python values, or `msgspec.Raw` where the exact JSON is available.
    """

    feature: ClassVar[str] = "base"
    """The key of `versions.FEATURES` for this kind of value."""

    extra: dict[str, Any] = msgspec.field(default={}, name=JSON_PROPERTY)


def type_of(value: Any) -> str:
    """The `type` of a JSON object, or an empty string."""
    kind = cast("dict[str, Any]", value).get("type") if isinstance(value, dict) else None
    return kind if isinstance(kind, str) else ""


class Chunk(UIValue, frozen=True, kw_only=True, tag_field="type"):
    """An event of a stream with a fixed type."""
