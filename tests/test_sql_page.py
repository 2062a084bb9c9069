"""What docs/reference/sql.md shows is true: its blocks run in order, and it names every view and every column."""

from __future__ import annotations

import contextlib
import io
import re
import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest

from turnlog.store import connect_sql, open_store
from turnlog.store.sqlite.sql import VIEWS
from turnlog.store.values import Run
from turnlog.sync.syncer import sync

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "reference" / "sql.md").read_text()
EXAMPLES: list[tuple[str, str]] = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", PAGE, re.DOTALL)
RECORDED = ROOT / "tests" / "data" / "claude_code" / "scenarios" / "basic" / "projects"


@pytest.fixture
def store_path(home: Path, tmp_path: Path) -> Path:
    """The recorded logs, and a run of one of their sessions."""
    shutil.copytree(RECORDED, home / ".claude" / "projects")
    path = tmp_path / "history.db"
    sync(path)
    session_id = "claude-code:1300fbbd-b55e-4e2a-97d2-91f783184b84"
    with open_store(path) as store:
        store.save_run(
            Run(
                id="5d1f",
                origin="command",
                status="completed",
                session_id=session_id,
                created_at=store.session(session_id).created_at or datetime.now(UTC),
            )
        )
    return path


def test_the_examples_print_what_the_page_says(store_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """R-S24, R-S26, R-S28."""
    monkeypatch.chdir(store_path.parent)
    names: dict[str, object] = {"__name__": "example"}
    for code, output in EXAMPLES:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, "docs/reference/sql.md", "exec"), names)
        assert printed.getvalue() == output, code


def test_every_python_block_is_an_example_that_runs() -> None:
    assert len(EXAMPLES) == PAGE.count("```python") > 0


def test_every_view_and_every_column_is_named(store_path: Path) -> None:
    connection = connect_sql(store_path)
    for view in VIEWS:
        assert f"## {view}" in PAGE
        columns = [column[0] for column in connection.execute(f"SELECT * FROM {view} LIMIT 0").description]
        assert [column for column in columns if f"`{column}`" not in PAGE] == []
    connection.close()
