"""Python files in the folder that somebody works in are none of turnlog's, also not in the processes it starts."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import turnlog
from support.search_store import SearchStore, text_message
from turnlog.store.search.follower import Follower

SOURCE = Path(turnlog.__file__).parent

ISOLATED = {"-P", "-I"}
"""Options with which Python imports nothing from the current folder."""


def test_every_child_is_started_without_the_current_folder() -> None:
    commands = [
        (path.name, options)
        for path in sorted(SOURCE.rglob("*.py"))
        for options in re.findall(r"\bsys\.executable,([^\]\)]*)", path.read_text(encoding="utf-8"))
    ]
    assert len(commands) >= 7
    assert [each for each in commands if not ISOLATED & {*re.findall(r'"(-\w)"', each[1])}] == []


def test_a_module_in_the_current_folder_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = SearchStore(tmp_path)
    store.log("one", cwd="/w/shop").message(text_message("one.1", "alpha"))
    store.read()
    work = tmp_path / "work"
    work.mkdir()
    (work / "sqlite3.py").write_text("open('run', 'w').close()\n", encoding="utf-8")
    monkeypatch.chdir(work)
    with Follower(store.path, store.search_path):
        pass
    assert not (work / "run").exists()
    assert len(store.found("alpha")) == 1
