"""What turnlog promises to keep (docs/reference/stability.md), as lines of text that can be compared.

`make promises` writes them into `tests/data/promises`, where `tests/test_stability.py` compares them. That a line is
gone is a broken promise; a new line becomes one with the next release, which writes all of them anew.
"""

from __future__ import annotations

import hashlib
import inspect
import sqlite3
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import msgspec

import turnlog
from turnlog.cli import documents
from turnlog.cli.main import cli
from turnlog.server.app import create_app
from turnlog.store import add_sql_views, open_store
from turnlog.store.sqlite.tables import TABLES

FOLDER: Final = Path(__file__).parents[1] / "data" / "promises"

PYTHON_MODULES: Final = ("turnlog", "turnlog.model", "turnlog.errors", "turnlog.chat", "turnlog.providers")
"""Modules whose public names are promised."""


def promises() -> dict[str, list[str]]:
    """The lines of each promise, sorted."""
    makers: dict[str, Callable[[], Iterable[str]]] = {
        "cli": _commands,
        "cli-json": _documents,
        "http": _operations,
        "python": _names,
        "store": _store,
        "parquet": _tables,
    }
    return {name: sorted(set(make())) for name, make in makers.items()}


def _commands() -> Iterator[str]:
    """Commands and their options."""
    import click

    def walk(command: click.Command, name: str) -> Iterator[str]:
        yield name
        for each in command.params:
            if not getattr(each, "hidden", False):
                kind = " ".join(each.opts + each.secondary_opts)
                yield f"{name} {kind if each.param_type_name == 'option' else each.human_readable_name}"
        if isinstance(command, click.Group):
            for below, found in command.commands.items():
                if not found.hidden:
                    yield from walk(found, f"{name} {below}")

    # The commands are imported when they are called.
    context = click.Context(cli, info_name="turnlog")
    for name in cli.list_commands(context):
        found = cli.get_command(context, name)
        assert found is not None
        yield from walk(found, f"turnlog {name}")


def _documents() -> Iterator[str]:
    types = [value for name, value in vars(documents).items() if name.endswith("Document")]
    _, components = msgspec.json.schema_components(types, schema_hook=lambda kind: {"type": kind.__name__})
    yield from _schemas(components)


def _operations() -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder:
        described: dict[str, Any] = create_app(Path(folder) / "turnlog.db").openapi()
    for path, operations in described["paths"].items():
        for method, operation in operations.items():
            name = f"{method.upper()} {path}"
            for each in operation.get("parameters", ()):
                mark = "" if each.get("required") else "?"
                yield f"{name} {each['in']} {each['name']}{mark}: {_type(each.get('schema', {}))}"
            for kind, body in operation.get("requestBody", {}).get("content", {}).items():
                yield f"{name} body {kind}: {_type(body.get('schema', {}))}"
            for status, answer in operation["responses"].items():
                contents: dict[str, Any] = answer.get("content") or {"": {}}
                for kind, body in contents.items():
                    yield f"{name} {status} {kind}: {_type(body.get('schema', {}))}"
    yield from _schemas(described["components"]["schemas"])


def _schemas(components: dict[str, Any]) -> Iterator[str]:
    for name, schema in components.items():
        required = schema.get("required", ())
        for field, each in schema.get("properties", {}).items():
            yield f"{name}.{field}{'' if field in required else '?'}: {_type(each)}"
        if "properties" not in schema:
            yield f"{name}: {_type(schema)}"


def _type(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    for key in ("anyOf", "oneOf", "allOf"):
        if key in schema:
            return " | ".join(sorted({_type(each) for each in schema[key]}))
    if "enum" in schema:
        return " | ".join(sorted(repr(each) for each in schema["enum"]))
    if "const" in schema:
        return repr(schema["const"])
    match schema.get("type"):
        case "array":
            found: dict[str, Any] | bool = schema.get("items") or {}
            return f"[{'any' if isinstance(found, bool) else _type(found)}]"
        case "object" if isinstance(schema.get("additionalProperties"), dict):
            return f"{{{_type(schema['additionalProperties'])}}}"
        case kind:
            return str(kind or "any")


def _names() -> Iterator[str]:
    for module in PYTHON_MODULES:
        found = import_module(module)
        public = getattr(found, "__all__", None) or [name for name, of in vars(found).items() if _is_own(of, module)]
        for name in public:
            yield from _name(f"{module}.{name}", getattr(found, name))


def _is_own(value: object, module: str) -> bool:
    return inspect.isclass(value) and value.__module__ == module and value.__name__[0] != "_"


def _name(name: str, value: object) -> Iterator[str]:
    if not inspect.isclass(value):
        yield f"{name}{_signature(value) if inspect.isfunction(value) else ''}"
        return
    yield name
    for field in getattr(value, "__struct_fields__", None) or getattr(value, "_fields", ()):
        yield f"{name}.{field}"
    for method, found in inspect.getmembers(value, inspect.isfunction):
        if not method.startswith("_") and str(found.__module__).startswith("turnlog"):
            yield f"{name}.{method}{_signature(found)}"


def _signature(function: Callable[..., object]) -> str:
    """Parameters with their kinds and types; an optional one has a question mark, whatever its default is."""
    marks = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    words: list[str] = []
    for each in inspect.signature(function).parameters.values():
        if each.kind is inspect.Parameter.KEYWORD_ONLY and "*" not in words:
            words.append("*")
        optional = "" if each.default is inspect.Parameter.empty else "?"
        words.append(f"{marks.get(each.kind, '')}{each.name}{optional}: {each.annotation}")
    return f"({', '.join(words)}) -> {inspect.signature(function).return_annotation}"


def _store() -> Iterator[str]:
    """The views, and the scripts that bring an older store up to date: a released one never changes."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "turnlog.db"
        with open_store(path, create=True):
            pass
        with closing(sqlite3.connect(path)) as connection:
            add_sql_views(connection)
            query = "SELECT name FROM (SELECT * FROM sqlite_master UNION ALL SELECT * FROM sqlite_temp_master)"
            for (view,) in connection.execute(
                f"{query} WHERE type = 'view' AND name LIKE 'v\\_%' ESCAPE '\\'"
            ).fetchall():
                for _, column, kind, *_ in connection.execute(f"PRAGMA table_info({view})"):
                    yield f"{view}.{column} {kind}".rstrip()
    scripts = sorted((Path(turnlog.__file__).parent / "store" / "migrations").glob("*.sql"))
    for script in scripts:
        yield f"{script.name} {hashlib.sha256(script.read_bytes()).hexdigest()}"


def _tables() -> Iterator[str]:
    for table, columns in TABLES.items():
        for column, kind in columns.items():
            yield f"{table}.{column} {kind}"


def write() -> None:
    """Write the promises of this version."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, lines in promises().items():
        (FOLDER / f"{name}.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    write()
