"""A client that knows nothing but the API's schema reads what the API answers (R-C17)."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import msgspec
import pytest
from starlette.testclient import TestClient

from turnlog.server import create_app

NAMES = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}


def code_of(schemas: dict[str, Any]) -> str:
    """Python classes for the schemas, one each, that refuse any field that is not described."""
    tags = dict(tags_of(schemas))
    code = [
        "from __future__ import annotations",
        "from typing import Any, Literal",
        "from msgspec import UNSET, Struct, UnsetType",
    ]
    for name, schema in schemas.items():
        if "properties" not in schema:
            code.append(f"{name} = {type_of(schema)}")
            continue
        field, value = tags.get(name, ("", ""))
        tag = f", tag_field={field!r}, tag={value!r}" if field else ""
        code.append(f"class {name}(Struct, forbid_unknown_fields=True, kw_only=True{tag}):")
        for key, inner in schema["properties"].items():
            unset = "" if key in schema.get("required", ()) else " | UnsetType = UNSET"
            code.append("    pass" if key == field else f"    {key}: {type_of(inner)}{unset}")
    return "\n".join(code)


def tags_of(schemas: dict[str, Any]) -> Iterator[tuple[str, tuple[str, str]]]:
    """Schema -> the field and the value of it that distinguish it from the others of a union."""
    for found in objects_in(schemas):
        for value, reference in found.get("discriminator", {}).get("mapping", {}).items():
            yield reference.rpartition("/")[2], (found["discriminator"]["propertyName"], value)


def objects_in(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield cast("dict[str, Any]", value)
        value = list(cast("dict[str, Any]", value).values())
    for inner in cast("list[Any]", value) if isinstance(value, list) else ():
        yield from objects_in(inner)


def type_of(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        return schema["$ref"].rpartition("/")[2]
    if "anyOf" in schema:
        return " | ".join(dict.fromkeys(type_of(each) for each in schema["anyOf"]))
    if "enum" in schema:
        return f"Literal[{', '.join(map(json.dumps, schema['enum']))}]"
    if schema.get("type") == "array":
        if "prefixItems" in schema:
            return f"tuple[{', '.join(map(type_of, schema['prefixItems']))}]"
        return f"list[{type_of(schema.get('items', {}))}]"
    if schema.get("type") == "object":
        inner: dict[str, Any] | bool = schema.get("additionalProperties", True)
        return f"dict[str, {'Any' if isinstance(inner, bool) else type_of(inner)}]"
    return NAMES.get(schema.get("type", ""), "Any")


@pytest.fixture(scope="module")
def models(library: Path) -> Iterator[ModuleType]:
    app = create_app(library)
    module = ModuleType("models_of_the_api")
    sys.modules[module.__name__] = module
    try:
        exec(code_of(app.openapi()["components"]["schemas"]), vars(module))
        yield module
    finally:
        del sys.modules[module.__name__]
        app.state.context.close()


@pytest.mark.parametrize(
    ("address", "answer"),
    [
        ("/api/sessions", "SessionPage"),
        ("/api/sessions/plain:main", "SessionResponse"),
        ("/api/sessions/plain:main/outline", "OutlineResponse"),
        ("/api/sessions/plain:main/window", "WindowPage"),
        ("/api/messages/m2", "MessageResponse"),
        ("/api/tool-calls", "ToolCallPage"),
        ("/api/usage", "UsageReport"),
        ("/api/search?q=the", "SearchResponse"),
        ("/api/status", "StatusResponse"),
    ],
)
def test_what_is_answered_is_what_the_schema_says(
    models: ModuleType, client: TestClient, address: str, answer: str
) -> None:
    """R-C17: sessions, messages, usage and tool calls, and not a field more."""
    read = msgspec.json.decode(client.get(address).content, type=getattr(models, answer))
    assert json.loads(msgspec.json.encode(read)) == client.get(address).json()
