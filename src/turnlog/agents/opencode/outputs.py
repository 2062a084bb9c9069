"""Outputs that were too large for the history: files in `tool-output/`, whose names the results tell.

No file says which session it belongs to. Its name begins with the time at which it was written, as the ids of parts
begin with theirs, so the part that names it is one of the last before it.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from turnlog.agents.base import Source, SourceKind
from turnlog.agents.changes import Changes, Spill
from turnlog.agents.opencode.database import open_database, select, tables_of
from turnlog.agents.opencode.ids import NAME, session_id
from turnlog.agents.opencode.rows import Row, text_of
from turnlog.errors import SourceError

OUTPUTS = "tool-output"
_NAME = re.compile(r"tool_(?P<time>[0-9a-f]{12})[0-9A-Za-z]*")
_SAVED = re.compile(r"Full output saved to: (.+)")
_NAMING = {"part": "prt", "session_message": "msg"}
"""Tables whose rows name outputs, and how their ids begin."""
_LONGEST_CALL = 6 * 60 * 60 * 1000 << 12
"""How long before its output a call's part may have been made, in the units of ids."""


class OutputFold:
    """Reads one output, whole. See `turnlog.agents.base.Fold`."""

    def __init__(self, source: Source) -> None:
        """Nothing is remembered."""
        self._source = source

    def feed(self, data: bytes, offset: int) -> Changes:
        """See `turnlog.agents.base.Fold.feed`."""
        changes = Changes()
        owner, name = self._source.session_id, Path(self._source.path).name
        if owner is not None:
            changes.spills.append(Spill(session_id=owner, name=name, media_type="text/plain", size=len(data)))
        return changes

    def state(self) -> bytes:
        """See `turnlog.agents.base.Fold.state`."""
        return b""


def spilled_to(text: str | None, facts: Row) -> str | None:
    """The name of the file with the whole of an output that `text` is only a piece of."""
    saved = text_of(facts.get("outputPath"))
    if saved is None and text is not None and (match := _SAVED.search(text)):
        saved = match[1]
    path = PurePosixPath((saved or "").strip().replace("\\", "/"))
    return path.name if path.parent.name == OUTPUTS and _NAME.fullmatch(path.name) else None


def find_outputs(root: Path, databases: list[Path]) -> Iterator[Source]:
    """The outputs below a data folder that a session in one of the databases names; none that nobody does."""
    names = _names(root / OUTPUTS)
    for database in databases if names else ():
        try:
            owners = _owners(database, names)
        except (OSError, SourceError):
            continue  # the database's own source tells of it
        for name, owner in owners.items():
            yield Source(
                agent=NAME,
                path=str(root / OUTPUTS / name),
                root=str(root),
                kind=SourceKind.SPILL,
                session_id=session_id(owner),
                appendable=False,
            )


def _names(folder: Path) -> list[str]:
    try:
        found = [entry.name for entry in folder.iterdir() if entry.is_file() and not entry.is_symlink()]
    except OSError:
        return []
    return sorted(name for name in found if _NAME.fullmatch(name)) if not folder.is_symlink() else []


def _owners(database: Path, names: list[str]) -> dict[str, str]:
    """By name, the session whose call wrote it."""
    owners: dict[str, str] = {}
    with open_database(database) as connection:
        for table in _NAMING.keys() & tables_of(connection):
            for name in names:
                owner = _owner_in(connection, table, name)
                if owner is not None:
                    owners[name] = owner
    return owners


def _owner_in(connection: sqlite3.Connection, table: str, name: str) -> str | None:
    match = _NAME.fullmatch(name)
    end = int(match["time"], 16) if match else 0
    first, last = (f"{_NAMING[table]}_{max(0, moment):012x}" for moment in (end - _LONGEST_CALL, end + 1))
    statement = f"SELECT session_id FROM {table} WHERE id BETWEEN ? AND ? AND instr(data, ?) ORDER BY id DESC LIMIT 1"
    found = next(select(connection, statement, first, last, name), None)
    return None if found is None else found["session_id"]
