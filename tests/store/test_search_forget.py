from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from support.plain_agent import session_id
from support.plain_store import at
from support.search_store import SearchStore, call, result, text_message
from turnlog.errors import StoreBusyError
from turnlog.model import Message, TextPart
from turnlog.store.connection import connect
from turnlog.store.search import batch, index_file, overwriter, overwriting
from turnlog.store.search.index_file import IndexFile
from turnlog.store.search.indexer import Indexer
from turnlog.store.search.searcher import Searcher
from turnlog.sync.workers import indexing


@pytest.fixture(params=[batch.FRESH_SIZE, 100, 0], ids=["all fresh", "some fresh", "none fresh"])
def store(tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> SearchStore:
    """A store whose index keeps so many bytes apart before they go where the most is."""
    monkeypatch.setattr(batch, "FRESH_SIZE", request.param)
    return SearchStore(tmp_path)


def key_of(store: SearchStore, name: str) -> int:
    with sqlite3.connect(store.path) as connection:
        return connection.execute("SELECT key FROM sessions WHERE external_id = ?", (name,)).fetchone()[0]


def forget(store: SearchStore, *names: str) -> bool:
    """Forget sessions in the index, then in the store."""
    keys = [key_of(store, name) for name in names]
    with Indexer(store.path, store.search_path) as indexer:
        is_complete = indexer.forget(*keys)
        connection = connect(store.path)
        for key in keys:
            connection.execute("DELETE FROM sessions WHERE key = ?", (key,))
        connection.execute("DELETE FROM messages WHERE key NOT IN (SELECT message_key FROM memberships)")
        connection.close()
        indexer.catch_up()
    return is_complete


def bytes_of(store: SearchStore) -> bytes:
    """Every byte of the search database's files."""
    files = [Path(f"{store.search_path}{suffix}") for suffix in ("", "-wal", "-shm", "-journal")]
    return b"".join([path.read_bytes() for path in files if path.exists()])


def secret_session(store: SearchStore, name: str = "secret") -> None:
    log = store.log(name, cwd="/home/dev/secret")
    log.session(titles={"custom": "The vuvuzela affair"})
    log.message(text_message(f"{name}.1", "the word is xylophonist", "naïvetät 秘密情報", minutes=5))
    log.message(text_message(f"{name}.2", parts=[call("c", "output quizmaster " * 3, command="cat zugzwang.txt")]))
    log.message(text_message(f"{name}.3", parts=[call("d", result("r", "see file", spilled_to="d.txt"))]))
    log.spill("d.txt", b"spilled jackhammer")


SECRETS = ("vuvuzela", "xylophonist", "naivetat", "報", "quizmaster", "zugzwang", "jackhammer")


def traces(store: SearchStore) -> list[str]:
    """Secret words whose end is somewhere in the file (a word's beginning is stored once for all that share it)."""
    data = bytes_of(store)
    return [secret for secret in SECRETS if secret[-5:].encode() in data]


def test_words_of_a_forgotten_session_are_no_longer_in_the_file(store: SearchStore) -> None:
    for number in range(30):
        store.log(f"other{number}").message(text_message(f"o{number}", f"ordinary words {number}", minutes=number))
        store.index()
    secret_session(store)
    store.index()
    assert traces(store) == [*SECRETS]
    assert forget(store, "secret")
    assert traces(store) == []
    assert all(store.found(secret) == [] for secret in SECRETS)
    assert len(store.found("ordinary")) == 30
    with Indexer(store.path, store.search_path) as indexer:
        assert indexer.unindexed() == 0


def test_words_that_others_say_too_are_still_found(store: SearchStore) -> None:
    secret_session(store)
    store.log("open").message(text_message("public", "a xylophonist in public"))
    store.index()
    assert forget(store, "secret")
    assert store.found("xylophonist") == ["public"]


def test_a_searcher_that_is_open_does_not_hold_up_forgetting(
    store: SearchStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_file, "BUSY_TIMEOUT_SECONDS", 0.5)
    secret_session(store)
    for number in range(40):
        store.log(f"other{number}").message(text_message(f"o{number}", "ordinary words", minutes=number))
    store.index()
    with Searcher(store.path, store.search_path) as searcher:
        assert len(searcher.search("ordinary", limit=5).hits) == 5
        assert len(searcher.search("ordinary", sort="relevance", limit=5).hits) == 5
        assert forget(store, "secret")
        assert traces(store) == []
        assert len(searcher.search("ordinary", limit=50).hits) == 40


def test_messages_that_others_hold_stay_with_them(store: SearchStore) -> None:
    for name in ("gone", "stays"):
        log = store.log(name, cwd=f"/src/{name}")
        log.message(text_message("shared", "word of both"), copied=name == "stays")
        log.message(text_message(name, "word of its own", minutes=1))
    store.index()
    assert forget(store, "gone")
    assert store.found("word") == ["stays", "shared"]
    assert store.found("word", session=session_id("stays")) == ["stays", "shared"]
    assert store.found("word", project="stays") == ["stays", "shared"]
    assert store.found("word", project="gone") == []


def test_sessions_that_share_messages_are_forgotten_together(store: SearchStore) -> None:
    for name in ("one", "two"):
        store.log(name).message(text_message("shared", "word xylophonist"))
    store.index()
    assert forget(store, "one", "two")
    assert b"lophonist" not in bytes_of(store)


def test_the_beginning_of_a_text_that_grew_goes_too(store: SearchStore) -> None:
    log = store.log()
    for text in ("a xylopho", "a xylophonist and a quizm", "a xylophonist and a quizmaster"):
        log.message(Message(id="m", role="assistant", created_at=at(0), parts=(TextPart(id="m.0", text=text),)))
        store.index()
    assert forget(store, "one")
    data = bytes_of(store)
    assert b"lopho" not in data
    assert b"quizm" not in data


def test_words_of_a_text_that_became_another_go_with_the_whole_index(store: SearchStore) -> None:
    log = store.log()
    store.log("other").message(text_message("o", "ordinary words"))
    for text in ("xylophonist", "something else entirely"):
        log.message(Message(id="m", role="assistant", created_at=at(0), parts=(TextPart(id="m.0", text=text),)))
        store.index()
    assert b"lophonist" in bytes_of(store)
    assert not forget(store, "one")
    assert b"lophonist" not in bytes_of(store)
    assert store.found("ordinary") == ["o"]
    assert store.found("entirely") == []


def test_flags_and_moves_leave_nothing_behind(store: SearchStore) -> None:
    """A call that failed later, a project that was known later: markers come and go, the words go with the rest."""
    log = store.log()
    log.message(text_message("m", role="assistant", minutes=None, parts=[call("c", command="zugzwang")]))
    store.index()
    log.result("c", result("r", "quizmaster", "error"), message_id="m")
    log.session(project_path="/src/late", cwd="/src/late")
    store.index()
    log.message(text_message("m", role="assistant", minutes=1))
    store.index()
    assert store.found("zugzwang", failed=True, project="late") == ["m"]
    assert forget(store, "one")
    data = bytes_of(store)
    assert b"gzwang" not in data
    assert b"izmaster" not in data
    with Indexer(store.path, store.search_path):
        pass


def test_forgetting_what_is_not_indexed_changes_nothing(store: SearchStore) -> None:
    store.log("indexed").message(text_message("a", "word"))
    store.index()
    store.log("not").message(text_message("b", "word xylophonist", minutes=1))
    store.read()
    assert forget(store, "not")
    assert store.found("word") == ["a"]
    assert b"lophonist" not in bytes_of(store)


def test_forgetting_in_a_file_that_stays_busy_is_an_error(store: SearchStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_file, "BUSY_TIMEOUT_SECONDS", 0.05)
    secret_session(store)
    store.index()
    writer = index_file.open_for_writing(store.search_path)
    writer.execute("BEGIN IMMEDIATE")
    with Indexer(store.path, store.search_path) as indexer, pytest.raises(StoreBusyError, match="for too long"):
        indexer.forget(key_of(store, "secret"))
    writer.execute("ROLLBACK")
    writer.execute("BEGIN")
    writer.execute("SELECT count(*) FROM documents").fetchone()
    # A reader in the middle of something keeps the old pages in the log.
    with Indexer(store.path, store.search_path) as indexer, pytest.raises(StoreBusyError, match="forgotten words"):
        indexer.forget(key_of(store, "secret"))
    writer.close()
    with Indexer(store.path, store.search_path) as indexer:
        assert indexer.forget(key_of(store, "secret"))
    assert traces(store) == []


# -- in a process of its own, because the index is large


@pytest.fixture
def large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SearchStore:
    """A store with a secret session, whose index is too large to be overwritten while somebody waits."""
    monkeypatch.setattr(batch, "FRESH_SIZE", 100)
    monkeypatch.setattr(overwriting, "LARGEST_AT_ONCE", 0)
    monkeypatch.setattr(overwriting, "REST_SECONDS", 0.0)
    store = SearchStore(tmp_path)
    for number in range(10):
        store.log(f"other{number}").message(text_message(f"o{number}", f"ordinary words {number}", minutes=number))
        store.index()
    secret_session(store)
    store.index()
    return store


@pytest.fixture
def without_process(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Path]]:
    """The process ends as soon as it is started; its stores."""
    started: list[Path] = []
    with monkeypatch.context() as patch:

        def start(store_path: Path, search_path: Path) -> None:
            started.append(store_path)

        patch.setattr(overwriting, "start", start)
        yield started


