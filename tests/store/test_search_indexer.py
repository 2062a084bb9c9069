from __future__ import annotations

import sqlite3
import threading
import time
from pathlib import Path

import msgspec
import pytest

from support.plain_agent import session_id
from support.plain_store import at
from support.search_store import SearchStore, call, result, text_message
from turnlog.errors import StoreError
from turnlog.model import BlobRef, FilePart, Message, ReasoningPart, TextPart
from turnlog.store.connection import connect
from turnlog.store.search import batch, blocks, documents, index_file
from turnlog.store.search.documents import MAX_DOCUMENT_SIZE
from turnlog.store.search.indexer import Indexer

IMAGE = FilePart(media_type="image/png", blob=BlobRef(sha256="0" * 64, size=1))


@pytest.fixture(params=[batch.FRESH_SIZE, 100, 0], ids=["all fresh", "some fresh", "none fresh"])
def store(tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> SearchStore:
    """A store whose index keeps so many bytes apart before they go where the most is."""
    monkeypatch.setattr(batch, "FRESH_SIZE", request.param)
    return SearchStore(tmp_path)


def entries_of(store: SearchStore) -> int:
    """Documents that are in the index under their present text."""
    with sqlite3.connect(store.search_path) as connection:
        layouts = [blocks.unpack(packed) for (packed,) in connection.execute("SELECT layout FROM documents")]
    return len([entry for entries in layouts for entry in entries if entry and not entry.flags & blocks.STALE])


def words_in(store: SearchStore) -> set[str]:
    """Every word in the index, shown or not, without markers."""
    with sqlite3.connect(store.search_path) as connection:
        found: set[str] = set()
        for table in ("words", "fresh"):
            connection.execute(f"INSERT INTO {table} ({table}) VALUES ('optimize')")
            connection.execute(f"CREATE VIRTUAL TABLE temp.{table}_rows USING fts5vocab ('main', '{table}', 'row')")
            found |= {term for (term,) in connection.execute(f"SELECT term FROM {table}_rows")}
    return {term for term in found if term[0].isalnum()}


def test_an_index_follows_what_is_read(store: SearchStore) -> None:
    log = store.log()
    log.message(text_message("a", "alpha"))
    assert store.index() == 1
    log.message(text_message("b", "beta", minutes=1))
    store.read()
    with Indexer(store.path, store.search_path) as indexer:
        assert indexer.unindexed() == 1
        assert indexer.step() == 1
        assert indexer.unindexed() == 0
        assert indexer.step() == 0
    assert store.found("alpha OR beta") == ["b", "a"]


def test_one_step_indexes_one_batch(store: SearchStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch, "BATCH_SIZE", 100)
    log = store.log()
    for number in range(10):
        log.message(text_message(f"m{number}", "word " * 8, minutes=number))
    store.read()
    with Indexer(store.path, store.search_path) as indexer:
        steps = list[int]()
        while added := indexer.step():
            steps.append(added)
    assert steps == [3, 3, 3, 1]
    assert len(store.found("word")) == 10


def test_a_late_result_is_found_and_nothing_is_indexed_twice(store: SearchStore) -> None:
    log = store.log()
    log.message(text_message("m", "before", role="assistant", parts=[call("c", command="make all")]))
    store.index()
    log.result("c", result("r", "No rule to make target", "error"), message_id="m")
    store.index()
    assert store.fields("target") == [(1, "output")]
    assert store.fields("make") == [(1, "output"), (1, "input")]
    assert entries_of(store) == 3


def test_a_call_that_fails_later_is_marked_as_failed(store: SearchStore) -> None:
    log = store.log()
    log.message(text_message("m", role="assistant", parts=[call("c", command="make all")]))
    store.index()
    assert store.found("make", failed=False) == ["m"]
    log.result("c", result("r", "broken", "error"), message_id="m")
    store.index()
    assert store.fields("make", failed=True) == [(0, "input")]
    assert store.found("make", failed=False) == []
    log.result("c", result("r2", "mended"), message_id="m")
    store.index()
    assert store.found("make", failed=True) == []
    assert store.fields("make", failed=False) == [(0, "input")]
    assert store.found("broken") == store.found("mended") == ["m"]


def test_an_image_that_comes_later_is_noted(store: SearchStore) -> None:
    log = store.log()
    log.message(text_message("m", "look at this"))
    store.index()
    assert store.found("look", has_image=True) == []
    log.message(text_message("m", parts=[msgspec.structs.replace(IMAGE, id="m.1")]))
    store.index()
    assert store.found("look", has_image=True) == ["m"]


def test_a_text_that_grows_replaces_its_beginning(store: SearchStore) -> None:
    log = store.log()
    for text in ("unfin", "unfinished sent", "unfinished sentences end"):
        log.message(Message(id="m", role="assistant", created_at=at(0), parts=(TextPart(id="m.0", text=text),)))
        store.index()
    assert store.found("sentences") == ["m"]
    assert store.found("unfin OR sent") == []
    assert words_in(store) == {"unfinished", "sentences", "end"}


def test_a_text_that_became_another_never_shows(store: SearchStore) -> None:
    log = store.log()
    log.message(Message(id="m", role="assistant", created_at=at(0), parts=(TextPart(id="m.0", text="aardvark"),)))
    store.index()
    log.message(Message(id="m", role="assistant", created_at=at(0), parts=(TextPart(id="m.0", text="zebra crossing"),)))
    store.read()
    # Also not while the index does not know yet.
    assert store.found("aardvark") == []
    store.index()
    assert store.found("aardvark") == []
    assert store.found("zebra") == ["m"]


def test_a_part_that_moves_in_its_message_is_found_where_it_is(store: SearchStore) -> None:
    log = store.log()
    log.message(Message(id="m", role="assistant", created_at=at(0), parts=(TextPart(id="m.1", text="answer"),)))
    store.index()
    assert store.fields("answer") == [(0, "text")]
    log.message(Message(id="m", role="assistant", parts=(ReasoningPart(id="m.0", text="thought"),)))
    store.index()
    assert store.fields("answer") == [(1, "text")]
    assert store.fields("thought") == [(0, "reasoning")]
    assert entries_of(store) == 2


def test_a_time_that_becomes_known_puts_a_message_in_its_place(store: SearchStore) -> None:
    log = store.log()
    log.message(text_message("timeless", "word", minutes=None))
    log.message(text_message("old", "word", minutes=1))
    store.index()
    assert store.found("word") == ["old", "timeless"]
    log.message(text_message("timeless", "word", minutes=2))
    store.index()
    assert store.found("word") == ["timeless", "old"]
    assert store.found("word", since=at(2)) == ["timeless"]
    log.message(text_message("timeless", "word", minutes=0))
    store.index()
    assert store.found("word") == ["old", "timeless"]
    assert store.found("word", until=at(1)) == ["timeless"]
    assert words_in(store) == {"word"}


@pytest.mark.parametrize("fresh_size", [0, 1 << 20])
def test_a_role_that_becomes_another_stays_so_whatever_changes_later(
    store: SearchStore, monkeypatch: pytest.MonkeyPatch, fresh_size: int
) -> None:
    """Also when what was written lately is moved into the large table."""
    monkeypatch.setattr(batch, "FRESH_SIZE", fresh_size)
    log = store.log()
    for role, texts in (("user", ["word"]), ("assistant", ["word"]), ("assistant", ["word", "more"])):
        log.message(text_message("m", *texts, role=role))
        store.index()
    monkeypatch.setattr(batch, "FRESH_SIZE", 0)
    log.message(text_message("other", "something else"))
    store.index()
    assert store.found("word", role="assistant") == ["m"]
    assert store.found("word", role="user") == []


def test_more_documents_than_a_block_holds(store: SearchStore) -> None:
    log = store.log()
    texts = [f"common word{number}" for number in range(3 * index_file.SLOTS + 1)]
    log.message(text_message("m", *texts))
    log.message(text_message("n", "common", minutes=0.001))
    store.index()
    assert store.fields("common")[0] == (0, "text")
    assert sorted(sequence for sequence, _ in store.fields("common")[1:]) == list(range(len(texts)))
    assert all(store.fields(f"word{number}") == [(number, "text")] for number in range(len(texts)))


def test_words_after_the_300_000th_character_of_an_output(store: SearchStore) -> None:
    output = "filler " * 50_000 + "latecomer"
    store.log().message(text_message("m", parts=[call("c", output, path="x")]))
    store.index()
    (hit,) = store.hits("latecomer")
    assert hit.field == "output"
    assert hit.snippet.endswith("filler latecomer")
    assert hit.snippet[slice(*hit.marks[0])] == "latecomer"


def test_a_text_of_many_megabytes_is_searched_in_pieces(store: SearchStore) -> None:
    lines = b"".join(b"%d line of a very long output\n" % number for number in range(3 * MAX_DOCUMENT_SIZE // 32))
    store.log().message(text_message("m", parts=[call("c", result("r", "preview", spilled_to="c.txt"))]))
    store.log().spill("c.txt", lines + b"the very last wombat\n")
    store.index()
    (hit,) = store.hits("wombat")
    assert hit.snippet.endswith("the very last wombat")
    assert store.fields("preview") == [(0, "output")]
    assert store.fields("output") == [(0, "output")]


def test_pieces_of_a_text_that_grows_are_compared_one_by_one(
    store: SearchStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(documents, "MAX_DOCUMENT_SIZE", 100)
    lines = [f"line {number} of it, number{number}\n" for number in range(40)]
    log = store.log()
    log.message(text_message("m", parts=[call("c", result("r", "preview", spilled_to="c.txt"))]))
    log.spill("c.txt", "".join(lines[:20]).encode())
    store.index()
    before = entries_of(store)
    assert before > 4
    log.spill("c.txt", "".join(lines).encode())
    store.index()
    assert before < entries_of(store) < 3 * before
    assert all(store.fields(f"number{number}") == [(0, "output")] for number in range(40))
    assert {word for word in words_in(store) if word.startswith("number")} == {f"number{n}" for n in range(40)}


def test_an_output_in_a_file_of_its_own_is_found_when_it_comes(store: SearchStore) -> None:
    log = store.log()
    log.message(text_message("m", parts=[call("c", result("r", "a preview", spilled_to="c.txt"))]))
    store.index()
    assert store.found("numbat") == []
    log.spill("c.txt", b"a preview of\nthe whole numbat")
    store.index()
    assert store.found("numbat") == ["m"]
    assert store.hits("numbat")[0].snippet == "a preview a preview of the whole numbat"
    assert store.found("preview") == ["m"]


def test_an_output_spilled_by_another_session_is_found(store: SearchStore) -> None:
    """A fork was read first: its copy of the message knows of no file."""
    message = text_message("m", parts=[call("c", result("r", "a preview", spilled_to="c.txt"))])
    store.log("fork").message(message)
    store.log("origin").spill("c.txt", b"the whole numbat")
    store.index()
    assert store.found("numbat") == []
    store.log("origin").message(message)
    store.index()
    assert store.found("numbat") == ["m"]


def test_a_file_name_and_strings_inside_an_input_are_found(store: SearchStore) -> None:
    parts = [
        call("c", file_path="/src/module_one.py", edits=[{"new": "quokka"}]),
        FilePart(media_type="text/csv", filename="ledger.csv"),
    ]
    store.log().message(text_message("m", parts=parts))
    store.index()
    assert store.fields("module_one") == [(0, "input")]
    assert store.fields("quokka") == [(0, "input")]
    assert store.fields("ledger.csv") == [(1, "file")]
    assert store.found("file_path") == []


def test_a_project_that_becomes_known_later_filters_what_is_indexed(store: SearchStore) -> None:
    store.log().message(text_message("m", "word"))
    store.index()
    assert store.found("word", project="/home/dev/late") == []
    log = store.log(cwd="/home/dev/late")
    store.index()
    assert store.found("word", project="/home/dev/late") == ["m"]
    log.message(text_message("n", "word", minutes=1))
    store.index()
    assert store.found("word", project="late") == ["n", "m"]


def test_an_index_that_is_deleted_is_made_anew(store: SearchStore) -> None:
    store.log().message(text_message("m", "word"))
    store.index()
    with Indexer(store.path, store.search_path) as indexer:
        index_file.remove(store.search_path)
        assert indexer.unindexed() == 1
        assert indexer.catch_up() == 1
    assert store.found("word") == ["m"]


@pytest.mark.parametrize("damage", ["garbage", "middle", "other version"])
def test_a_damaged_or_foreign_index_is_made_anew(store: SearchStore, damage: str) -> None:
    log = store.log()
    for number in range(50):
        log.message(text_message(f"m{number}", f"word {number} " + "text " * 500, minutes=number))
    store.index()
    if damage == "garbage":
        index_file.remove(store.search_path)
        store.search_path.write_bytes(b"this is no database" * 1000)
    elif damage == "middle":
        data = bytearray(store.search_path.read_bytes())
        data[16384:] = b"\xa5" * (len(data) - 16384)
        store.search_path.write_bytes(data)
    else:
        with sqlite3.connect(store.search_path) as connection:
            connection.execute("PRAGMA user_version = 99")
            connection.execute("CREATE TABLE of_another_version (x)")
        connection.close()
    log.message(text_message("new", "word", minutes=60))
    store.index()
    assert len(store.found("word")) == 51


def test_an_index_whose_tables_are_others_is_made_anew(store: SearchStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where nobody thought of giving them another number."""
    store.log().message(text_message("m", "word"))
    with monkeypatch.context() as older:
        tables = tuple(table.replace(" fresh_size INTEGER", " fresh_bytes INTEGER") for table in index_file.TABLES)
        older.setattr(index_file, "TABLES", tables)
        older.setattr(index_file, "VERSION", index_file.version_of(tables))
        index_file.open_for_writing(store.search_path).close()
    store.read()
    assert store.search("word").unindexed == 1
    store.index()
    assert store.found("word") == ["m"]


def test_an_index_of_another_store_is_made_anew(store: SearchStore) -> None:
    store.log().message(text_message("m", "old words"))
    store.index()
    store.path.unlink()
    (store.home / "one.jsonl").unlink()
    time.sleep(0.002)
    store.log("two").message(text_message("n", "new words"))
    store.index()
    assert store.found("words") == ["n"]
    assert store.found("old") == []


def test_reset_empties_an_index(store: SearchStore) -> None:
    store.log().message(text_message("m", "word"))
    store.index()
    with Indexer(store.path, store.search_path) as indexer:
        indexer.reset()
        assert store.found("word") == []
        assert indexer.catch_up() == 1
    assert store.found("word") == ["m"]


def test_what_changes_while_a_batch_is_open_is_indexed_once(store: SearchStore) -> None:
    log = store.log()
    log.message(text_message("m", parts=[call("c", command="make")]))
    store.read()
    stages = ["first", "second", "finished"]

    def finished(seconds: float) -> bool:
        """Lets the log grow while the indexer waits for more."""
        if not seconds or not stages:
            return not stages
        stage = stages.pop(0)
        log.result("c", result(stage, f"{stage} output"), message_id="m")
        store.read()
        return False

    with Indexer(store.path, store.search_path) as indexer:
        indexer.follow(finished)
    assert store.fields("first second finished") == [(0, "output")]
    assert entries_of(store) == 2
    assert words_in(store) == {"make", "first", "second", "finished", "output"}


def test_two_indexers_index_nothing_twice(store: SearchStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch, "BATCH_SIZE", 400)
    log = store.log()
    for number in range(200):
        log.message(text_message(f"m{number}", f"word number {number}", minutes=number))
    store.read()
    counts: list[int] = []

    def run() -> None:
        with Indexer(store.path, store.search_path) as indexer:
            counts.append(indexer.catch_up())

    with Indexer(store.path, store.search_path):
        threads = [threading.Thread(target=run) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sum(counts) == 200
    assert entries_of(store) == 200
    assert len(store.found("word")) == 200


def test_a_step_that_may_not_wait_leaves_the_work_to_who_is_at_it(store: SearchStore) -> None:
    store.log().message(text_message("m", "word"))
    store.read()
    with Indexer(store.path, store.search_path) as indexer:
        other = sqlite3.connect(store.search_path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        assert indexer.step(wait=False) == 0
        other.execute("ROLLBACK")
        other.close()
        assert indexer.step(wait=False) == 1


def test_sessions_that_are_being_forgotten_are_not_indexed(store: SearchStore) -> None:
    for name in ("one", "two"):
        log = store.log(name)
        log.message(text_message("shared", "word for both"))
        log.message(text_message(name, "word", minutes=1))
    store.read()
    connection = connect(store.path)
    connection.execute("INSERT INTO tombstones VALUES (?, 0)", (session_id("one"),))
    connection.close()
    store.index()
    assert store.found("word") == ["two", "shared"]
    assert store.found("word", session=session_id("two")) == ["two", "shared"]


def test_many_small_commits_do_not_make_many_segments(store: SearchStore) -> None:
    log = store.log()
    store.read()
    with Indexer(store.path, store.search_path) as indexer:
        for number in range(60):
            log.message(text_message(f"m{number}", f"word{number} common", minutes=number))
            store.read()
            indexer.step()
        indexer.compact(5)
    with sqlite3.connect(store.search_path) as connection:
        assert connection.execute("SELECT count(DISTINCT segid) FROM words_idx").fetchone()[0] < 16
    assert len(store.found("common")) == 60


def test_a_store_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot read the store"):
        Indexer(tmp_path / "absent.db", tmp_path / "search.db")


def test_a_folder_that_cannot_be_written_is_an_error(store: SearchStore, tmp_path: Path) -> None:
    store.read()
    with pytest.raises(StoreError, match="cannot open the search database"):
        Indexer(store.path, tmp_path / "absent" / "search.db")
