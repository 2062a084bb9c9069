"""A password that something else names is masked in what leaves: of a parent, of another session, of an output file."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from support.plain_agent import Log
from support.plain_history import answer, call, prompt
from support.plain_store import read_home
from turnlog.agents.changes import Link
from turnlog.exports import export_session
from turnlog.exports.transcripts import write_transcripts
from turnlog.model import TextPart, ToolResult, ToolState
from turnlog.store import open_store
from turnlog.store.sqlite.tables import TABLES, write_tables

# It has no types of its own.
pq: Any = import_module("pyarrow.parquet")

PASSWORD = "hunter2horse"
PROMPT = f"Why is {PASSWORD} refused?"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A session, its subagent and that one's subagent; and one with an output file."""
    home = tmp_path / "plain"
    home.mkdir()
    root = Log(home, "root")
    root.message(prompt("r1", f"DB_PASS={PASSWORD}", 1), turn=1)
    root.message(answer("r2", 2, call("c1", "Task", {}, ToolState.INPUT_AVAILABLE)), turn=1)
    root.link(_started("root", "sub", "c1"))
    sub = Log(home, "sub")
    sub.message(prompt("s1", f"Of the first: {PROMPT}", 3), turn=1)
    sub.message(answer("s2", 4, call("c2", "Task", {}, ToolState.INPUT_AVAILABLE)), turn=1)
    sub.link(_started("sub", "below", "c2"))
    Log(home, "below").message(prompt("b1", f"Of the second: {PROMPT}", 5), turn=1)
    # Its parent was never read.
    orphan = Log(home, "orphan")
    orphan.link(_started("gone", "orphan", "c0"))
    orphan.message(prompt("p1", f"An orphan asks: {PROMPT}", 6), turn=1)
    orphan.message(answer("p2", 7, TextPart(text=f"password: {PASSWORD}")), turn=1)
    return home


def _started(parent: str, child: str, call_id: str) -> Link:
    return Link(
        kind="subagent",
        parent_session_id=f"plain:{parent}",
        child_session_id=f"plain:{child}",
        tool_call_id=call_id,
    )


def read(home: Path) -> Path:
    read_home(home.parent / "turnlog.db", home)
    return home.parent / "turnlog.db"


@pytest.mark.parametrize("name", ["sub", "below", "orphan"])
def test_a_subagent_alone_has_no_password_that_the_session_above_it_names(path: Path, name: str) -> None:
    with open_store(read(path)) as store:
        kept = export_session(store, f"plain:{name}", "markdown").data.decode()
        made = export_session(store, f"plain:{name}", "markdown", redact=True).data.decode()
    assert PASSWORD in kept
    assert "refused?" in made
    assert PASSWORD not in made


def test_a_transcript_has_no_password_that_another_one_names(path: Path) -> None:
    Log(path, "other").message(prompt("o1", PROMPT, 8), turn=1)
    with open_store(read(path)) as store:
        names = [f"plain:{name}" for name in ("other", "below", "root")]
        write_transcripts(store, path.parent / "made", names, redact=True)
    rows = pq.read_table(path.parent / "made" / "transcripts.parquet").to_pylist()
    assert len(rows) == 3
    assert str(rows).count("refused?") >= 2
    assert PASSWORD not in str(rows)


def test_tables_have_no_password_that_only_an_output_file_names(tmp_path: Path) -> None:
    home = tmp_path / "plain"
    home.mkdir()
    log = Log(home, "s")
    log.message(prompt("u", PROMPT, 1), turn=1)
    result = ToolResult(id="r", content=(TextPart(text="a preview"),), spilled_to="env.txt")
    log.message(answer("a", 2, call("c", "Bash", {}, ToolState.OUTPUT_AVAILABLE, result)), turn=1)
    log.spill("env.txt", f"DB_PASS={PASSWORD}\n".encode())
    write_tables(read(home), tmp_path / "masked", redact=True)
    rows = str([pq.read_table(tmp_path / "masked" / f"{name}.parquet").to_pylist() for name in TABLES])
    assert "refused?" in rows
    assert PASSWORD not in rows
