"""A store of toy logs: tests write files, let the real reader read them one by one or together, and ask in SQL."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations
from pathlib import Path
from types import TracebackType
from typing import Any

from support.plain_store import PRICE_VERSION, price
from support.store_dump import Dump, check_integrity, differences, dump
from support.toy_agent import ToyAgent, session_id
from turnlog.agents.base import Agent, Source
from turnlog.store.archive import Archive
from turnlog.store.connection import connect
from turnlog.sync.reader import GroupResult, SourceReader


class ToyStore:
    """A home of logs and the store that they are read into; close it with `with`."""

    def __init__(self, folder: Path, *, agent: ToyAgent | None = None, name: str = "store.db") -> None:
        self.home = folder / "home"
        self.path = folder / name
        self.agent = agent or ToyAgent()
        self.connection = connect(self.path, checked=False)
        self.archive = Archive(self.connection)

    def __enter__(self) -> ToyStore:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.connection.close()

    def write(self, name: str, *lines: bytes) -> Path:
        """Write a file anew."""
        path = self.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"".join(lines))
        return path

    def append(self, name: str, *lines: bytes) -> Path:
        """Write behind what is there."""
        path = self.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as file:
            file.write(b"".join(lines))
        return path

    def source(self, name: str) -> Source:
        found = self.agent.source_of(self.home / name, self.home)
        assert found is not None, name
        return found

    def read(self, *names: str) -> GroupResult:
        """One pass over these files."""
        group: list[tuple[Agent, Source]] = [(self.agent, self.source(name)) for name in names]
        return SourceReader(self.connection, price, PRICE_VERSION).read(group)

    def add(self, name: str, *lines: bytes) -> GroupResult:
        """Append to a file and read it."""
        self.append(name, *lines)
        return self.read(name)

    def rows(self, query: str, *parameters: object) -> list[Any]:
        return self.connection.execute(query, parameters).fetchall()

    def row(self, query: str, *parameters: object) -> Any:
        """The one row that a query answers; its value when it has one column."""
        (row,) = self.rows(query, *parameters)
        return row[0] if len(row) == 1 else row

    def dump(self) -> Dump:
        """All that the store says, which must be sound."""
        check_integrity(self.connection)
        return dump(self.connection)

    def archived(self, name: str) -> list[bytes]:
        """Every life of a file."""
        key = self.row("SELECT key FROM sources WHERE path = ?", str(self.home / name))
        return [
            b"".join(self.archive.iter_bytes(key, generation.number)) for generation in self.archive.generations(key)
        ]

    def session(self, name: str, columns: str) -> Any:
        external_id = session_id(name).partition(":")[2]
        return self.row(f"SELECT {columns} FROM sessions WHERE external_id = ?", external_id)

    def fates(self, name: str) -> dict[str, str]:
        """`fate` or `fate < cause` of every message of a session."""
        rows = self.rows(
            "SELECT m.external_id, s.fate, s.fate_cause FROM memberships s JOIN messages m ON m.key = s.message_key"
            " JOIN sessions n ON n.key = s.session_key WHERE n.external_id = ? ORDER BY s.position",
            name,
        )
        return {message: f"{fate} < {cause}" if cause else fate for message, fate, cause in rows}

    def billed_sessions(self) -> dict[str, str]:
        """Message -> the session that pays for it."""
        return dict(
            self.rows("SELECT m.external_id, s.external_id FROM messages m JOIN sessions s ON s.key = m.billed_key")
        )

    def links(self) -> set[tuple[str, str, str, int]]:
        """(child, parent, kind, inferred)."""
        rows = self.rows("SELECT child_id, parent_id, kind, inferred FROM links")
        return {(child[4:], parent[4:], kind, inferred) for child, parent, kind, inferred in rows}

    def parents(self) -> dict[str, tuple[str, str]]:
        """Session -> (its parent, how they are related), as lists show it."""
        rows = self.rows(
            "SELECT c.external_id, p.external_id, c.relationship FROM sessions c"
            " JOIN sessions p ON p.key = c.parent_key"
        )
        return {child: (parent, relationship) for child, parent, relationship in rows}


Files = dict[str, bytes]
"""Logs by name."""


def in_any_order(tmp_path: Path, files: Files, look: Callable[[ToyStore], object]) -> None:
    """Read the files in every order, apart and together; `look` at each store, and all must say the same."""
    known = None
    for number, order in enumerate(permutations(files)):
        for together in (False, True):
            with ToyStore(tmp_path, name=f"{number}-{together}.db") as store:
                for name in files:
                    store.write(name, files[name])
                for names in [order] if together else [(name,) for name in order]:
                    assert store.read(*names).problems == []
                look(store)
                known = known or store.dump()
                assert differences(store.dump(), known) == []
