"""What a real agent left after it had gone on with a session, cut for the tests (tests/data/handoffs).

The lines that turnlog wrote stay as they are. In those of the agent long texts are cut: they are the vendor's prompts.
HOME becomes `{HOME}`. Of a database the rows of the session are kept, a JSON object a line.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from turnlog.agents.handoffs import MARK
from turnlog.handoff import HandoffPlan

_LONGEST = 150
_KEPT = 20
_LEFT_OUT = ("api-request", "api-request-blob", "api-request-shape")
"""Records of Claude Code that repeat its requests."""
_TABLES = ("project", "session", "message", "part")


def record(planned: HandoffPlan, home: Path, version: str, request: list[tuple[str, str]], folder: Path) -> None:
    """Write the recording of one session into a folder of its own."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    source = planned.paths[-1]
    if source.suffix == ".db":
        target, lines = folder / "rows.jsonl", _rows(source, planned.new.external_id)
    else:
        target, lines = folder / "log.jsonl", (json.loads(line) for line in source.read_bytes().splitlines())
    kept = (_cut(line) for line in lines if line.get("type") not in _LEFT_OUT)
    data = "".join(f"{json.dumps(line, ensure_ascii=False, separators=(',', ':'))}\n" for line in kept)
    target.write_text(data.replace(str(home), "{HOME}"))
    about = {
        "version": version,
        "from": planned.session.id,
        "session": planned.new.external_id,
        "at": planned.conversation.at.isoformat(),
        "path": str(source).replace(str(home), "{HOME}"),
        "request": request,
    }
    (folder / "about.json").write_text(json.dumps(about, indent=1, ensure_ascii=False) + "\n")


def _rows(database: Path, session: str) -> Iterator[dict[str, Any]]:
    with closing(sqlite3.connect(database)) as connection:
        connection.row_factory = sqlite3.Row
        for table in _TABLES:
            name = {"project": "1", "session": "id"}.get(table, "session_id")
            wanted = "1" if table == "project" else session
            for row in connection.execute(f"SELECT * FROM {table} WHERE {name} = ? ORDER BY id", (wanted,)):
                values = {key: row[key] for key in row.keys() if row[key] is not None}  # noqa: SIM118  # of a row
                data = {"data": json.loads(values["data"])} if "data" in values else {}
                yield {"table": table, **values, **data}


def _cut(value: Any) -> Any:
    """The value with long texts cut, unless turnlog wrote it."""
    if isinstance(value, dict):
        return value if MARK in value else {name: _cut(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_cut(each) for each in value]
    return f"{value[:_KEPT]}…" if isinstance(value, str) and len(value) > _LONGEST else value
