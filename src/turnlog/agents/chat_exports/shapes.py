"""What the fields of a conversation are: one of another kind is named, for nothing in it is shown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Final, TypeAlias, cast

from turnlog.agents.decoding import LineContext

Shape: TypeAlias = "type | Mapping[str, Shape] | list[Shape]"
"""A type; fields of an object, `*` for any name; what each item of a list is. Null may stand for everything."""

ANY_NAME: Final = "*"

_MOST_REPORTED: Final = 100
"""Of one conversation: an export that is wrong throughout is not listed node by node."""

_NAMES: Final = {
    dict: "an object",
    list: "a list",
    str: "a text",
    bool: "a truth value",
    int: "a number",
    float: "a number",
}


def report_others(context: LineContext, conversation: Mapping[str, Any], shape: Shape) -> None:
    """Report what is of another kind than the shape says, each with its place."""
    for place, found, wanted in islice(_others(conversation, shape, "$"), _MOST_REPORTED):
        context.report(f"{_NAMES[found]} where {_NAMES[wanted]} belongs: it is not shown", json_path=place)


def _others(value: object, shape: Shape, place: str) -> Iterator[tuple[str, type, type]]:
    """The place of each such value, its type and the one that belongs there."""
    if value is None:
        return
    wanted = shape if isinstance(shape, type) else list if isinstance(shape, list) else dict
    if not isinstance(value, wanted):
        yield place, type(value), wanted
    elif isinstance(shape, list):
        for number, item in enumerate(cast("list[Any]", value)):
            yield from _others(item, shape[0], f"{place}[{number}]")
    elif isinstance(shape, Mapping):
        fields = cast("dict[str, Any]", value)
        for name in fields if ANY_NAME in shape else shape.keys() & fields.keys():
            yield from _others(fields[name], shape.get(name, shape.get(ANY_NAME, dict)), f"{place}.{name}")
