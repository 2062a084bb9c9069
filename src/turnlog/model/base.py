"""What every value of the model has in common: frozen, keyword-only, and nothing foreign lost.

A value decodes strictly first (fast); the codec falls back to `extra` when a record holds fields this version
does not know, so that they survive a round trip. Owns no kinds of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec

from turnlog.arguments import check_names

Json: TypeAlias = "str | int | float | bool | list[Json] | dict[str, Json] | None"

RawJson: TypeAlias = msgspec.Raw | msgspec.UnsetType
"""Exact JSON of any value, or UNSET if there is none (JSON's own null is a value)."""


class NamedFields(msgspec.StructMeta):
    """Lets a struct that callers write by hand refuse a name that it does not have with those that it has."""

    # Unseen by type checkers, which would take what it returns for the type of every such struct.
    if not TYPE_CHECKING:

        def __call__(cls, *args: Any, **named: Any) -> Any:
            """Make a struct. Raises TypeError."""
            fields = zip(cls.__struct_fields__, cls.__struct_encode_fields__, strict=True)
            check_names(
                cls.__name__,
                [name for name in named if name != "extra"],
                [name for name, written in fields if written[:1] != "$"],
            )
            return super().__call__(*args, **named)


class Value(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A frozen value that carries fields it does not know in `extra` (field name -> exact JSON).

    The codec writes them back to their place. The field's own JSON name is one that no log uses, so that a
    foreign field called `extra` is just another unknown field.
    """

    extra: dict[str, msgspec.Raw] = msgspec.field(default={}, name="$extra")


# Made once: as an expression in a function, a union of types is made anew at every call.
_RAW_JSON: Final = (msgspec.Raw, msgspec.UnsetType)


def require_json(name: str, value: object) -> None:
    """Raise TypeError for a field of exact JSON that was given plain values."""
    if not isinstance(value, _RAW_JSON):
        raise TypeError(
            f"{name} is exact JSON, not {type(value).__name__}: use to_json(…) of turnlog.model.codec, as in"
            f" {name}=to_json({{…}})"
        )


class ProviderData(Value, frozen=True, kw_only=True):
    """What a provider needs to take a message or part back unchanged.

    `opaque` is the provider's own JSON: thinking signatures, encrypted content, item ids, reasoning details.
    It is only ever sent back to the same provider and model.
    """

    name: str
    model: str | None = None
    opaque: dict[str, Any] = {}


class BlobRef(Value, frozen=True, kw_only=True):
    """A large or binary content that lives outside the message body, by the SHA-256 of its bytes."""

    sha256: str
    size: int
    """Bytes of the whole content (UTF-8 for text)."""
    media_type: str | None = None


def field_default(field: msgspec.structs.FieldInfo) -> Any:
    """The default of a field, made if it is made by a factory; `msgspec.NODEFAULT` for a required one."""
    return field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()
