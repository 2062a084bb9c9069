"""Memory of a pass: it depends neither on the number of records nor on how often a large one could be copied."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

import turnlog.store.search.batch as batches
import turnlog.sync.workers as workers
from turnlog.agents import agent as registered_agent
from turnlog.model import TextPart
from turnlog.store import open_store
from turnlog.store.search.base import SearchFilter, search_path
from turnlog.store.search.documents import StoreReader
from turnlog.store.search.index_file import open_store as open_as_indexer
from turnlog.store.search.indexer import Indexer
from turnlog.store.search.searcher import Searcher
from turnlog.sync.syncer import sync

SESSION = "11111111-1111-4111-8111-111111111111"
PLACE = f'"sessionId":"{SESSION}","timestamp":"2026-01-02T03:04:05.000Z"'
LARGE = 12 << 20


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / ".claude/projects/-p").mkdir(parents=True)
    return tmp_path


def write(home: Path, *lines: str) -> Path:
    """The log of a session; returns the path of a store that is not there."""
    (home / f".claude/projects/-p/{SESSION}.jsonl").write_text("".join([f"{line}\n" for line in lines]))
    return home / f"data-{len(lines)}" / "turnlog.db"


def prompts(count: int) -> list[str]:
    return [
        f'{{"type":"user","uuid":"u{number}","parentUuid":{f"{chr(34)}u{number - 1}{chr(34)}" if number else "null"},'
        f'{PLACE},"message":{{"role":"user","content":"x"}}}}'
        for number in range(count)
    ]


def traced_peak(work: Callable[[], object]) -> int:
    """Bytes that Python's allocators held at most while `work` ran, over what they held before."""
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        work()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


def scan(store: Path, home: Path) -> None:
    sync(store, roots=[home / ".claude"], agents=[registered_agent("claude-code")])


def unknown_kinds(count: int) -> list[str]:
    return ['{"type":"x"}'] * count


@pytest.mark.parametrize(("make", "most"), [(prompts, 800), (unknown_kinds, 200)])
def test_a_pass_over_more_small_records_takes_no_more_memory(
    home: Path, make: Callable[[int], list[str]], most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "MOST_DOCUMENTS", 1000, raising=False)
    scan(write(home, *make(100)), home)
    peaks: dict[int, int] = {}
    for count in (5_000, 10_000):
        store = write(home, *make(count))
        peaks[count] = traced_peak(partial(scan, store, home))
    # The file is read in pieces of megabytes, so that its own bytes are in memory; what a record becomes is larger.
    assert (peaks[10_000] - peaks[5_000]) / 5_000 < most, "bytes a record"


def test_indexing_more_small_messages_takes_no_more_memory(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "MOST_DOCUMENTS", 1000, raising=False)
    peaks: dict[int, int] = {}
    for count in (100, 2_000, 6_000):
        store = write(home, *prompts(count))
        scan(store, home)
        search_path(store).unlink()
        with closing(Indexer(store, search_path(store))) as indexer:
            peaks[count] = traced_peak(indexer.catch_up)
            assert indexer.unindexed() == 0
    assert (peaks[6_000] - peaks[2_000]) / 4_000 < 40, "bytes a message"


def test_the_messages_of_one_change_are_read_from_where_reading_ended(home: Path) -> None:
    """All messages of a large session have one number of the change sequence."""
    store = write(home, *prompts(8_000))
    scan(store, home)
    with closing(open_as_indexer(store)) as connection:
        reader = StoreReader(connection)
        rows = list(reader.newer(0, 0))
        assert len(rows) == 1000
        sequence, steps = rows[0].changed_seq, 0

        def note() -> None:
            nonlocal steps
            steps += 1

        costs: list[int] = []
        for key in (rows[0].key, rows[0].key + 6_500):
            steps = 0
            connection.set_progress_handler(note, 100)
            assert next(reader.newer(sequence, key)).key == key + 1
            assert reader.has_newer(sequence, key)
            connection.set_progress_handler(None, 0)
            costs.append(steps)
        assert reader.unindexed(sequence, rows[0].key + 6_500) == 1_499
    assert costs[1] <= costs[0] + 2


TEXT = ("sixteen letters\\n" * (LARGE // 17))[:-2]
LARGE_LINES = {
    "prompt": [
        f'{{"type":"user","uuid":"u1","parentUuid":null,{PLACE},"message":{{"role":"user","content":"{TEXT} "}}}}'
    ],
    "result": [
        f'{{"type":"assistant","uuid":"a1","parentUuid":null,{PLACE},"message":{{"id":"m1","role":"assistant",'
        '"content":[{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"cat"}}]}}',
        f'{{"type":"user","uuid":"u1","parentUuid":"a1",{PLACE},"message":{{"role":"user",'
        f'"content":[{{"type":"tool_result","tool_use_id":"t1","content":"{TEXT}"}}]}}}}',
    ],
    "unknown kind": [f'{{"type":"x","data":"{TEXT}"}}'],
}


@pytest.mark.parametrize("lines", LARGE_LINES.values(), ids=LARGE_LINES)
def test_a_large_line_is_in_memory_three_times(home: Path, lines: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """As bytes, as the decoder's bytes without escapes, and as a string."""
    monkeypatch.setattr(workers, "FOLLOW_FROM", 1 << 40)
    scan(write(home, *prompts(100)), home)
    store = write(home, *lines)
    assert traced_peak(lambda: scan(store, home)) < 3.5 * LARGE


def test_the_texts_of_two_large_lines_are_kept_and_found(home: Path) -> None:
    words = "sixteen létters " * (9 << 20 >> 4)
    texts = [f"{words} first", f"{words} second"]
    log = [
        f'{{"type":"user","uuid":"u{number}","parentUuid":null,{PLACE},"message":{{"role":"user","content":"{text}"}}}}'
        for number, text in enumerate(texts)
    ]
    store = write(home, *log)
    scan(store, home)
    with open_store(store) as opened:
        first, second = [placed.message for placed in opened.messages(f"claude-code:{SESSION}")]
        assert [part.text for part in (*first.parts, *second.parts) if isinstance(part, TextPart)] == texts
    with Searcher(store, search_path(store)) as searcher:
        for word, message in (("first", first), ("second", second)):
            assert [hit.message_id for hit in searcher.search(word, SearchFilter()).hits] == [message.id]
