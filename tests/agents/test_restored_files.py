"""Files that an agent writes again itself, from its rows: who may read them, and what is in their place."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from support.agent_cases import CASES
from turnlog.agents import agent
from turnlog.agents.base import RowAgent
from turnlog.errors import ConflictError
from turnlog.store import open_store
from turnlog.sync.syncer import sync

WITH_ROWS = [name for name in CASES if isinstance(agent(name), RowAgent)]


@pytest.mark.parametrize("name", WITH_ROWS)
def test_restored_files_are_for_the_user_alone_and_wait_for_no_pipe(name: str, tmp_path: Path) -> None:
    """As the store is, whose bytes they are."""
    case = CASES[name]
    home = case.write_home(case.recorded[0], tmp_path / case.home)
    sync(tmp_path / "turnlog.db", roots=[home], agents=[agent(name)])
    old = os.umask(0o022)
    try:
        with open_store(tmp_path / "turnlog.db") as store:
            session = store.sessions().items[0].id
            files = [file.path for file in store.restore(session, tmp_path / "back")]
            assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
            assert store.restore(session, tmp_path / "back")
            files[0].unlink()
            os.mkfifo(files[0])
            with pytest.raises(ConflictError, match="pipe"):
                store.restore(session, tmp_path / "back")
    finally:
        os.umask(old)
