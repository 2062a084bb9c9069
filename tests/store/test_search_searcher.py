from __future__ import annotations

import sqlite3
import threading
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.plain_agent import session_id
from support.plain_store import at
from support.profiles import examples
from support.search_store import SearchStore, call, text_message
from turnlog.errors import StoreError
from turnlog.model import BlobRef, FilePart, Message, ReasoningPart, TextPart
from turnlog.store.connection import connect
from turnlog.store.search import batch, index_file, vocabulary
from turnlog.store.search.base import SearchFilter, search_path
from turnlog.store.search.matches import MAX_COUNTED
from turnlog.store.search.searcher import Searcher

IMAGE = FilePart(media_type="image/png", filename="shot.png", blob=BlobRef(sha256="0" * 64, size=1))


@pytest.fixture
def store(tmp_path: Path) -> SearchStore:
    return SearchStore(tmp_path)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> SearchStore:
    """Two projects, three sessions, every role and field; nothing changes it."""
    store = SearchStore(tmp_path_factory.mktemp("library"))
    one = store.log("one", cwd="/home/dev/atlas")
    one.message(text_message("ask", "why does the kiwi crash", minutes=0))
    one.message(
        Message(
            id="try",
            role="assistant",
            created_at=at(1),
            parts=(
                ReasoningPart(text="the kiwi may be unripe"),
                TextPart(text="Let me look at the kiwi."),
                call("1", "kiwi.py: ECONNRESET_4711 in open_socket", command="cat kiwi.py"),
                call("2", "kiwi failed", tool="mcp__fruit__Peel", status="error", what="kiwi"),
            ),
        )
    )
    one.message(text_message("look", "kiwi in a picture", minutes=2, parts=[IMAGE]))
    two = store.log("two", cwd="/home/dev/atlas")
    two.message(text_message("rule", "treat the kiwi well", minutes=3, role="system"))
    two.message(text_message("hint", "reminder: kiwi", minutes=4, role="developer"))
    other = store.log("other", cwd="/home/dev/billing")
    other.message(text_message("bill", "the kiwi costs a dollar; 使用向量数据库检索历史会话", minutes=5))
    store.index()
    return store


ALL = ["bill", "hint", "rule", "look", "try", "ask"]


def once(ids: list[str]) -> list[str]:
    return list(dict.fromkeys(ids))


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({}, ALL),
        ({"agent": "plain"}, ALL),
        ({"agent": "codex"}, []),
        ({"project": "/home/dev/atlas"}, ALL[1:]),
        ({"project": "atlas"}, ALL[1:]),
        ({"project": "absent"}, []),
        ({"session": session_id("two")}, ["hint", "rule"]),
        ({"session": session_id("absent")}, []),
        ({"session": "nonsense"}, []),
        ({"role": "user"}, ["bill", "look", "ask"]),
        ({"role": "system"}, ["rule"]),
        ({"role": "developer"}, ["hint"]),
        ({"role": "assistant"}, ["try"]),
        ({"field": "reasoning"}, ["try"]),
        ({"field": "output", "tool": "Bash"}, ["try"]),
        ({"field": "file"}, []),
        ({"tool": "bash"}, ["try"]),
        ({"tool": "mcp__fruit__peel"}, ["try"]),
        ({"tool": "mcp__fruit"}, []),
        ({"tool": "Bash", "failed": True}, []),
        ({"failed": True}, ["try"]),
        ({"has_image": True}, ["look"]),
        ({"has_image": False}, ["bill", "hint", "rule", "try", "ask"]),
        ({"since": at(3)}, ["bill", "hint", "rule"]),
        ({"until": at(3)}, ["look", "try", "ask"]),
        ({"since": at(1), "until": at(3)}, ["look", "try"]),
        ({"project": "atlas", "role": "user", "since": at(1)}, ["look"]),
    ],
)
def test_filters(library: SearchStore, filters: dict[str, Any], expected: list[str]) -> None:
    assert once(library.found("kiwi", **filters)) == expected


