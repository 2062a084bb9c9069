"""The page's types, made of the server's own schemas (`make schema`).

What the schemas allow becomes what the types allow. A field that may be left out is optional, and never null where null
is what it is when it is left out.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from turnlog.server.app import create_app

_BEGINNING = """/** Made of the server's schemas by `python -m {module}`; not to be edited. */

export type Json = string | number | boolean | null | Json[] | {{ [name: string]: Json }};

export type JsonObject = {{ [name: string]: Json }};
"""

_PLAIN: Final = {
    "string": "string",
    "integer": "number",
    "number": "number",
    "boolean": "boolean",
    "null": "null",
}


def schema_types(schemas: Mapping[str, Mapping[str, Any]], module: str = "turnlog.server.typescript") -> str:
    """TypeScript of OpenAPI's `components.schemas`, one exported type for each, in the order of their names.

    `module` is what made it, which the first line says.
    """
    declarations = [_declaration(name, schemas[name]) for name in sorted(schemas)]
    return "\n".join([_BEGINNING.format(module=module), *declarations])


def _declaration(name: str, schema: Mapping[str, Any]) -> str:
    comment = _comment(schema.get("description"))
    if "properties" not in schema:
        return f"{comment}export type {name} = {_type(schema)};\n"
    required = set(schema.get("required", ()))
    fields = [
        f"  {key}: {_type(field)};\n" if key in required else f"  {key}?: {_type_if_there(field)};\n"
        for key, field in schema["properties"].items()
    ]
    return f"{comment}export interface {name} {{\n{''.join(fields)}}}\n"


def _comment(description: str | None) -> str:
    if not description:
        return ""
    first = " ".join(description.partition("\n\n")[0].split())
    return f"/** {first.replace('*/', '* /')} */\n"


def _type_if_there(schema: Mapping[str, Any]) -> str:
    """Of a field that is left out at its default."""
    choices: list[Mapping[str, Any]] = schema.get("anyOf", [])
    if choices and "default" in schema and schema["default"] is None:
        return _union([choice for choice in choices if choice != {"type": "null"}])
    return _type(schema)


def _type(schema: Mapping[str, Any]) -> str:
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "enum" in schema:
        return " | ".join(json.dumps(value) for value in schema["enum"])
    if "anyOf" in schema:
        return _union(schema["anyOf"])
    kind = schema.get("type")
    if kind == "array":
        return _array(schema)
    if kind == "object":
        values: Mapping[str, Any] | None = schema.get("additionalProperties")
        return f"Record<string, {_type(values)}>" if values else "JsonObject"
    return _PLAIN.get(str(kind), "Json")


def _union(choices: list[Mapping[str, Any]]) -> str:
    return " | ".join(dict.fromkeys(map(_type, choices)))


def _array(schema: Mapping[str, Any]) -> str:
    if "prefixItems" in schema:
        return f"[{', '.join(map(_type, schema['prefixItems']))}]"
    item = _type(schema.get("items") or {})
    return f"({item})[]" if " | " in item else f"{item}[]"


def main() -> None:
    """Write the types of this version's server to the standard output."""
    with tempfile.TemporaryDirectory() as folder:
        app = create_app(Path(folder) / "turnlog.db")
        sys.stdout.write(schema_types(app.openapi()["components"]["schemas"]))


if __name__ == "__main__":
    main()
