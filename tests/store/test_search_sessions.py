"""Sessions that fit a query: which come first, what of them is shown, pages, counts, and misspelt words."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.plain_agent import session_id
from support.plain_store import at
from support.profiles import examples
from support.search_store import SearchStore, call, text_message
from turnlog.model import Message, TextPart, ToolCallPart, ToolKind
from turnlog.store import open_store
from turnlog.store.search import session_ranking, session_search
from turnlog.store.search.base import SearchFilter, SearchSort, SessionSearchPage
from turnlog.store.search.indexer import Indexer
from turnlog.store.search.searcher import Searcher
from turnlog.store.search.spelling import is_near


def sessions(
    store: SearchStore, query: str, *, limit: int = 100, cursor: str | None = None, **filters: Any
) -> SessionSearchPage:
    with Searcher(store.path, store.search_path) as searcher:
        return searcher.sessions(query, SearchFilter(**filters), limit=limit, cursor=cursor)


def found(store: SearchStore, query: str, **filters: Any) -> list[str]:
    """Names of the sessions, best first."""
    return [session.session_id.partition(":")[2] for session in sessions(store, query, **filters).sessions]


def edit(id: str, path: str) -> ToolCallPart:
    return msgspec.structs.replace(call(id, "ok", tool="Edit", file_path=path), kind=ToolKind.EDIT)


def answer(id: str, text: str, minutes: float) -> Message:
    return Message(id=id, role="assistant", created_at=at(minutes), parts=(TextPart(text=text),))


@pytest.fixture
def empty(tmp_path: Path) -> SearchStore:
    return SearchStore(tmp_path)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> SearchStore:
    """Sessions that have words in different places, the best one never the newest; nothing changes it."""
    store = SearchStore(tmp_path_factory.mktemp("sessions"))
    titled = store.log("titled", cwd="/home/dev/orchard")
    titled.session(titles={"custom": "Mend the peeler"})
    titled.message(text_message("t1", "hello, go on with what we began"))
    titled.message(answer("t2", "the kiwi is done", 1))
    asked = store.log("asked", cwd="/home/dev/orchard")
    asked.message(text_message("a1", "why is the peeler so slow?", minutes=10))
    asked.message(
        Message(id="a2", role="assistant", created_at=at(11), parts=(edit("e", "/home/dev/orchard/slow.py"),))
    )
    printed = store.log("printed", cwd="/home/dev/orchard")
    printed.message(text_message("p1", "list all files", minutes=20))
    for number in range(30):
        part = call(f"c{number}", f"peeler {number}")
        printed.message(Message(id=f"p{number + 2}", role="assistant", created_at=at(21 + number), parts=(part,)))
    apart = store.log("apart", cwd="/home/dev/billing")
    apart.message(text_message("x1", "something about invoices", minutes=60))
    apart.message(answer("x2", "there are mangos too", 61))
    store.read()
    with open_store(store.path) as opened:
        opened.annotate(session_id("apart"), tags=("quarterly",))
    store.index()
    return store


def test_titles_come_before_prompts_and_prompts_before_outputs(store: SearchStore) -> None:
    assert found(store, "peeler") == ["titled", "asked", "printed"]


def test_words_of_a_query_may_be_in_different_places_of_a_session(store: SearchStore) -> None:
    assert found(store, "invoices mangos") == ["apart"]
    assert found(store, "peeler kiwi") == ["titled"]
    assert found(store, "quarterly mangos") == ["apart"]
    assert found(store, "slow.py") == ["asked"]
    assert found(store, "invoices peeler") == []


def test_a_session_is_shown_with_its_best_hit_and_their_number(store: SearchStore) -> None:
    titled, asked, printed = sessions(store, "peeler").sessions
    assert titled.hit is None
    assert titled.matches == 0
    assert [(name.field, name.text, name.marks) for name in titled.names] == [("title", "Mend the peeler", ((9, 15),))]
    assert asked.hit is not None
    assert (asked.hit.message_id, asked.matches, asked.matches_is_exact) == ("a1", 1, True)
    assert (printed.matches, printed.matches_is_exact) == (30, True)
    (apart,) = sessions(store, "quarterly mangos").sessions
    assert apart.hit is not None
    assert apart.hit.message_id == "x2"
    assert [(name.field, name.text) for name in apart.names] == [("tag", "quarterly")]


def test_of_one_word_the_shortest_match_of_the_best_kind_is_shown(empty: SearchStore) -> None:
    log = empty.log()
    log.message(text_message("long", "go on, " * 50 + "and mind the walrus", minutes=1))
    log.message(text_message("short", "feed the walrus", minutes=2))
    log.message(text_message("newest", "what else is there to be done today? " * 3 + "Is the walrus well?", minutes=3))
    log.message(answer("answer", "walrus", 4))
    empty.index()
    (session,) = sessions(empty, "walrus").sessions
    assert session.hit is not None
    assert (session.hit.message_id, session.matches) == ("short", 4)


def test_words_in_a_row_of_a_prompt_come_first(empty: SearchStore) -> None:
    for name, prompt in (("row", "Why is the old walrus here?"), ("apart", "A walrus, is it an old one?")):
        empty.log(name).message(text_message(name, prompt))
    empty.index()
    assert found(empty, "old walrus")[0] == "row"
    assert found(empty, "an old one")[0] == "apart"
    # "an*" is no word that could stand in a row.
    assert found(empty, "walrus an*") == ["apart"]


def test_texts_that_changed_are_not_counted_and_older_ones_are(
    empty: SearchStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_search, "COUNTED", 3)
    log = empty.log()

    def say(number: int, text: str) -> None:
        part = TextPart(id=f"m{number}.0", text=text)
        log.message(Message(id=f"m{number}", role="assistant", created_at=at(number), parts=(part,)))

    for number in range(9):
        say(number, "a walrus")
    empty.index()
    for number in range(5, 9):
        say(number, "a seal and its young")
    empty.index()
    (session,) = sessions(empty, "walrus").sessions
    assert session.hit is not None
    assert (session.hit.message_id, session.matches, session.matches_is_exact) == ("m4", 3, False)


def test_more_matches_than_are_counted_are_said_to_be_more(store: SearchStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_search, "COUNTED", 10)
    printed = sessions(store, "peeler", field="output").sessions[0]
    assert (printed.matches, printed.matches_is_exact) == (10, False)


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({"role": "user"}, ["asked"]),
        ({"field": "output"}, ["printed"]),
        ({"tool": "bash"}, ["printed"]),
        ({"project": "orchard"}, ["titled", "asked", "printed"]),
        ({"project": "billing"}, []),
        ({"agent": "codex"}, []),
        ({"since": at(15)}, ["printed"]),
        ({"until": at(15)}, ["asked"]),
        ({"session": session_id("asked")}, ["asked"]),
    ],
)
def test_filters(store: SearchStore, filters: dict[str, Any], expected: list[str]) -> None:
    assert found(store, "peeler", **filters) == expected


def test_fields(store: SearchStore) -> None:
    assert found(store, "peeler title:mend") == ["titled"]
    assert found(store, "title:mend") == ["titled"]
    assert found(store, "peeler role:user") == ["asked"]
    assert found(store, "peeler -tool:bash -title:mend") == ["asked"]
    assert found(store, "file:slow.py") == ["asked"]
    assert found(store, "tag:quarterly OR title:mend") == ["apart", "titled"]
    assert found(store, "tag:absent") == []


def test_without_words_the_newest_match_comes_first(store: SearchStore) -> None:
    assert found(store, "", role="user") == ["apart", "printed", "asked", "titled"]


def test_pages_hold_every_session_once(store: SearchStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_search, "_BLOCK", 2)
    first = sessions(store, "peeler OR invoices")
    assert (first.total, first.total_is_exact, first.next_cursor) == (4, True, None)
    seen: list[str] = []
    cursor: str | None = None
    while True:
        page = sessions(store, "peeler OR invoices", limit=1, cursor=cursor)
        seen += [session.session_id for session in page.sessions]
        if page.next_cursor is None:
            break
        cursor = page.next_cursor
    assert seen == [session.session_id for session in first.sessions]
    with pytest.raises(ValueError, match="cursor"):
        sessions(store, "peeler", cursor="abc")


@pytest.mark.parametrize(("most", "total_is_exact"), [(3, False), (4, True)])
def test_a_count_since_a_time_is_exact_when_all_matches_were_read(
    empty: SearchStore, monkeypatch: pytest.MonkeyPatch, most: int, total_is_exact: bool
) -> None:
    monkeypatch.setattr(session_ranking, "_MOST_COUNTED", most)
    for number in range(4):
        empty.log(f"log{number}").message(text_message(f"m{number}", "the kiwi question", minutes=number))
    empty.index()
    page = sessions(empty, "kiwi", since=at(0.5))
    assert (page.total, page.total_is_exact) == (3, total_is_exact)


@pytest.mark.parametrize("most", [3, 5])
def test_very_common_words_do_not_hide_old_prompts(
    empty: SearchStore, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(session_ranking, "_MOST_COUNTED", most)
    old = empty.log("old")
    old.message(text_message("o1", "the kiwi question"))
    for number in range(6):
        new = empty.log(f"new{number}")
        new.message(answer(f"n{number}", "a kiwi among others " * 30 + ("mango" if number == 2 else ""), 100 + number))
    empty.index()
    page = sessions(empty, "kiwi")
    assert page.sessions[0].session_id == session_id("old")
    assert not page.total_is_exact
    # The rarer word decides, and that the session has the common one too is looked up.
    assert found(empty, "kiwi mango") == ["new2"]
    assert found(empty, "kiwi question") == ["old"]


def test_an_old_prompt_is_found_in_a_fork_without_newer_matches(
    empty: SearchStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_ranking, "_MOST_COUNTED", 3)
    origin = empty.log("origin")
    for name in ("origin", "fork"):
        empty.log(name).message(text_message("shared", "the kiwi question"), copied=name == "fork")
    for number in range(6):
        origin.message(answer(f"n{number}", "a kiwi among others", 100 + number))
    empty.index()
    assert found(empty, "kiwi", session=session_id("fork")) == ["fork"]


def test_several_common_words_are_found_in_parts_that_have_them_all(
    empty: SearchStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_ranking, "_MOST_TOGETHER", 4)
    monkeypatch.setattr(session_ranking, "_MOST_APART", 2)
    empty.log("old").message(text_message("o1", "a kiwi and a mango"))
    for number in range(6):
        both = empty.log(f"both{number}")
        both.message(answer(f"b{number}", "kiwi mango " * 20, 100 + number))
    for number in range(3):
        one = empty.log(f"one{number}")
        one.message(answer(f"n{number}", "a kiwi alone", 200 + number))
    empty.index()
    page = sessions(empty, "kiwi mango")
    assert not page.total_is_exact
    ids = [found.session_id for found in page.sessions]
    assert {session_id(f"both{number}") for number in range(2, 6)} | {session_id("old")} <= {*ids}
    assert session_id("one2") not in ids


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("peelar", "peeler"),
        ("peelre", "peeler"),
        ("eeler", "peeler"),
        ("invioces mangos", "invoices mangos"),
        ("invioces mangoes", "invoices mangos"),
        ("-kiwi peelar", "-kiwi peeler"),
        ("file:slaw.py", "file:slow.py"),
        # No session has both, whatever the first one is.
        ("invioces peeler", None),
        ("quarterlyy", "quarterly"),
        ("somthng", "something"),
        ("zzzzzzzz", None),
        ("pe", None),
        ("会话会话", None),
    ],
)
def test_a_misspelt_word_is_answered_with_what_may_be_meant(store: SearchStore, typed: str, meant: str | None) -> None:
    page = sessions(store, typed)
    assert (page.sessions, page.total, page.suggestion) == ((), 0, meant)


def test_the_name_of_a_project_that_exists_is_not_taken_for_another(empty: SearchStore) -> None:
    empty.log("stall", cwd="/home/dev/stall").message(text_message("m1", "the lexer reads tokens"))
    empty.log("stalls", cwd="/home/dev/stalls").message(text_message("m2", "a ledger adds up"))
    empty.index()
    assert sessions(empty, "stalls lexer").suggestion == "stall lexer"
    assert sessions(empty, "project:stalls lexer").suggestion is None


def test_a_suggestion_finds_something_where_was_searched(empty: SearchStore) -> None:
    empty.log("parser", cwd="/home/dev/parser").message(text_message("p1", "the lexer reads tokens"))
    shop = empty.log("shop", cwd="/home/dev/shop")
    shop.message(text_message("s1", "the ledger adds up; the lever is stuck"))
    for number in range(3):
        shop.message(text_message(f"l{number}", "lexers and a lever"))
    empty.index()
    assert sessions(empty, "leger").suggestion == "lever"
    assert sessions(empty, "leger", project="/home/dev/parser").suggestion == "lexer"
    assert sessions(empty, "leger tokens").suggestion == "lexer tokens"
    assert sessions(empty, "leger adds").suggestion == "lever adds"
    # `lever` is a word of the index, but not one of this project's.
    assert sessions(empty, "lever", project="/home/dev/parser").suggestion == "lexer"
    assert sessions(empty, "lever tokens").suggestion == "lexer tokens"
    assert sessions(empty, "leger", project="/home/dev/nowhere").suggestion is None


def test_a_list_of_hits_suggests_what_has_hits(empty: SearchStore) -> None:
    log = empty.log("parser")
    log.message(text_message("p1", "the lexer"))
    log.message(text_message("p2", "reads tokens"))
    empty.index()
    for sort in get_args(SearchSort):
        assert empty.search("lexar", sort=sort).suggestion == "lexer"
        assert empty.search("lexer", sort=sort).suggestion is None
        # The words are in two texts.
        assert empty.search("lexar tokens", sort=sort).suggestion is None
        assert empty.search("raeds tokens", sort=sort).suggestion == "reads tokens"
    assert sessions(empty, "lexar tokens").suggestion == "lexer tokens"


def test_only_whole_words_are_replaced(empty: SearchStore) -> None:
    empty.log("one").message(text_message("o1", "kiwi kiwis mangos"))
    empty.index()
    assert sessions(empty, "xxmangas OR mangas").suggestion == "xxmangas OR mangos"


def test_nothing_is_suggested_for_what_is_found(store: SearchStore) -> None:
    assert sessions(store, "peeler").suggestion is None


@pytest.mark.parametrize(
    ("one", "other", "near"),
    [("kitten", "sitting", False), ("abcd", "abdc", True), ("abcd", "xabcdx", True), ("abcd", "dcba", False)],
)
def test_words_are_near_up_to_two_slips(one: str, other: str, near: bool) -> None:
    assert is_near(one, other) is near


def test_without_an_index_nothing_is_found_and_all_is_unindexed(empty: SearchStore) -> None:
    empty.log().message(text_message("m", "kiwi"))
    empty.read()
    page = sessions(empty, "kiwi")
    assert (page.sessions, page.unindexed) == ((), 1)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(60), deadline=None)
@given(st.text(max_size=40) | st.text(alphabet="peelr \"-*()ORAND:^{}+'\\会→\0\ue000", max_size=30))
def test_no_query_is_an_error(store: SearchStore, query: str) -> None:
    for session in sessions(store, query).sessions:
        assert all(0 <= start < end <= len(name.text) for name in session.names for start, end in name.marks)


def test_a_session_is_not_found_by_words_that_it_had(empty: SearchStore) -> None:
    with open_store(empty.path, create=True) as store:
        store.save_session("turnlog:one")
    for text in ("apricot tart", "banana bread"):
        with open_store(empty.path, create=True) as store:
            store.save_messages("turnlog:one", [answer("a", text, 1)])
        with Indexer(empty.path, empty.search_path) as indexer:
            indexer.catch_up()
        assert found(empty, text) == ["one"]
    for query in ("apricot", "apri*", "apricot tart"):
        page = sessions(empty, query)
        assert (page.sessions, page.total) == ((), 0)