@pytest.mark.parametrize(
    ("query", "filters", "expected"),
    [
        ("kiwi", {}, [(3, "output"), (3, "input"), (2, "output"), (2, "input"), (1, "text"), (0, "reasoning")]),
        ("kiwi", {"failed": True}, [(3, "output"), (3, "input")]),
        ("kiwi", {"failed": False}, [(2, "output"), (2, "input")]),
        ("kiwi", {"tool": "Bash", "field": "input"}, [(2, "input")]),
        ("", {"failed": True}, [(3, "output"), (3, "input")]),
        ("", {"field": "reasoning"}, [(0, "reasoning")]),
        ("-failed", {"failed": True}, [(3, "input")]),
    ],
)
def test_parts_and_fields(
    library: SearchStore, query: str, filters: dict[str, Any], expected: list[tuple[int, str]]
) -> None:
    assert library.fields(query, role="assistant", **filters) == expected


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("kiwi crash", ["ask"]),
        ("crash kiwi", ["ask"]),
        ('"kiwi crash"', ["ask"]),
        ('"crash kiwi"', []),
        ("crash OR dollar", ["bill", "ask"]),
        ("kiwi -the", ["hint", "look", "try"]),
        ("-the", ["hint", "look", "try"]),
        ("KIWI Crash", ["ask"]),
        ("ECONNRESET_4711", ["try"]),
        ("econnreset", ["try"]),
        ("kiwi.py", ["try"]),
        ("open_socket", ["try"]),
        ("open_sock", []),
        ("open_sock*", ["try"]),
        ("pictur*", ["look"]),
        ("向量", ["bill"]),
        ("数据库检索", ["bill"]),
        ("历", ["bill"]),
        ("库数", []),
        ("shot.png", ["look"]),
        ("absent", []),
        ("", ALL),
    ],
)
def test_queries(library: SearchStore, query: str, expected: list[str]) -> None:
    assert once(library.found(query)) == expected


def test_a_hit_says_what_where_and_when(library: SearchStore) -> None:
    (hit,) = library.hits("ECONNRESET_4711")
    assert hit._replace(places=()) == (
        "try",
        "plain",
        "assistant",
        2,
        "output",
        "Bash",
        at(1),
        "kiwi.py: ECONNRESET_4711 in open_socket",
        ((9, 24),),
        (),
    )
    (place,) = hit.places
    assert (place.session_id, place.title, place.project) == (session_id("one"), None, "/home/dev/atlas")
    assert place.position > 0


def test_a_title_that_was_given_is_shown(store: SearchStore) -> None:
    log = store.log(cwd="/src")
    log.session(titles={"custom": "From the log"})
    log.message(text_message("m", "word"))
    store.index()
    assert store.hits("word")[0].places[0].title == "From the log"
    connection = connect(store.path)
    connection.execute(
        "INSERT INTO annotations (session_id, title, changed_at) VALUES (?, 'My own', 0)", (session_id("one"),)
    )
    connection.close()
    assert store.hits("word")[0].places[0].title == "My own"


def test_a_message_that_several_sessions_hold_is_one_hit_with_all_places(store: SearchStore) -> None:
    for name, folder in (("fork", "/src/fork"), ("origin", "/src/origin")):
        log = store.log(name, cwd=folder)
        log.message(text_message("shared", "word of both", minutes=0), copied=name == "fork")
        log.message(text_message(name, "word of its own", minutes=1))
    store.read()
    store.index()
    (hit,) = store.hits("both")
    assert [place.session_id for place in hit.places] == [session_id("origin"), session_id("fork")]
    for name in ("fork", "origin"):
        assert store.found("word", session=session_id(name)) == [name, "shared"]
        assert store.found("word", project=f"/src/{name}") == [name, "shared"]


