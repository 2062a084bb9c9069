"""The JSON Schema describes what the codec writes: checked with a reader of the keywords that the schema uses."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any, cast

import msgspec
import pytest
from hypothesis import given, settings

from support.model_values import ROOTS, values_of
from support.profiles import examples
from turnlog.model import Message, TextPart, UnknownPart
from turnlog.model.base import Value
from turnlog.model.codec import encode, json_schema

SCHEMA = json_schema()

NOTES = frozenset({"title", "description", "default", "discriminator", "format"})
"""Keywords that say nothing about whether a document is valid."""

TYPES: dict[str, Callable[[Any], bool]] = {
    "object": lambda found: isinstance(found, dict),
    "array": lambda found: isinstance(found, list),
    "string": lambda found: isinstance(found, str),
    "integer": lambda found: isinstance(found, int) and not isinstance(found, bool),
    "number": lambda found: isinstance(found, int | float) and not isinstance(found, bool),
    "boolean": lambda found: isinstance(found, bool),
    "null": lambda found: found is None,
}


def faults(schema: dict[str, Any], document: Any, path: str = "$") -> list[str]:
    """Where the document breaks the schema; raises KeyError for a keyword that is not read here."""
    found: list[str] = []
    for keyword, rule in schema.items():
        if keyword not in NOTES:
            found += CHECKS[keyword](rule, document, path)
    return found


def _type(rule: str, document: Any, path: str) -> list[str]:
    return [] if TYPES[rule](document) else [f"{path}: not of type {rule}"]


def _properties(rule: dict[str, Any], document: Any, path: str) -> list[str]:
    present = [name for name in rule if isinstance(document, dict) and name in document]
    return [fault for name in present for fault in faults(rule[name], document[name], f"{path}.{name}")]


def _required(rule: list[str], document: Any, path: str) -> list[str]:
    return [f"{path}: no {name}" for name in rule if isinstance(document, dict) and name not in document]


def _items(rule: dict[str, Any], document: Any, path: str) -> list[str]:
    items = cast("list[Any]", document) if isinstance(document, list) else []
    return [fault for index, item in enumerate(items) for fault in faults(rule, item, f"{path}[{index}]")]


def _any_of(rule: list[dict[str, Any]], document: Any, path: str) -> list[str]:
    attempts = [faults(option, document, path) for option in rule]
    return [] if not all(attempts) else [f"{path}: none of {len(rule)}", *min(attempts, key=len)]


def _encoding(rule: str, document: Any, path: str) -> list[str]:
    assert rule == "base64"
    if isinstance(document, str):
        try:
            base64.b64decode(document, validate=True)
        except ValueError:
            return [f"{path}: not base64"]
    return []


CHECKS: dict[str, Callable[[Any, Any, str], list[str]]] = {
    "$ref": lambda rule, document, path: faults(SCHEMA["$defs"][rule.removeprefix("#/$defs/")], document, path),
    "type": _type,
    "properties": _properties,
    "required": _required,
    "items": _items,
    "anyOf": _any_of,
    "enum": lambda rule, document, path: [] if document in rule else [f"{path}: {document} is none of {rule}"],
    "contentEncoding": _encoding,
}


@pytest.mark.parametrize("kind", ROOTS, ids=lambda kind: kind.__name__)
def test_what_is_written_is_valid(kind: type[Value]) -> None:
    @settings(max_examples=examples(30))
    @given(values_of(kind))
    def check(value: Value) -> None:
        assert faults(SCHEMA["$defs"][kind.__name__], msgspec.json.decode(encode(value))) == []

    check()


def test_what_this_version_does_not_know_is_valid_where_it_may_be() -> None:
    unknown = UnknownPart(kind="hologram", data=msgspec.Raw(b'{"type":"hologram"}'))
    message = Message(id="m", role="user", parts=(TextPart(text="x", extra={"new": msgspec.Raw(b"1")}), unknown))
    assert faults(SCHEMA["$defs"]["Message"], msgspec.json.decode(encode(message))) == []


@pytest.mark.parametrize(
    ("document", "fault"),
    [
        ({"id": "m"}, "$: no role"),
        ({"id": "m", "role": "wizard"}, "$.role: wizard is none of"),
        ({"id": 7, "role": "user"}, "$.id: not of type string"),
        ({"id": "m", "role": "user", "parts": [{"type": "text", "text": 1}]}, "$.parts[0]: none of 8"),
    ],
)
def test_what_is_wrong_is_not_valid(document: Any, fault: str) -> None:
    """R-S1: the schema can say no."""
    assert faults(SCHEMA["$defs"]["Message"], document)[0].startswith(fault)


def test_every_definition_that_is_named_is_there_and_described() -> None:
    for name, definition in SCHEMA["$defs"].items():
        assert definition.get("description"), name
        assert "$extra" not in definition.get("properties", {}), name
    assert {kind.__name__ for kind in ROOTS} <= set(SCHEMA["$defs"])