def is_marked(store: SearchStore) -> bool:
    with closing(sqlite3.connect(store.search_path)) as connection:
        return overwriting.marked_at(connection) is not None


def wait_until_overwritten(store: SearchStore) -> None:
    process = overwriting.started.pop()
    assert process.wait(60) == 0
    assert not is_marked(store)


def test_forgotten_words_leave_answers_at_once_and_the_file_soon(large: SearchStore) -> None:
    assert forget(large, "secret")
    assert all(large.found(secret) == [] for secret in SECRETS)
    wait_until_overwritten(large)
    assert traces(large) == []
    assert len(large.found("ordinary")) == 10


def test_a_sync_goes_on_when_the_process_was_killed(large: SearchStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overwriting, "REST_SECONDS", 100.0)
    assert forget(large, "secret")
    process = overwriting.started.pop()
    process.kill()
    process.wait()
    assert is_marked(large)
    assert traces(large) == [*SECRETS]
    assert all(large.found(secret) == [] for secret in SECRETS)
    monkeypatch.setattr(overwriting, "REST_SECONDS", 0.0)
    with indexing(large.path, 0, lambda left: None):
        pass
    wait_until_overwritten(large)
    assert traces(large) == []


def test_what_is_forgotten_and_written_while_the_file_is_overwritten(
    large: SearchStore, without_process: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    large.log("other").message(text_message("another", "a fjordvogue", minutes=70))
    large.index()
    forget(large, "secret")
    steps: list[str] = []
    rewrite, merge = IndexFile.rewrite, IndexFile.merge

    def pause(seconds: float) -> None:
        if not steps:
            steps.append("forget")
            forget(large, "other")
            large.log("new").message(text_message("new", "ordinary news", minutes=80))
            large.index()

    def merge_after_pause(file: IndexFile, pages: int) -> bool:
        return not steps or merge(file, pages)

    def rewrite_and_count(file: IndexFile) -> None:
        steps.append("rewrite")
        rewrite(file)

    monkeypatch.setattr(overwriter.time, "sleep", pause)
    monkeypatch.setattr(IndexFile, "merge", merge_after_pause)
    monkeypatch.setattr(IndexFile, "rewrite", rewrite_and_count)
    overwriter.overwrite(large.path, large.search_path, 0)
    assert steps == ["forget", "rewrite"]
    assert not is_marked(large)
    assert traces(large) == []
    assert b"dvogue" not in bytes_of(large)
    assert len(large.found("ordinary")) == 11


def test_words_forgotten_while_the_file_is_rewritten_are_overwritten_too(
    large: SearchStore, without_process: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    large.log("other").message(text_message("another", "a fjordvogue", minutes=70))
    large.index()
    forget(large, "other")
    rewrite, times = IndexFile.rewrite, list[int]()

    def rewrite_and_forget(file: IndexFile) -> None:
        rewrite(file)
        times.append(len(traces(large)))
        if len(times) == 1:
            forget(large, "secret")

    monkeypatch.setattr(IndexFile, "rewrite", rewrite_and_forget)
    overwriter.overwrite(large.path, large.search_path, 0)
    assert times == [len(SECRETS), 0]
    assert traces(large) == []


def test_an_index_that_is_made_anew_is_overwritten_too(large: SearchStore, without_process: list[Path]) -> None:
    forget(large, "secret")
    with Indexer(large.path, large.search_path) as indexer:
        indexer.reset()
        indexer.catch_up()
        assert is_marked(large)
        indexer.overwrite()
    assert without_process == [large.path, large.path]
    overwriter.overwrite(large.path, large.search_path, 0)
    assert traces(large) == []
    assert len(large.found("ordinary")) == 10


def test_nobody_waits_while_the_file_is_rewritten(
    large: SearchStore, without_process: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(overwriting, "LONGEST_STEP", 0.0)
    forget(large, "secret")
    rewrite = IndexFile.rewrite

    def write_meanwhile(file: IndexFile) -> None:
        large.log("new").message(text_message("new", "ordinary news", minutes=80))
        file.connection.execute("BEGIN IMMEDIATE")
        large.index()
        assert len(large.found("ordinary")) == 10
        file.connection.execute("ROLLBACK")
        rewrite(file)

    monkeypatch.setattr(IndexFile, "rewrite", write_meanwhile)
    overwriter.overwrite(large.path, large.search_path, 0)
    assert len(large.found("ordinary")) == 11


def test_one_process_overwrites_at_a_time(large: SearchStore, without_process: list[Path]) -> None:
    forget(large, "secret")
    with overwriting.alone(large.search_path, 0) as is_alone, overwriting.alone(large.search_path, 0) as is_second:
        assert (is_alone, is_second) == (True, False)
    overwriter.overwrite(large.path, large.search_path, 0)
    assert not is_marked(large)
    assert [path.name for path in large.search_path.parent.glob("*-overwriting")] == []
