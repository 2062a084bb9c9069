"""The page's types are those of the server's schemas."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from turnlog.server.typescript import schema_types

ROOT = Path(__file__).parents[2]
SCHEMA = ROOT / "web" / "src" / "api" / "schema.ts"
REFERENCE = ROOT / "docs" / "reference" / "http-api.md"


def test_the_page_has_the_types_of_this_server() -> None:
    """Else: `python -m turnlog.server.typescript > web/src/api/schema.ts`."""
    command = [sys.executable, "-m", "turnlog.server.typescript"]
    made = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert SCHEMA.read_text(encoding="utf-8") == made


@pytest.mark.parametrize(
    ("schema", "made"),
    [
        ({"enum": ["a", "b"]}, 'export type Name = "a" | "b";'),
        ({"type": "array", "items": {"anyOf": [{"type": "integer"}, {"type": "null"}]}}, "(number | null)[];"),
        ({"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}]}, "[string, number];"),
        ({"type": "object", "additionalProperties": {"type": "string"}}, "Record<string, string>;"),
        ({"type": "object"}, "= JsonObject;"),
        ({"$ref": "#/components/schemas/Other"}, "= Other;"),
        ({}, "= Json;"),
        ({"description": "One */ line.\nIts end.\n\nMore.", "type": "string"}, "/** One * / line. Its end. */\nexport"),
    ],
)
def test_a_schema_becomes_a_type(schema: dict[str, object], made: str) -> None:
    assert made in schema_types({"Name": schema})


def test_what_may_be_left_out_is_optional_and_not_null_for_that() -> None:
    nullable = {"anyOf": [{"type": "string"}, {"type": "null"}]}
    properties = {
        "there": nullable,
        "sent": {**nullable, "default": None},
        "left_out": {**nullable, "default": None},
        "counted": {"type": "integer", "default": 0},
    }
    made = schema_types({"Name": {"properties": properties, "required": ["there", "sent"]}})
    assert (
        "export interface Name {\n  there: string | null;\n  sent: string | null;\n  left_out?: string;\n"
        "  counted?: number;\n}\n"
    ) in made


OF_EVERY_PART = {"id": "id?: string", "provider": "provider?: ProviderData", "metadata": "metadata?: JsonObject"}
"""Fields that the reference names once."""


def declared(source: str) -> dict[str, dict[str, str]]:
    """The fields of each interface, and the alternatives of each type as its only field, in a piece of TypeScript."""
    code = re.sub(r"/\*.*?\*/|//[^\n]*", "", source, flags=re.DOTALL)
    found: dict[str, dict[str, str]] = {}
    for name, body in re.findall(r"interface (\w+) \{(.*?)\}", code, re.DOTALL):
        fields = [" ".join(field.split()) for field in body.split(";") if field.strip()]
        found[name] = {re.split(r"\??:", field)[0]: in_order(field) for field in fields}
    for name, body in re.findall(r"type (\w+) =(.*?);", code, re.DOTALL):
        found[name] = {"": in_order(body)}
    return found


def in_order(kind: str) -> str:
    """A type with its alternatives sorted, and all kinds of parts called `Part`."""
    kind = re.sub(r"\(TextPart \|.*?UnknownPart\)", "Part", kind)
    name, colon, alternatives = kind.rpartition(": ")
    return name + colon + "|".join(sorted(each.strip() for each in alternatives.split("|") if each.strip()))


def test_the_reference_has_the_model_as_it_is() -> None:
    page = REFERENCE.read_text().partition("\n## The model\n")[2].partition("\n## ")[0]
    [block] = re.findall(r"```ts\n(.*?)```", page, re.DOTALL)
    described, made = declared(block), declared(SCHEMA.read_text())
    parts = described.pop("Part")[""].split("|")
    assert {"Message", "Origin", "ToolResult", "Usage", *parts} <= set(described)
    for name, found in described.items():
        expected = made[name]
        if name in parts:
            expected = {field: kind for field, kind in expected.items() if OF_EVERY_PART.get(field) != kind}
        assert found == expected, name
    used = {name for fields in described.values() for name in re.findall(r"\b[A-Z]\w+", str(fields))}
    assert used - {"Json", "JsonObject", "Part"} <= set(described)
