"""Real logs through the whole way in: what every version wrote, read once or as it grew, and given back (R-C13)."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path
from random import Random, randrange

import pytest

from support.claude_files import AGENT, DATA, SESSION
from support.plain_store import PRICE_VERSION, price
from support.profiles import THOROUGH
from support.store_dump import Dump, check_integrity, differences, dump
from turnlog.agents.base import Agent, Source
from turnlog.store.connection import connect
from turnlog.store.sqlite.forget import forget
from turnlog.store.sqlite.restore import restore_files
from turnlog.sync.reader import SourceReader

APPENDS = 12 if THOROUGH else 8
"""Pieces in which a log grows; where they end is by chance, and differs from run to run."""

CASES = sorted(folder for group in DATA.iterdir() for folder in group.iterdir() if folder.is_dir())


def roots_in(case: Path) -> list[Path]:
    """The homes of a recorded case: every folder that holds `projects`."""
    return sorted(found.parent for found in case.rglob("projects") if found.is_dir()) or [case]


def home_of(case: Path, folder: Path) -> list[Path]:
    """A copy of a case to be read, one root or several."""
    copies: list[Path] = []
    for number, root in enumerate(roots_in(case)):
        copy = folder / f"root{number}"
        if (root / "projects").is_dir():
            shutil.copytree(root, copy)
        else:
            shutil.copytree(root, copy / "projects" / "-home-dev-project")
        copies.append(copy)
    return copies


def sources_in(roots: list[Path]) -> list[tuple[Agent, Source]]:
    return [(AGENT, source) for source in AGENT.discover(roots)]


def read_once(store: Path, roots: list[Path], random: Random) -> Dump:
    """All files in one pass, in any order."""
    connection = connect(store, checked=False)
    try:
        sources = sources_in(roots)
        random.shuffle(sources)
        assert SourceReader(connection, price, PRICE_VERSION).read(sources).problems == []
        check_integrity(connection)
        return dump(connection)
    finally:
        connection.close()


def read_growing(store: Path, roots: list[Path], random: Random, appends: int = APPENDS) -> Dump:
    """Every log in appends of any size, all of them growing at once."""
    whole = {Path(source.path): Path(source.path).read_bytes() for _, source in sources_in(roots)}
    sources = sources_in(roots)
    logs = {Path(source.path) for _, source in sources if source.appendable}
    cuts = {path: sorted(random.randint(0, len(whole[path])) for _ in range(appends - 1)) for path in logs}
    connection = connect(store, checked=False)
    try:
        reader = SourceReader(connection, price, PRICE_VERSION)
        for step in range(appends):
            for path in logs:
                end = cuts[path][step] if step < appends - 1 else len(whole[path])
                path.write_bytes(whole[path][:end])
            random.shuffle(sources)
            assert reader.read(sources).problems == []
        check_integrity(connection)
        return dump(connection)
    finally:
        connection.close()


def without_passes(found: Dump) -> Dump:
    """A dump without what tells how often a file was read: the state a fold keeps, and when its bytes came."""
    return {table: rows for table, rows in found.items() if table not in {"sources", "archive"}}


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.parent.name}-{case.name}")
def test_a_log_read_as_it_grew_is_the_log_read_at_once(case: Path, tmp_path: Path) -> None:
    roots = home_of(case, tmp_path / "home")
    random = Random(randrange(1 << 32))
    grown = read_growing(tmp_path / "grown.db", roots, random)
    whole = read_once(tmp_path / "whole.db", roots, random)
    assert differences(without_passes(grown), without_passes(whole)) == []


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.parent.name}-{case.name}")
def test_every_file_comes_back_byte_for_byte(case: Path, tmp_path: Path) -> None:
    """Also after the original is gone, and after it grew over many passes."""
    roots = home_of(case, tmp_path / "home")
    hashes = {source.path: digest(Path(source.path)) for _, source in sources_in(roots)}
    read_growing(tmp_path / "store.db", roots, Random(5), appends=5)
    shutil.rmtree(tmp_path / "home")
    connection = connect(tmp_path / "store.db")
    try:
        restored: dict[str, str] = {}
        for (session_id,) in connection.execute("SELECT agent || ':' || external_id FROM sessions").fetchall():
            has_files = connection.execute(
                "SELECT 1 FROM sources WHERE session_id = ? LIMIT 1", (session_id,)
            ).fetchone()
            if has_files:
                found = restore_files(connection, session_id, tmp_path / "back" / session_id.replace(":", "_"))
                restored |= {file.source: digest(file.path) for file in found}
    finally:
        connection.close()
    readable = {path for path in hashes if path in restored}
    assert {path: restored[path] for path in readable} == {path: hashes[path] for path in readable}
    # What tells of no session has none to be restored with: logs without a record.
    assert {hashes[path] for path in set(hashes) - readable} <= {hashlib.sha256(b"").hexdigest()}


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize("backwards", [False, True])
def test_of_two_files_of_one_session_the_earlier_names_project_and_prompt(backwards: bool, tmp_path: Path) -> None:
    """R-C4, R-C13: 2.1.330 was given the same session id in two folders."""
    sources = sources_in([DATA / "versions" / "2.1.330-folders"])
    connection = connect(tmp_path / "store.db", checked=False)
    reader = SourceReader(connection, price, PRICE_VERSION)
    for source in reversed(sources) if backwards else sources:
        assert reader.read([source]).problems == []
    rows = connection.execute("SELECT p.path, s.title FROM sessions s JOIN projects p ON p.key = s.project_key")
    assert rows.fetchall() == [("/home/dev/proj", "In the first folder")]
    connection.close()


def test_files_of_two_homes_at_one_place_are_both_given_back(tmp_path: Path) -> None:
    """A home that was copied, and went on."""
    home, older = home_of(DATA / "versions" / "2.1.330-scheduled", tmp_path / "a")[0], tmp_path / "b"
    shutil.copytree(home, older)
    (log,) = older.rglob("*.jsonl")
    log.write_bytes(b"".join(log.read_bytes().splitlines(keepends=True)[:-9]))
    connection = connect(tmp_path / "store.db", checked=False)
    try:
        assert SourceReader(connection, price, PRICE_VERSION).read(sources_in([home, older])).problems == []
        for _ in range(2):
            found = restore_files(connection, f"claude-code:{log.stem}", tmp_path / "back")
            assert {file.source: digest(file.path) for file in found} == {
                str(path): digest(path) for folder in (home, older) for path in folder.rglob("*.jsonl")
            }
    finally:
        connection.close()


def test_files_of_a_workflow_are_restored_and_forgotten_with_it(tmp_path: Path) -> None:
    """R-C13: the script, the journal and the summary of a run (2.1.330), which tell of no message."""
    home = home_of(DATA / "versions" / "2.1.330-workflow", tmp_path / "home")[0]
    written = {str(path): digest(path) for path in home.rglob("*") if path.is_file()}
    read_once(tmp_path / "store.db", [home], Random(1))
    shutil.rmtree(home)
    connection = connect(tmp_path / "store.db")
    try:
        session_id = f"claude-code:{SESSION}"
        found = restore_files(connection, session_id, tmp_path / "back")
        assert {file.source: digest(file.path) for file in found} == written
        assert set(forget(connection, session_id).files) == set(written)
        assert connection.execute("SELECT count(*) FROM archive").fetchone() == (0,)
    finally:
        connection.close()
