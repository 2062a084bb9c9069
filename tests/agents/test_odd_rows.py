"""A log of rows may come from others: odd ones are an error of one line, and no name of a column becomes SQL."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from turnlog.agents import agent
from turnlog.agents.base import RowAgent, Source, SourceKind
from turnlog.errors import StoreError

PLACES = {
    "goose": ("sessions/sessions.db", "messages"),
    "crush": ("crush.db", "messages"),
    "zed": ("threads/threads.db", "threads"),
    "opencode": ("opencode.db", "session"),
}


def restored(name: str, row: dict[str, Any], to: Path) -> list[str]:
    """The columns of the table with a row."""
    place, table = PLACES[name]
    source = Source(agent=name, path=f"/h/{place}#s1", root="/h", kind=SourceKind.SESSION, session_id=f"{name}:s1")
    found = agent(name)
    assert isinstance(found, RowAgent)
    (path,) = found.restore_rows(source, [json.dumps({"table": table, "row": row}).encode() + b"\n"], to)
    with closing(sqlite3.connect(path)) as connection:
        return [column for _, column, *_ in connection.execute(f'PRAGMA table_info("{table}")')]


@pytest.mark.parametrize("name", PLACES)
def test_a_column_may_have_any_name(name: str, tmp_path: Path) -> None:
    odd = ['x"', 'x" DEFAULT (zeroblob(900000000)), "y', "a/*", "--"]
    assert set(odd) < set(restored(name, {"id": "s1", **dict.fromkeys(odd, 1)}, tmp_path))


@pytest.mark.parametrize("row", [{"id": 1, "ID": 2}, {"id": 1, "a": [1]}, {"id": 1 << 70}, {"a": 1}], ids=str)
@pytest.mark.parametrize("name", PLACES)
def test_rows_that_no_agent_writes_are_an_error(name: str, row: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot be written into a database"):
        restored(name, row, tmp_path)
