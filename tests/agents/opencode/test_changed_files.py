"""Files that change while OpenCode writes lead to the sessions whose rows changed."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from support.opencode_files import AGENT, insert, recorded, write_database, write_project_storage, write_storage
from turnlog.store import open_store
from turnlog.sync.syncer import Syncer

PARENT, CHILD = "ses_e0418e851ffeDgcuDS6WlCcMks", "ses_e0418cdcbffeluOcL3vmfKoyn0"


def titled(store: Path) -> dict[str, str | None]:
    with open_store(store) as opened:
        return {name: opened.session(f"opencode:{name}").title for name in (PARENT, CHILD)}


@pytest.mark.parametrize("name", ["opencode.db", "opencode.db-wal"])
def test_a_database_leads_to_the_sessions_that_changed(tmp_path: Path, name: str) -> None:
    """R-S43, R-C19: also to those that are new."""
    home = tmp_path / "home"
    path = write_database(recorded("1.18.33", "subagent"), home / "opencode.db")
    store = tmp_path / "turnlog.db"
    with Syncer(store, agents=[AGENT]) as syncer, closing(sqlite3.connect(path)) as writer:
        syncer.scan(roots=[home])
        writer.execute("UPDATE session SET title = 'live', time_updated = time_updated + 1 WHERE id = ?", (CHILD,))
        writer.commit()
        before = titled(store)
        assert syncer.read([home / name]).changed == 1
        assert titled(store) == before | {CHILD: "live"}
        assert syncer.read([home / name, home / "opencode.db-shm", home / "log" / "x.log"]).changed == 0
        others = recorded("1.18.33", "interrupt")
        for table, rows in others.items():
            insert(writer, table, rows)
        writer.commit()
        assert syncer.read([home / name]).new_sessions == len(others["session"])


@pytest.mark.parametrize("column", ["title", "project"])
def test_a_new_title_holds_although_the_time_of_the_row_is_unchanged(tmp_path: Path, column: str) -> None:
    """R-C19: the server of 1.18.33 gives a session another title and leaves `time_updated` as it was; a project's name
    is in another row. The order of the names must not matter."""
    home = tmp_path / "home"
    path = write_database(recorded("1.18.33", "subagent"), home / "opencode.db")
    store = tmp_path / "turnlog.db"
    with Syncer(store, agents=[AGENT]) as syncer, closing(sqlite3.connect(path)) as writer:
        syncer.scan(roots=[home])
        for name in ("middle", "Alpha", "omega", "AAA"):
            if column == "title":
                writer.execute("UPDATE session SET title = ? WHERE id = ?", (name, PARENT))
            else:
                writer.execute("UPDATE project SET name = ?", (name,))
            writer.commit()
            assert syncer.scan(roots=[home]).changed > 0
            assert syncer.scan(roots=[home]).changed == 0
            with open_store(store) as opened:
                session = opened.session(f"opencode:{PARENT}")
            project = session.metadata["opencode"]["project"].get("name")
            assert (session.title if column == "title" else project) == name


@pytest.mark.parametrize("write", [write_storage, write_project_storage])
def test_every_file_of_a_storage_leads_to_its_session(tmp_path: Path, write: object) -> None:
    """R-S43: of a session, a message or a part."""
    assert callable(write)
    home = tmp_path / "home"
    write(recorded("1.18.33", "subagent"), home)
    with Syncer(tmp_path / "turnlog.db", agents=[AGENT]) as syncer:
        syncer.scan(roots=[home])
        for kind in ("ses_", "msg_", "prt_"):
            file = next(path for path in sorted(home.rglob(f"{kind}*.json")) if "todo" not in path.parts)
            document = json.loads(file.read_text())
            assert syncer.read([file]).changed == 0
            file.write_text(json.dumps(document | {"changed": True}))
            summary = syncer.read([file])
            assert (summary.changed, summary.sessions) == (1, 1)
            assert syncer.read([file]).changed == 0


def test_a_spilled_output_is_read_when_it_comes(tmp_path: Path) -> None:
    home = tmp_path / "home"
    write_database(recorded("1.18.33", "samples"), home / "opencode.db")
    output = home / "tool-output" / "tool_1fbca909f001b4rQn2tFCbNY5Y"
    output.parent.mkdir()
    store = tmp_path / "turnlog.db"
    with Syncer(store, agents=[AGENT]) as syncer:
        syncer.scan(roots=[home])
        output.write_text("the whole")
        assert syncer.read([output]).changed == 1
    with open_store(store) as opened:
        assert opened.spill("opencode:ses_e04357bedffeDSZeWHkfzvvxKy", output.name) == b"the whole"
