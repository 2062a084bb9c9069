"""The web app's hand-written types say what the server's own schemas say."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, cast

import pytest

from turnlog.server.app import create_app

FOLDER = Path(__file__).parents[2] / "web" / "src" / "api" / "types"
TYPES = "\n".join(path.read_text(encoding="utf-8") for path in sorted(FOLDER.glob("*.ts")))

INTERFACE = re.compile(r"export interface (\w+)(?:<\w+>)?(?: extends (\w+))? \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
FIELD = re.compile(r"^  (\w+)(\??):", re.MULTILINE)
WORDS = re.compile(r"export type (\w+) =\s*((?:\|?\s*\"[\w-]+\"\s*)+);")

OWN = {"Session", "Items"}
"""What has no schema of its own: the common part of two, and lists of anything."""

SENT_WHOLE = {"SyncProgress"}
"""Where fields at their default are sent all the same, though the schema does not require them."""

INTERFACES = {name: (base, body) for name, base, body in INTERFACE.findall(TYPES)}


@pytest.fixture(scope="module")
def schemas(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    app = create_app(tmp_path_factory.mktemp("types") / "turnlog.db")
    return app.openapi()["components"]["schemas"]


def fields_of(name: str) -> dict[str, bool]:
    """Name of each field -> whether it must be there; inherited ones too."""
    base, body = INTERFACES[name]
    inherited = fields_of(base) if base in INTERFACES else {}
    return inherited | {field: not optional for field, optional in FIELD.findall(body)}


@pytest.mark.parametrize("name", sorted(set(INTERFACES) - OWN))
def test_an_interface_has_the_fields_of_its_schema(name: str, schemas: dict[str, Any]) -> None:
    schema = schemas[name]
    fields = fields_of(name)
    assert set(fields) <= set(schema["properties"])
    required = set(schema["properties"] if name in SENT_WHOLE else schema.get("required", ()))
    assert {field for field, must in fields.items() if must} == required & set(fields)
    assert required <= set(fields)


@pytest.mark.parametrize("name", sorted(name for name, _ in WORDS.findall(TYPES)))
def test_a_vocabulary_has_the_words_of_its_schema(name: str, schemas: dict[str, Any]) -> None:
    words = {word for found, body in WORDS.findall(TYPES) if found == name for word in re.findall(r'"([\w-]+)"', body)}
    vocabularies = [set(enum) for enum in _enums(schemas)]
    assert words in vocabularies


def _enums(value: Any) -> list[list[str]]:
    """Every list of allowed words in the schemas, wherever it stands."""
    items: list[Any] = []
    found: list[list[str]] = []
    if isinstance(value, dict):
        mapping = cast("dict[str, Any]", value)
        items = list(mapping.values())
        if isinstance(mapping.get("enum"), list):
            found.append(mapping["enum"])
    elif isinstance(value, list):
        items = cast("list[Any]", value)
    return found + [enum for item in items for enum in _enums(item)]
