"""What it costs to forget a session in a store of many others."""

from __future__ import annotations

from pathlib import Path

from support.plain_agent import Log
from support.plain_store import at, read_home
from turnlog.model import Message, TextPart, ToolCallPart, ToolKind, ToolState, Usage
from turnlog.model.codec import to_json
from turnlog.store.connection import connect
from turnlog.store.sqlite.forget import forget

STEPS = 100
"""Instructions of SQLite that are counted together."""


def test_forgetting_reads_no_more_rows_where_there_are_many_others(tmp_path: Path) -> None:
    few, many = (instructions(tmp_path / str(others), others) for others in (10, 150))
    assert many < 2 * few


def instructions(folder: Path, others: int) -> int:
    """How many instructions SQLite runs to forget one of so many sessions."""
    home = folder / "home"
    home.mkdir(parents=True)
    for number in range(others + 1):
        write(home, f"s{number}", "/w/lonely" if number == 5 else "/w/shop")
    path = folder / "turnlog.db"
    read_home(path, home)
    counted = 0

    def count() -> None:
        nonlocal counted
        counted += STEPS

    connection = connect(path)
    try:
        connection.execute("BEGIN IMMEDIATE")
        connection.set_progress_handler(count, STEPS)
        forget(connection, "plain:s5")
        connection.set_progress_handler(None, 0)
        connection.execute("COMMIT")
        # Its project goes with it, and that of the others stays.
        assert connection.execute("SELECT path FROM projects").fetchall() == [("/w/shop",)]
        assert connection.execute("SELECT count(*) FROM call_totals").fetchone() == (2 * others,)
        assert connection.execute("SELECT count(*) FROM edit_totals").fetchone() == (others,)
    finally:
        connection.close()
    return counted


def write(home: Path, name: str, folder: str) -> None:
    log = Log(home, name)
    log.session(project_path=folder, cwd=folder)
    log.message(Message(id=f"{name}.p", role="user", created_at=at(0), parts=(TextPart(text="Go on"),)))
    calls = [
        ToolCallPart(
            tool_call_id=f"{name}.{tool}",
            tool_name=tool,
            kind=kind,
            state=ToolState.OUTPUT_AVAILABLE,
            input=to_json({"file_path": f"{folder}/till.py"}),
            started_at=at(1),
        )
        for tool, kind in (("Read", ToolKind.READ), ("Edit", ToolKind.EDIT))
    ]
    usage = Usage(input=10, output=1)
    log.message(
        Message(id=f"{name}.a", role="assistant", model="large", created_at=at(1), usage=usage, parts=(*calls,))
    )