def test_a_session_that_comes_to_share_messages_finds_them(store: SearchStore) -> None:
    """Search shows a copy under the original: both are one message."""
    store.log("first", cwd="/src/first").message(text_message("shared", "word"))
    store.index()
    store.log("second", cwd="/src/second").message(text_message("shared", "word"), copied=True)
    store.index()
    assert store.found("word", session=session_id("second")) == ["shared"]
    assert store.found("word", project="second") == store.found("word", project="first") == ["shared"]


# -- order and pages


def test_newest_first_is_exact_whatever_the_order_of_reading(store: SearchStore) -> None:
    # Far more messages than there are blocks in their time, read backwards.
    minutes = [0.001 * number for number in range(60)]
    for number in reversed(range(60)):
        store.log(f"s{number % 7}").message(text_message(f"m{number:02}", "word", minutes=minutes[number]))
        store.index()
    expected = [f"m{number:02}" for number in reversed(range(60))]
    assert store.found("word") == expected
    assert store.found("word", limit=10) == expected[:10]


def test_messages_of_one_moment_have_one_order(tmp_path: Path) -> None:
    orders: list[list[str]] = []
    for names in (["b", "a", "d", "c"], ["c", "d", "a", "b"]):
        folder = tmp_path / names[0]
        folder.mkdir()
        store = SearchStore(folder)
        for name in names:
            store.log(name).message(text_message(name, "word"))
            store.index()
        orders.append(store.found("word"))
    assert orders[0] == orders[1] == ["d", "c", "b", "a"]


@pytest.mark.parametrize("sort", ["newest", "relevance"])
@pytest.mark.parametrize("limit", [1, 3, 7, 25, 100])
def test_pages_are_pieces_of_one_list(store: SearchStore, sort: Any, limit: int) -> None:
    log = store.log()
    for number in range(25):
        # Some at one moment, some without a time.
        minutes = None if number % 5 == 0 else number // 3
        log.message(text_message(f"m{number}", "word " * (number % 4 + 1), minutes=minutes))
    store.index()
    whole = store.found("word", sort=sort)
    assert sorted(whole) == sorted(f"m{number}" for number in range(25))
    pages: list[str] = []
    cursor: str | None = None
    while True:
        page = store.search("word", sort=sort, limit=limit, cursor=cursor)
        pages += [hit.message_id for hit in page.hits]
        assert len(page.hits) <= limit
        cursor = page.next_cursor
        if cursor is None:
            break
    assert pages == whole


def test_the_number_of_hits_of_a_branch_does_not_depend_on_the_page(store: SearchStore) -> None:
    for branch in ("main", "other"):
        store.log(branch).session(git_branch=branch)
    for number in range(300):
        store.log(("main", "other")[number % 2]).message(text_message(f"m{number}", "word", minutes=number))
    store.index()
    for limit in (1, 20, 100):
        page = store.search("word branch:main", limit=limit)
        assert (page.total, page.total_is_exact) == (150, True)


def test_a_page_stays_where_it_is_when_something_new_comes(store: SearchStore) -> None:
    log = store.log()
    for number in range(10):
        log.message(text_message(f"m{number}", "word", minutes=number))
    store.index()
    cursor = store.search("word", limit=4).next_cursor
    log.message(text_message("new", "word", minutes=99))
    store.index()
    page = store.search("word", limit=4, cursor=cursor)
    assert [hit.message_id for hit in page.hits] == ["m5", "m4", "m3", "m2"]


def test_the_first_page_says_how_many_there_are(library: SearchStore) -> None:
    page = library.search("kiwi", limit=5)
    assert page.total is not None
    assert (page.total, page.total_is_exact) == (11, True)
    assert library.search("kiwi", limit=50).total == 11
    assert library.search("kiwi", limit=50).total_is_exact
    assert library.search("kiwi", limit=5, cursor=page.next_cursor).total is None
    assert library.search("absent").total == 0


