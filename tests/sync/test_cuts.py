"""Where a log is cut into feeds, and how many processes fold it, changes nothing of the store.

Recorded logs are moved so that the real border of a feed lies after each of their lines in turn.
"""

from __future__ import annotations

import hashlib
import os
import random
import re
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from support.claude_files import Log, lines, text
from support.profiles import some_of
from support.recorded_sessions import DATA
from support.store_dump import check_integrity
from support.store_tables import Tables, differing, tables
from turnlog.agents import agent
from turnlog.agents.base import Source
from turnlog.server.sample import LOGS
from turnlog.store.connection import connect
from turnlog.sync import syncer
from turnlog.sync.log_file import CHUNK_SIZE, MOST_LINES
from turnlog.sync.syncer import sync

RECORDINGS = {
    "claude-code": (LOGS / "claude-code", DATA / "claude_code/versions/2.1.329-interactive"),
    "codex": (LOGS / "codex",),
    "copilot-cli": (LOGS / "copilot-cli",),
    "pi": (LOGS / "pi",),
}
"""Agent -> recorded homes. The names of their sessions, messages and calls are UUIDs, or begin as `ID` says."""

ID = re.compile(rb"[0-9a-f]{8}(?=-[0-9a-f]{4}-)|(?<=\bmsg_)|(?<=\breq_)|(?<=\btoolu_)|(?<=\bcall_)|(?<=\bagent-)")

Cut = Callable[[list[bytes], int], bytes]


def cut_by_lines(lines: list[bytes], after: int) -> bytes:
    """The log behind so many blank lines that a feed has its most lines after this one."""
    return b"\n" * (MOST_LINES - after) + b"".join(lines)


def cut_by_bytes(lines: list[bytes], after: int) -> bytes:
    """The log behind so long a blank line that a piece that is read ends after this line."""
    return b" " * (CHUNK_SIZE - len(b"".join(lines[:after])) - 1) + b"\n" + b"".join(lines)


def cut_off(lines: list[bytes], after: int) -> bytes:
    """The log up to this line, which has no newline yet."""
    return b"".join(lines[:after]).removesuffix(b"\n")


CASES = [(name, cut) for name in RECORDINGS for cut in (cut_by_lines, cut_off)] + [("claude-code", cut_by_bytes)]

MOST_CUTS: dict[Cut, int] = {cut_by_lines: 40, cut_off: 40, cut_by_bytes: 4}
"""How many lines of a log are drawn; a copy that is cut by bytes has four megabytes."""


def named_apart(data: bytes, number: int) -> bytes:
    """The text with other names for everything, so that it does not share them with another copy."""

    def rename(found: re.Match[bytes]) -> bytes:
        digest = hashlib.sha256(b"%d %b" % (number, found[0])).hexdigest().encode()
        return digest[:8]

    return ID.sub(rename, data)


def write_cut(home: Path, source: Source, number: int, cut: Cut) -> int:
    """Write a copy of a log for each of its lines, cut after it; return how many there are."""
    path = Path(source.path)
    lines = path.read_bytes().splitlines(keepends=True)
    cuts = some_of(range(1, len(lines) + 1), 1)
    for after in random.sample(cuts, min(len(cuts), MOST_CUTS[cut])):
        number += 1
        place = named_apart(os.fsencode(path.relative_to(source.root)), number)
        copy = home / os.fsdecode(place)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(cut([named_apart(line, number) for line in lines], after))
        os.utime(copy, (1_700_000_000 + number, 1_700_000_000 + number))
    return number


def stored(store: Path, home: Path, name: str, count: int, monkeypatch: pytest.MonkeyPatch) -> Tables:
    """All that the store has after one pass in which so many processes fold."""

    def folding_processes(total: int) -> int:
        return count

    monkeypatch.setattr(syncer, "folding_processes", folding_processes)
    monkeypatch.setattr(syncer, "FIRST_SOURCES", 1)  # the writer folds these itself
    assert sync(store, roots=[home], agents=[agent(name)]).problems == []
    with closing(connect(store)) as connection:
        check_integrity(connection)
    return tables(store)


@pytest.mark.parametrize(("name", "cut"), CASES)
def test_a_cut_after_any_line_changes_nothing_however_many_processes_fold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, cut: Cut
) -> None:
    home, number = tmp_path / "home", 0
    for recorded in some_of(RECORDINGS[name], 1):
        for source in agent(name).find_sources(recorded):
            if source.appendable and source.path.endswith(".jsonl"):
                number = write_cut(home, source, number, cut)
    alone = stored(tmp_path / "alone.db", home, name, 0, monkeypatch)
    assert len(alone["sources"]) == number
    assert len(alone["sessions"]) > number / 2
    for count in some_of((1, 2, 3), 1):
        found = stored(tmp_path / f"{count}.db", home, name, count, monkeypatch)
        assert differing(alone, found) == []


@pytest.mark.parametrize("cut", [cut_by_lines, cut_off])
def test_an_answer_whose_lines_lie_on_both_sides_of_a_cut_is_read_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cut: Cut
) -> None:
    """The reasoning was written to the store with a place in the archive, and the text is added to it."""
    log = Log("2.1.5", sessionId="11111111-1111-4111-8111-111111111111")
    reasoning = {"type": "thinking", "thinking": "A greeting.", "signature": "Ab3" * 100}
    written = [log.user("hello"), log.assistant("msg_1", reasoning), log.assistant("msg_1", text("Hello to you"))]
    path = tmp_path / "home/projects/-w/11111111-1111-4111-8111-111111111111.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(cut(lines(*written).splitlines(keepends=True), 2 if cut is cut_by_lines else 3))
    # The writer reads the newest log itself.
    other = path.with_name("22222222-2222-4222-8222-222222222222.jsonl")
    other.write_bytes(lines(Log("2.1.5", sessionId=other.stem).user("later")))
    os.utime(path, (1_700_000_000, 1_700_000_000))
    alone = stored(tmp_path / "alone.db", path.parents[2], "claude-code", 0, monkeypatch)
    assert differing(alone, stored(tmp_path / "1.db", path.parents[2], "claude-code", 1, monkeypatch)) == []
