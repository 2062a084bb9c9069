"""What an agent printed while it ran counts only where the session has no log of its own, whichever was read first."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.toy_agent import line
from support.toy_store import ToyStore, in_any_order
from turnlog.agents.base import Source, SourceKind
from turnlog.store import open_store
from turnlog.store.connection import connect
from turnlog.store.search.base import search_path
from turnlog.store.search.indexer import Indexer
from turnlog.store.search.searcher import Searcher
from turnlog.store.sources import Fingerprint, SourceState, imports_folder, save_source
from turnlog.store.sqlite.forget import forget_for_good
from turnlog.store.writing.transaction import SourceRow, Transaction

PROMPT = line(kind="prompt", id="r1", message="m1", text="please", at=1)
ANSWER = line(
    kind="text", id="r2", parent="r1", message="m2", text="logged", at=2, model="opus", tokens=[10, 5], stop="end"
)
LOG = PROMPT + ANSWER

SEEN = (
    line(kind="text", message="item1", text="printed", at=2, model="opus", tokens=[7, 3], stop="end")
    + line(kind="call", message="item1", block=1, call="c1", tool="Bash", at=2)
    + line(kind="result", call="c1", text="output", status="error", at=3)
    + line(kind="note", at=4)
)
"""The same answer under another id, as a stream prints it."""


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ToyStore]:
    with ToyStore(tmp_path) as found:
        yield found


def found(store: ToyStore, word: str) -> list[str]:
    """Ids of the messages in which a word is found."""
    with Indexer(store.path, search_path(store.path)) as indexer:
        indexer.catch_up()
    with Searcher(store.path, search_path(store.path)) as searcher:
        return [hit.message_id for hit in searcher.search(word).hits]


def test_places_are_those_of_the_source_that_comes_first_in_the_table(store: ToyStore) -> None:
    """Whatever the files are called: their paths decide only between two of one kind."""
    kinds = [SourceKind.SESSION, SourceKind.STREAM, SourceKind.HOOKS]
    rows: list[SourceRow] = []
    for key, (kind, name) in enumerate(zip(kinds, "zyx", strict=True), 1):
        rows.append(SourceRow(key, "toy", f"/{name}", 0, "toy:s", kind))
        source = Source(agent="toy", path=f"/{name}", root="/", kind=kind, session_id="toy:s")
        state = SourceState(key=key, fingerprint=Fingerprint(0, 0, 0, 0), is_new=True)
        save_source(store.connection, source, state, now=0)

    def outranked_by(source: SourceRow) -> list[int]:
        transaction = Transaction(store.connection, lambda usage, model, provider, at: None, "1")
        transaction.use_source(source)
        return [other.key for other in rows if transaction.outranks(other.key, 0, "toy:s")]

    assert [outranked_by(row) for row in rows] == [[2, 3], [3], []]


def test_a_stream_alone_is_a_session_like_any_other(store: ToyStore) -> None:
    store.add("s.stream", SEEN)
    assert store.session("s", "messages, steps, tool_calls, failed_tool_calls, events, calls, input, output") == (
        *(1, 1, 1, 1, 1),
        *(1, 7, 3),
    )
    assert store.billed_sessions() == {"item1": "s"}
    assert found(store, "printed") == found(store, "output") == ["item1"]


def test_what_only_a_stream_has_is_superseded_by_the_log(tmp_path: Path) -> None:
    files = {"s.stream": SEEN, "s.log": LOG}

    def look(store: ToyStore) -> None:
        assert store.fates("s") == {"m1": "active", "m2": "active"}
        assert store.billed_sessions() == {"m1": "s", "m2": "s"}
        assert store.session("s", "messages, steps, tool_calls, failed_tool_calls, events, calls, input, output") == (
            *(2, 1, 0, 0, 0),
            *(1, 10, 5),
        )
        assert store.row("SELECT sum(calls), sum(input), sum(output) FROM usage") == (1, 10, 5)
        assert store.row("SELECT count(*) FROM parts WHERE type = 'tool-call'") == 0
        assert found(store, "logged") == ["m2"]
        assert found(store, "printed") == found(store, "output") == []
        with open_store(store.path) as opened:
            (place,) = opened.memberships("item1")
            assert (place.fate, place.fate_cause, place.is_billed) == ("superseded", str(store.home / "s.log"), False)
            assert [placed.message.id for placed in opened.messages("toy:s")] == ["m1", "m2"]

    in_any_order(tmp_path, files, look)


def test_what_log_and_stream_both_have_is_where_the_log_has_it(tmp_path: Path) -> None:
    """Also when the stream knew it first, and when the log comes to it only later."""
    shared = line(
        kind="text", id="r3", parent="r2", message="m3", text="both", at=5, model="opus", tokens=[1, 1], stop="end"
    )
    files = {"s.stream": SEEN + shared, "s.log": LOG + line(kind="title", text="longer", source="custom") + shared}

    def look(store: ToyStore) -> None:
        assert store.fates("s") == {"m1": "active", "m2": "active", "m3": "active"}
        assert (
            store.row(
                "SELECT f.kind FROM memberships s JOIN messages m ON m.key = s.message_key"
                " JOIN sources f ON f.key = s.source_key WHERE m.external_id = 'm3'"
            )
            == "session"
        )
        assert store.row("SELECT calls, input, messages FROM sessions") == (2, 11, 3)
        assert store.row("SELECT count(*) FROM superseded") == 1

    in_any_order(tmp_path, files, look)


def test_turns_are_those_of_the_log(tmp_path: Path) -> None:
    more = b"".join(line(kind="prompt", message=f"item{number}", text="more", at=number) for number in (2, 3))

    def look(store: ToyStore) -> None:
        assert store.session("s", "turns, prompts") == (1, 1)

    in_any_order(tmp_path, {"s.log": LOG, "s.stream": more + SEEN}, look)


def test_a_log_that_comes_to_a_message_later_has_it_counted_again(store: ToyStore) -> None:
    store.add("s.log", LOG)
    store.add("s.stream", SEEN)
    assert found(store, "printed") == []
    store.add("s.log", SEEN)
    assert store.billed_sessions() == {"m1": "s", "m2": "s", "item1": "s"}
    assert store.session("s", "messages, tool_calls, calls, input") == (3, 1, 2, 17)
    assert store.row("SELECT count(*) FROM superseded") == 0
    assert store.row("SELECT count(*) FROM parts WHERE type = 'tool-call'") == 1
    assert found(store, "printed") == ["item1"]
    store.dump()


def test_two_streams_of_one_session_are_both_shown(tmp_path: Path) -> None:
    other = line(kind="text", message="item2", text="second", at=9, model="opus", tokens=[1, 1], stop="end")

    def look(store: ToyStore) -> None:
        assert store.billed_sessions() == {"item1": "s", "item2": "s"}

    in_any_order(tmp_path, {"s.stream": SEEN, "again/s.stream": other}, look)


def test_a_branch_in_the_log_is_none_of_the_streams_business(tmp_path: Path) -> None:
    """What comes later in the stream's file than anything in the log is no end of the active branch."""
    back = line(kind="prompt", id="r9", parent="r1", message="m9", text="again", at=9)
    far = line(kind="note", text="x" * 5000) + SEEN

    def look(store: ToyStore) -> None:
        assert store.fates("s") == {"m1": "active", "m2": "rewound < m9", "m9": "active"}

    in_any_order(tmp_path, {"s.stream": far, "s.log": LOG + back}, look)


def test_forgetting_a_session_takes_along_what_gave_way(store: ToyStore) -> None:
    store.add("s.log", LOG)
    kept = imports_folder(store.path) / "s.stream"
    kept.parent.mkdir()
    kept.write_bytes(SEEN)
    store.home = kept.parent
    store.read("s.stream")
    found(store, "printed")
    forget_for_good(store.path, "toy:s")
    with connect(store.path, read_only=True) as connection:
        for table in ("messages", "sources", "superseded", "streams", "archive"):
            assert connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] == 0, table
    connection.close()
    assert not kept.exists()
    assert b"printed" not in store.path.read_bytes() + search_path(store.path).read_bytes()