def test_the_number_of_hits_does_not_depend_on_time_or_on_the_page(store: SearchStore) -> None:
    log = store.log()
    for number in range(MAX_COUNTED + 50):
        words = "word" if number < MAX_COUNTED else "word rare"
        log.message(text_message(f"m{number}", f"{words} few" if number % 8 == 0 else words, minutes=number))
    store.index()
    for limit in (1, 20, 100):
        page = store.search("word", limit=limit)
        assert (page.total, page.total_is_exact) == (MAX_COUNTED, False)
        # The newest ones are looked at, and those that a filter leaves out are not counted.
        page = store.search("word", limit=limit, until=at(100))
        assert (page.total, page.total_is_exact) == (100, True)
        page = store.search("few", limit=limit)
        assert (page.total, page.total_is_exact) == (32, True)
    # No page says that there are fewer than it lists.
    page = store.search("word", limit=MAX_COUNTED + 20)
    assert (len(page.hits), page.total, page.total_is_exact) == (MAX_COUNTED + 20, MAX_COUNTED + 20, False)


@pytest.mark.parametrize("sort", ["newest", "relevance"])
def test_a_cursor_of_another_list_is_refused(library: SearchStore, sort: Any) -> None:
    other = "relevance" if sort == "newest" else "newest"
    foreign = library.search("kiwi", sort=other, limit=1).next_cursor
    for cursor in (foreign, "nonsense", "", "e30", "WyJuZXdlc3QiLCJ4IiwxLDEsMV0"):
        with pytest.raises(ValueError, match="cursor"):
            library.search("kiwi", sort=sort, cursor=cursor)


def test_limits_and_times_that_make_no_sense_are_refused(library: SearchStore) -> None:
    with pytest.raises(ValueError, match="page of 0"):
        library.search("kiwi", limit=0)
    with pytest.raises(ValueError, match="time zone"):
        library.search("kiwi", since=datetime(2026, 1, 1))  # noqa: DTZ001  # naive on purpose


# -- relevance


def test_relevance_prefers_many_in_short_texts(store: SearchStore) -> None:
    log = store.log()
    log.message(text_message("often", "walrus walrus walrus", minutes=0))
    log.message(text_message("long", "walrus " + "filler " * 2000, minutes=2))
    log.message(text_message("output", parts=[call("c", "walrus walrus walrus")], minutes=1))
    log.message(text_message("common", "filler", minutes=3))
    store.index()
    assert store.found("walrus", sort="relevance") == ["often", "output", "long"]
    # Of alternatives the rare word says more.
    assert store.found("walrus OR filler", sort="relevance")[0] == "often"


