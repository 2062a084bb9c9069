"""Checks of plain JSON values: the functions of which `version_checks` builds the check of every part and chunk.

A check takes a value and returns it without unknown keys, or raises `ShapeError`; it never changes its argument. Each
mirrors the zod schema of the same kind that ai 5, 6 and 7 use: what it accepts and what it strips.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple, TypeAlias, cast

from turnlog.errors import ShapeError

Check: TypeAlias = Callable[[Any], Any]
UnknownKeys: TypeAlias = Literal["drop", "keep", "refuse"]
"""What happens to keys that a shape does not name: zod's `object`, `looseObject`, `strictObject`."""

_LARGEST_SAFE_INTEGER = 2**53 - 1


class Field(NamedTuple):
    """One key of a shape."""

    name: str
    check: Check
    required: bool = False


Fields: TypeAlias = Mapping[str, Field]


def any_json(value: Any) -> Any:
    """Any JSON, null too."""
    return value


def never(value: Any) -> Any:
    """A key that must be absent."""
    raise ShapeError("this key may not stand here")


def text(value: Any) -> str:
    """A string."""
    if not isinstance(value, str):
        raise ShapeError(f"expected a string, got {_kind(value)}")
    return value


def flag(value: Any) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise ShapeError(f"expected true or false, got {_kind(value)}")
    return value


def index(value: Any) -> int | float:
    """A whole number from 0 to what JavaScript can count."""
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value // 1:
        raise ShapeError(f"expected a whole number, got {_kind(value)}")
    if not 0 <= value <= _LARGEST_SAFE_INTEGER:
        raise ShapeError("number out of range")
    return value


def one_of(*options: Any) -> Check:
    """One of these strings or booleans."""

    def check(value: Any) -> Any:
        # `1 == True` in Python, but not here.
        if not isinstance(value, str | bool) or value not in options:
            raise ShapeError(f"expected one of {', '.join(map(repr, options))}, got {value!r:.60}")
        return value

    return check


def record(value: Any) -> dict[str, Any]:
    """An object of any JSON, without `__proto__` at any depth."""
    return json_value(_object(value))


def metadata(value: Any) -> dict[str, Any]:
    """Provider metadata: an object of objects."""
    return {key: check_at(key, record, item) for key, item in _object(value).items() if key != "__proto__"}


def texts(value: Any) -> dict[str, str]:
    """An object of strings."""
    return {key: check_at(key, text, item) for key, item in _object(value).items() if key != "__proto__"}


def json_value(value: Any) -> Any:
    """Any JSON whose numbers are finite; as deep as it likes."""
    pending = [value]
    holds_proto = False
    while pending:
        item = pending.pop()
        if isinstance(item, dict):
            fields = cast("dict[str, Any]", item)
            holds_proto = holds_proto or "__proto__" in fields
            pending.extend(fields.values())
        elif isinstance(item, list | tuple):
            pending.extend(cast("list[Any]", item))
        elif isinstance(item, float) and not math.isfinite(item):
            raise ShapeError("expected a finite number")
    return _without_proto(value) if holds_proto else value


def _without_proto(value: Any) -> Any:
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        return {key: _without_proto(item) for key, item in fields.items() if key != "__proto__"}
    return [_without_proto(item) for item in cast("list[Any]", value)] if isinstance(value, list | tuple) else value


def array_of(check: Check) -> Check:
    """A list whose items all pass."""

    def check_items(value: Any) -> list[Any]:
        return [check_at(position, check, item) for position, item in enumerate(_array(value))]

    return check_items


def object_of(fields: Fields, unknown_keys: UnknownKeys = "drop") -> Check:
    """An object with these keys; unknown keys are taken out, kept unchecked, or an error."""
    required = tuple(field.name for field in fields.values() if field.required)

    def check_object(value: Any) -> dict[str, Any]:
        given = _object(value)
        for name in required:
            if name not in given:
                raise ShapeError("this key is missing", json_path=f"$.{name}")
        cleaned: dict[str, Any] = {}
        for name, item in given.items():
            field = fields.get(name)
            if field is not None:
                cleaned[name] = check_at(name, field.check, item)
            elif unknown_keys == "keep":
                cleaned[name] = item
            elif unknown_keys == "refuse":
                raise ShapeError("nobody knows this key", json_path=f"$.{name}")
        return cleaned

    return check_object


def chosen_by(key: str, options: Mapping[str, Check], problem: str) -> Check:
    """The check that belongs to the value of a key."""

    def check(value: Any) -> Any:
        chosen = _object(value).get(key)
        option = options.get(chosen) if isinstance(chosen, str) else None
        if option is None:
            raise ShapeError(f"{problem}: {chosen!r:.60}", json_path=f"$.{key}")
        return option(value)

    return check


def check_at(place: str | int, check: Check, value: Any) -> Any:
    """Check the value at a key or position; a failure names the place."""
    try:
        return check(value)
    except ShapeError as error:
        step = f"[{place}]" if isinstance(place, int) else f".{place}"
        raise ShapeError(error.reason, json_path=f"${step}{error.json_path[1:]}") from None


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ShapeError(f"expected an object, got {_kind(value)}")
    return cast("dict[str, Any]", value)


def _array(value: Any) -> list[Any]:
    if not isinstance(value, list | tuple):
        raise ShapeError(f"expected a list, got {_kind(value)}")
    return cast("list[Any]", value)


_KINDS: dict[type, str] = {
    type(None): "null",
    bool: "true or false",
    int: "a number",
    float: "a number",
    str: "a string",
    list: "a list",
    dict: "an object",
}


def _kind(value: Any) -> str:
    return next((name for kind, name in _KINDS.items() if isinstance(value, kind)), "something else")
