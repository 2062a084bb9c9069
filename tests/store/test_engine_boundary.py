"""SQL is in the engines alone, so that an engine can be added without a change to what reads a store."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import turnlog

SOURCE = Path(turnlog.__file__).parent

ENGINE = (
    "store/sqlite",  # the queries
    "store/writing",  # what folds found, and native sessions, as rows
    "store/reconcile",  # what depends on the rows of whole sessions
    "store/search",  # the index, a file of its own that follows the change sequence
    "store/feed",  # finished rows of one store for another
    "store/postgres",  # the other engine
    "hub/people",  # people of a hub and who may read what, in tables of PostgreSQL alone
    "store/archive.py",
    "store/connection.py",
    "store/disk.py",
    "store/external_content.py",
    "store/frames.py",
    "store/keys.py",
    "store/limited_agent.py",
    "store/sources.py",
    "store/write_lock.py",
)
"""The engines: folders and modules that may import a database and execute SQL."""

OTHER_DATABASES = (
    "agents/databases.py",  # the databases of agents
    "agents/strays.py",
    "agents/crush",
    "agents/cursor",
    "agents/goose",
    "agents/llm",
    "agents/row_files.py",  # databases that several agents keep
    "agents/hermes",
    "agents/opencode",
    "agents/zed",
    "agents/openclaw",
    "chat/stream_stores.py",  # running streams of chats, in a file of their own
    "hub/embedded.py",  # starts PostgreSQL and makes its database
    "hub/serve.py",  # what psycopg raises where the database cannot be reached
    "hub/machine/state.py",  # what a machine knows of its hub, in a file of its own
)

VIEWS = ("cli", "server", "exports", "chat", "runs", "__init__.py", "__main__.py")

BESIDES_THE_PROTOCOL = {
    "chat/keepers.py": ["store.writing.native"],  # chats are native sessions
    "chat/stream_stores.py": ["store.write_lock"],  # a database of its own, opened by many processes
    "runs/imports.py": ["store.writing.native"],
    "runs/sessions.py": ["store.writing.batch"],  # a run has ended: its log may now supersede its chat
    "server/context.py": ["store.disk"],  # why the store cannot be written
    "server/hooks.py": ["store.connection"],  # what SQLite raises while hooks are read in the background
    "server/items.py": ["store.feed.owners"],  # the id by which the agent of a hub's session knows it
    "server/worker.py": ["store.connection"],  # the process that reads logs into the store
    "cli/archive.py": ["store.disk"],  # the files of the store
    # The version of SQLite; which files changed since; whether there is room for more.
    "cli/doctor.py": ["store.connection", "store.disk", "store.sources"],
    "cli/export.py": ["store.sqlite.tables"],  # tables of everything, which no view needs
    "exports/transcripts.py": ["store.sqlite.tables"],  # a table of everything, too, with the same writer
    "cli/query.py": ["store.sqlite.query"],  # SQL of the user's own
    "cli/serve.py": ["store.connection"],  # whether the store can be written
    "cli/main.py": ["store.write_lock"],  # tells the user that another process writes
    "cli/run.py": ["store.write_lock"],
}
"""What views use of the engine besides the protocol and the search."""

DRIVERS = {"sqlite3", "apsw", "psycopg", "psycopg_pool"}
STATEMENTS = {"execute", "executemany", "executescript", "blobopen"}


def uses_of_a_database(text: str) -> list[str]:
    """Imports of drivers and calls that execute SQL in the source of a module, `line: what`."""
    found: list[tuple[int, str]] = []
    if not any(word in text for word in (*DRIVERS, *STATEMENTS)):  # parsing all modules takes seconds
        return []
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Import(names=names):
                found += [(node.lineno, name.name) for name in names if name.name.partition(".")[0] in DRIVERS]
            case ast.ImportFrom(module=str(module)) if module.partition(".")[0] in DRIVERS:
                found.append((node.lineno, module))
            case ast.Call(func=ast.Attribute(attr=name)) if name in STATEMENTS:
                found.append((node.lineno, name))
            case _:
                pass
    return [f"{line}: {what}" for line, what in sorted(found)]


def engine_imports(text: str) -> set[str]:
    """The modules of the engine that a module imports, without `turnlog.` before them."""
    modules = {name.removesuffix(".py").replace("/", ".") for name in ENGINE} - {"store.search"}
    names = set(re.findall(r"from turnlog\.(store[\w.]*) import", text))
    for line in re.findall(r"from turnlog\.store import (.*)", text):
        names |= {f"store.{name}" for name in line.split(", ")}
    return {name for name in names if any(f"{name}.".startswith(f"{module}.") for module in modules)}


def modules_below(*places: str) -> Iterator[tuple[str, str]]:
    """Path within the package and source of every module there."""
    for place in places:
        path = SOURCE / place
        for module in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            yield module.relative_to(SOURCE).as_posix(), module.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("import sqlite3", ["1: sqlite3"]),
        ("def read():\n    from apsw import Connection", ["2: apsw"]),
        ("connection.execute('SELECT 1')", ["1: execute"]),
        ("self._connection.executemany(query, rows)", ["1: executemany"]),
        ("from turnlog.store.connection import Connection\nstatement = 'execute'", []),
    ],
)
def test_the_check_sees_a_database(text: str, found: list[str]) -> None:
    assert uses_of_a_database(text) == found


def test_no_other_module_uses_a_database() -> None:
    allowed = (*ENGINE, *OTHER_DATABASES)
    for name, text in modules_below("."):
        if not any(name == place or name.startswith(f"{place}/") for place in allowed):
            assert uses_of_a_database(text) == [], f"{name} goes around the Store protocol"


@pytest.mark.parametrize("place", [*ENGINE, *OTHER_DATABASES])
def test_every_place_of_the_list_needs_to_be_in_it(place: str) -> None:
    assert any(uses_of_a_database(text) for _, text in modules_below(place))


def test_views_know_no_engine() -> None:
    """They open a store, read it through its protocol, and search; what else they use is listed."""
    found = {name: sorted(used) for name, text in modules_below(*VIEWS) if (used := engine_imports(text))}
    assert found == BESIDES_THE_PROTOCOL