def test_relevance_ranks_the_newest_matches(store: SearchStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("turnlog.store.search.searcher.RANKED", 3)
    log = store.log()
    log.message(text_message("best", "walrus walrus walrus"))
    for number in range(3):
        log.message(text_message(f"m{number}", "walrus and more", minutes=number + 1))
    store.index()
    assert store.found("walrus", sort="relevance") == ["m2", "m1", "m0"]
    assert not store.search("walrus", sort="relevance").total_is_exact


def test_a_filter_alone_is_ranked_by_time(library: SearchStore) -> None:
    assert library.found("", role="user", field="text", sort="relevance") == ["bill", "look", "ask"]


# -- an index that lags, vanishes or is damaged


def test_without_an_index_nothing_is_found_and_it_is_said(store: SearchStore) -> None:
    store.log().message(text_message("m", "word"))
    store.read()
    page = store.search("word")
    assert (page.hits, page.unindexed) == ((), 1)


def test_a_lagging_index_says_how_far_it_is_behind(store: SearchStore) -> None:
    log = store.log()
    log.message(text_message("a", "word"))
    store.index()
    log.message(text_message("b", "word", minutes=1))
    log.message(text_message("c", "word", minutes=2))
    store.read()
    page = store.search("word")
    assert ([hit.message_id for hit in page.hits], page.unindexed) == (["a"], 2)
    with Searcher(store.path, store.search_path) as searcher:
        assert searcher.unindexed() == 2


@pytest.mark.parametrize("content", [b"", b"no database at all" * 100])
def test_a_damaged_index_is_none(store: SearchStore, content: bytes) -> None:
    store.log().message(text_message("m", "word"))
    store.read()
    store.search_path.write_bytes(content)
    assert store.search("word").unindexed == 1


def test_an_index_that_is_damaged_inside_is_none(store: SearchStore) -> None:
    log = store.log()
    for number in range(50):
        log.message(text_message(f"m{number}", f"word {number} " + "text " * 500, minutes=number))
    store.index()
    # Every page at which a table begins; the list of tables stays readable.
    with sqlite3.connect(store.search_path) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        pages = [page for (page,) in connection.execute("SELECT rootpage FROM sqlite_master WHERE rootpage > 1")]
    data = bytearray(store.search_path.read_bytes())
    for page in pages:
        data[(page - 1) * 4096 : page * 4096] = b"\xa5" * 4096
    store.search_path.write_bytes(data)
    assert store.search("word").unindexed == 50
    with Searcher(store.path, store.search_path) as searcher, pytest.raises(StoreError, match=r"search\.db"):
        searcher.unindexed()


def test_a_searcher_notices_a_new_index(store: SearchStore) -> None:
    store.log().message(text_message("m", "word"))
    with Searcher(store.path, store.search_path) as searcher:
        store.index()
        assert len(searcher.search("word").hits) == 1
        index_file.remove(store.search_path)
        assert searcher.search("word").unindexed == 1
        store.index()
        assert len(searcher.search("word").hits) == 1


def test_rows_that_are_gone_from_the_store_are_not_shown(store: SearchStore) -> None:
    for name in ("a", "b"):
        store.log(name).message(text_message(name, "word"))
    store.index()
    connection = connect(store.path)
    connection.execute("DELETE FROM messages WHERE external_id = 'a'")
    connection.close()
    assert store.found("word") == ["b"]


def test_a_store_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with Searcher(tmp_path / "absent.db", tmp_path / "search.db") as searcher, pytest.raises(StoreError):
        searcher.search("word")


def test_many_threads_search_at_once(library: SearchStore) -> None:
    found: list[int] = []
    with Searcher(library.path, library.search_path) as searcher:

        def run() -> None:
            for _ in range(20):
                found.append(len(searcher.search("kiwi", limit=50).hits))

        threads = [threading.Thread(target=run) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert found == [11] * 80


def test_the_search_database_lies_beside_the_store() -> None:
    assert search_path(Path("/data/turnlog.db")) == Path("/data/search.db")
    assert search_path(Path("/data/work.db")) == Path("/data/work.search.db")


# -- beginnings


@pytest.mark.parametrize(("small", "large"), [(vocabulary.SMALL, vocabulary.LARGE), (0, vocabulary.LARGE), (0, 0)])
def test_a_beginning_finds_the_most_common_words(
    store: SearchStore, monkeypatch: pytest.MonkeyPatch, small: int, large: int
) -> None:
    monkeypatch.setattr(vocabulary, "SMALL", small)
    monkeypatch.setattr(vocabulary, "LARGE", large)
    monkeypatch.setattr(batch, "FRESH_SIZE", 0)
    monkeypatch.setattr(batch, "SAMPLES", {"sample": 1, "sparse_sample": 1})
    log = store.log()
    for number in range(200):
        log.message(text_message(f"m{number:03}", f"pre{number:03}", minutes=number))
    for number in range(20):
        log.message(text_message(f"often{number:02}", "prezzzzz", minutes=300 + number))
    log.message(text_message("exact", "pre", minutes=400))
    store.index()
    found = store.found("pre*")
    assert found[:2] == ["exact", "often19"]
    assert len(found) == 21 + vocabulary.MAX_WORDS - 2
    assert store.found("pre19*") == [f"m{number}" for number in range(199, 189, -1)]


def test_a_busy_machine_finds_the_same_words_by_their_beginning(
    store: SearchStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vocabulary, "SMALL", 0)
    monkeypatch.setattr(batch, "FRESH_SIZE", 0)
    monkeypatch.setattr(batch, "SAMPLES", {"sample": 1 << 33, "sparse_sample": 1 << 33})
    log = store.log()
    for number in range(30):
        log.message(text_message(f"m{number:02}", f"pre{number:02}", minutes=number))
    store.index()
    seconds = count()
    monkeypatch.setattr("time.perf_counter", lambda: float(next(seconds)))
    monkeypatch.setattr("time.thread_time", lambda: float(next(seconds)))
    assert len(store.found("pre*")) == 30


def test_words_that_the_sample_does_not_have_are_found_by_their_beginning(
    store: SearchStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vocabulary, "SMALL", 0)
    monkeypatch.setattr(batch, "FRESH_SIZE", 0)
    monkeypatch.setattr(batch, "SAMPLES", {"sample": 1 << 33, "sparse_sample": 1 << 33})
    store.log().message(text_message("m", "Éclair éclairs eclaire eclat zebra"))
    store.index()
    assert store.found("ECLAI*") == ["m"]
    hit = store.hits("éclai*")[0]
    assert [hit.snippet[start:end] for start, end in hit.marks] == ["Éclair", "éclairs", "eclaire"]


def test_a_word_with_hidden_characters_is_found_as_it_looks(store: SearchStore) -> None:
    log = store.log("one", cwd="/home/dev/atlas")
    log.session(titles={"custom": "Mend the wi\u200bd-get"})
    log.message(text_message("hidden", "a wi\u200bd-ge\xadt, and a wi\u0301d-get"))
    store.index()
    for query in ("wid-get", "wi\ufeffd-get", "wi\u2060d-ge*", "w\u00edd get"):
        (hit,) = store.hits(query, field="text")
        marked = [hit.snippet[start:end] for start, end in hit.marks]
        assert "".join(marked).count("wi\u200bd") == "".join(marked).count("wi\u0301d") == 1
    with Searcher(store.path, store.search_path) as searcher:
        ((name,),) = [session.names for session in searcher.sessions("wid-get", SearchFilter()).sessions]
        assert [name.text[start:end] for start, end in name.marks] == ["wid-get"]


# -- any query


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(200), deadline=None)
@given(
    st.text(max_size=40) | st.text(alphabet="kiw \"-*()ORAND:^{}+'\\会→\0\ue000", max_size=30),
    st.sampled_from(["newest", "relevance"]),
    st.builds(
        SearchFilter,
        agent=st.none() | st.text(max_size=3),
        project=st.none() | st.sampled_from(["atlas", "'", "\0"]),
        session=st.none() | st.text(max_size=5),
        role=st.none() | st.text(max_size=3),
        field=st.none() | st.sampled_from(["text", "input"]),
        tool=st.none() | st.text(max_size=6),
        failed=st.none() | st.booleans(),
        has_image=st.none() | st.booleans(),
        since=st.none(),
        until=st.none() | st.just(at(3)),
    ),
)
def test_no_query_and_no_filter_is_an_error(library: SearchStore, query: str, sort: Any, filter: SearchFilter) -> None:
    with Searcher(library.path, library.search_path) as searcher:
        page = searcher.search(query, filter, sort=sort)
    for hit in page.hits:
        assert all(0 <= start < end <= len(hit.snippet) for start, end in hit.marks)


def test_markers_cannot_be_asked_for(library: SearchStore) -> None:
    with sqlite3.connect(library.search_path) as connection:
        connection.execute("CREATE VIRTUAL TABLE temp.v USING fts5vocab ('main', 'fresh', 'row')")
        markers = [term for (term,) in connection.execute("SELECT term FROM v") if not term[0].isalnum()]
    assert len(markers) > 5
    for marker in markers:
        assert library.found(f'"{marker}" zzz') == []
        assert library.found(marker) in (library.found(marker[1:]), library.found(""))
