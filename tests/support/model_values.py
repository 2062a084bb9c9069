"""Hypothesis strategies for every kind of value of the model, made from the types of their fields."""

from __future__ import annotations

import types
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from typing import Any, Literal, Union, get_args, get_origin

import msgspec
from hypothesis import strategies as st

from turnlog.model import HistoryEvent, Membership, Message, Part, Session, StreamEvent
from turnlog.model.base import Value

Strategy = st.SearchStrategy[Any]

ROOTS: tuple[Any, ...] = (
    Session,
    Message,
    Membership,
    *get_args(Part),
    *get_args(HistoryEvent),
    *get_args(StreamEvent),
)
"""Every kind of value that has a JSON form of its own."""

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
"""Any text that JSON can hold: NUL, line separators, astral characters."""

HUGE = st.integers(-(10**40), 10**40)

JSON: Strategy = st.recursive(
    st.none() | st.booleans() | HUGE | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT | st.just("extra"), inner, max_size=3),
    max_leaves=6,
)

RAW: Strategy = JSON.map(lambda value: msgspec.Raw(msgspec.json.encode(value)))

# Bounds are naive: Hypothesis adds the zone.
TIMES = st.datetimes(datetime(2001, 1, 1), datetime(2099, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001  # `timezones` adds the zone

UNKNOWN_FIELDS = st.dictionaries(st.sampled_from(["extra", "x-new", "ü\0", ""]), RAW, max_size=2)

_SCALARS: dict[Any, Strategy] = {
    str: TEXT,
    int: st.integers(0, 10**15),
    float: st.floats(allow_nan=False, allow_infinity=False),
    bool: st.booleans(),
    bytes: st.binary(max_size=8),
    datetime: TIMES,
    Decimal: st.decimals(-(10**6), 10**6, places=4),
    type(None): st.none(),
    msgspec.Raw: RAW,
    msgspec.UnsetType: st.just(msgspec.UNSET),
    Any: JSON,
}

_made: dict[Any, Strategy] = {}


def values_of(kind: Any) -> Strategy:
    """Values of a type: a struct of the model, a union, a tuple, a mapping or a scalar."""
    if kind not in _made:
        _made[kind] = st.deferred(lambda: _make(kind))
    return _made[kind]


def _make(kind: Any) -> Strategy:
    if kind in _SCALARS:
        return _SCALARS[kind]
    if isinstance(kind, type) and issubclass(kind, Value):
        return _struct(kind)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return st.sampled_from(kind)
    return _ORIGINS[get_origin(kind)](kind)


def _struct(kind: type[Value]) -> Strategy:
    fields = {field.name: field for field in msgspec.structs.fields(kind)}
    required = {name: values_of(field.type) for name, field in fields.items() if field.required}
    optional = {name: values_of(field.type) for name, field in fields.items() if not field.required and name != "extra"}
    return st.fixed_dictionaries(required, optional=optional).map(lambda chosen: kind(**chosen))


def _mapping(kind: Any) -> Strategy:
    return st.dictionaries(TEXT, values_of(get_args(kind)[1]), max_size=2)


def _union(kind: Any) -> Strategy:
    return st.one_of([values_of(option) for option in get_args(kind)])


_ORIGINS: dict[Any, Callable[[Any], Strategy]] = {
    Literal: lambda kind: st.sampled_from(get_args(kind)),
    tuple: lambda kind: st.lists(values_of(get_args(kind)[0]), max_size=2).map(tuple),
    dict: _mapping,
    Union: _union,
    types.UnionType: _union,
}
