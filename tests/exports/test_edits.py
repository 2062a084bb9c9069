"""An exported page shows what edits really changed, as each agent's log in the store recorded it."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.plain_store import read_home
from turnlog.agents import agent
from turnlog.exports import export_session
from turnlog.store import open_store

DATA = Path(__file__).parents[1] / "data"
SESSION = "11111111-1111-4111-8111-111111111111"
SECRET = "ghp_9fK2mQ7xTz4WcVb1NsLr8YhJd3GpAe6UoXi5"


def page_of(tmp_path: Path, home: Path, name: str, session_id: str, *, redact: bool = False) -> str:
    """The page of a session, from a store that has read this home."""
    read_home(tmp_path / "turnlog.db", home, agent(name))
    with open_store(tmp_path / "turnlog.db") as store:
        return export_session(store, session_id, "html", redact=redact).data.decode()


@pytest.fixture
def claude(tmp_path: Path) -> str:
    return page_of(tmp_path, DATA / "claude_code/scenarios/basic", "claude-code", f"claude-code:{SESSION}")


def test_hunks_have_the_numbers_that_claude_code_recorded(claude: str) -> None:
    assert "@@ -1,3 +1,3 @@" in claude
    assert "-beta" in claude
    assert "input-available" not in claude


def test_a_secret_in_what_was_recorded_is_masked(tmp_path: Path) -> None:
    home = tmp_path / "home"
    log = next((DATA / "claude_code/scenarios/basic/projects").glob(f"*/{SESSION}.jsonl"))
    copied = home / "projects" / log.parent.name / log.name
    copied.parent.mkdir(parents=True)
    recorded = log.read_text()
    assert '" alpha"' in recorded
    copied.write_text(recorded.replace('" alpha"', f'" alpha {SECRET}"'))
    session_id = f"claude-code:{SESSION}"
    assert f"alpha {SECRET}" in page_of(tmp_path, home, "claude-code", session_id)
    made = page_of(tmp_path, home, "claude-code", session_id, redact=True)
    assert SECRET not in made
    assert "alpha [REDACTED:github-token]" in made
