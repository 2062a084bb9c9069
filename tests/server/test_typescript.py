"""The page's types are those of the server's schemas."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from turnlog.server.typescript import schema_types

SCHEMA = Path(__file__).parents[2] / "web" / "src" / "api" / "schema.ts"


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
