"""Fields of queries: what a whole session is called, where it happened, and what a match is."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path

import msgspec
import pytest

from support.plain_agent import session_id
from support.plain_store import at
from support.search_store import SearchStore, call, text_message
from turnlog.model import Message, ToolCallPart, ToolKind
from turnlog.store import open_store
from turnlog.store.search import session_words
from turnlog.store.search.base import SearchFilter
from turnlog.store.search.indexer import Indexer
from turnlog.store.search.query import QueryError, parse_query
from turnlog.store.search.searcher import Searcher


def edit(id: str, path: str, output: str) -> ToolCallPart:
    return msgspec.structs.replace(call(id, output, tool="Edit", file_path=path), kind=ToolKind.EDIT)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> SearchStore:
    """Three sessions about kiwis in two projects; nothing changes it."""
    store = SearchStore(tmp_path_factory.mktemp("fields"))
    peel = store.log("peel", cwd="/home/dev/orchard")
    peel.session(titles={"custom": "Repair the flaky peeler"}, git_branch="fix/peeler")
    peel.message(text_message("ask", "the kiwi is green", minutes=0))
    part = edit("1", "/home/dev/orchard/src/peeler.py", "kiwi done")
    peel.message(Message(id="try", role="assistant", created_at=at(1), parts=(part,), model="sonnet-9"))
    crate = store.log("crate", cwd="/home/dev/orchard")
    crate.session(titles={"custom": "Pack crates"}, git_branch="main")
    crate.message(text_message("pack", "kiwi in crates", minutes=60 * 24))
    bill = store.log("bill", cwd="/home/dev/billing-api")
    bill.session(titles={"prompt": "Sum up the flaky bill"})
    bill.message(text_message("sum", "a kiwi costs a dollar", minutes=60 * 48))
    store.read()
    with open_store(store.path) as opened:
        opened.annotate(session_id("crate"), tags=("harvest time", "later"))
    store.index()
    return store


PEEL, CRATE, BILL = ["try", "ask"], ["pack"], ["sum"]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("kiwi title:flaky", [*BILL, *PEEL]),
        ('kiwi title:"flaky peeler"', PEEL),
        ("kiwi title:peel*", PEEL),
        ("kiwi TITLE:Peeler", PEEL),
        ("kiwi -title:flaky", CRATE),
        ("kiwi project:orchard", [*CRATE, *PEEL]),
        ("kiwi project:billing", BILL),
        ("kiwi project:/home/dev/billing-api", BILL),
        ("kiwi -project:orchard", BILL),
        ("kiwi NOT project:orchard", BILL),
        ("kiwi file:peeler.py", PEEL),
        ("kiwi file:src/peeler.py", PEEL),
        ("kiwi path:orchard/src", PEEL),
        ("kiwi tag:later", CRATE),
        ('kiwi tag:"harvest time"', CRATE),
        ("kiwi tag:later OR title:bill", [*BILL, *CRATE]),
        ("kiwi branch:fix/peeler", PEEL),
        ("kiwi branch:main", CRATE),
        ("kiwi model:sonnet-9", PEEL),
        ("kiwi -model:sonnet-9", [*BILL, *CRATE]),
        ("kiwi agent:plain", [*BILL, *CRATE, *PEEL]),
        ("kiwi -agent:plain", []),
        ("kiwi role:assistant", ["try"]),
        ("kiwi author:me title:peeler", ["ask"]),
        ("kiwi -role:user", ["try"]),
        ("kiwi tool:edit", ["try"]),
        ("kiwi -tool:Edit title:peeler", ["ask"]),
        ("dollar OR tag:later", [*BILL, *CRATE]),
        ("tag:later", CRATE),
        ("title:peeler role:user", ["ask"]),
        ("kiwi,", [*BILL, *CRATE, *PEEL]),
        ("(kiwi) crates., ", CRATE),
    ],
)
def test_fields(store: SearchStore, query: str, found: list[str]) -> None:
    assert list(dict.fromkeys(store.found(query))) == found


def test_times(store: SearchStore) -> None:
    day = at(60 * 24).isoformat()
    assert store.found(f"kiwi after:{day}") == [*BILL, *CRATE]
    assert set(store.found(f"kiwi before:{day}")) == {*PEEL}
    assert store.found(f"kiwi since:{day}", until=at(60 * 48)) == CRATE
    assert parse_query("after:2026-11-02").since == parse_query("after:2026-11-02T00:00").since


@pytest.mark.parametrize("query", ["std::kiwi", "http://kiwi", "unknown:kiwi", "file:"])
def test_what_is_no_field_is_words(query: str) -> None:
    assert all(term.field is None for term in parse_query(query).terms)
    assert parse_query(query).terms
    assert parse_query(query).since is None


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("kiwi role:asistant", "there is no role 'asistant': did you mean assistant?"),
        ("-role:nosuch", "there is no role 'nosuch'; there are "),
        ("kiwi is:faild", "there is no kind 'faild': did you mean failed?"),
        ("kiwi after:dinner", "after:dinner names no time: write a day (2026-11-20)"),
        ("kiwi after:1d before:2000", "the period ends before it begins"),
        ('before:"13:61"', "before:13:61 names no time"),
        ("kiwi status:running", "status:running is no field of a search: the list of sessions has a filter by status"),
        ("kiwi project:orchad", "there is no project 'orchad': did you mean orchard?"),
        ("kiwi -project:absent", "there is no project 'absent'; there are "),
        ("kiwi agent:cluade", "there is no agent 'cluade': did you mean claude-ai or claude-code or klaude?"),
        ("kiwi model:sonet-9", "there is no model 'sonet-9': did you mean "),
    ],
)
def test_a_value_that_a_field_cannot_have_is_an_error_with_the_near_ones(
    store: SearchStore, query: str, message: str
) -> None:
    with Searcher(store.path, store.search_path) as searcher:
        for search in (searcher.search, searcher.sessions):
            with pytest.raises(QueryError, match=f"^{re.escape(message)}"):
                search(query)


@pytest.mark.parametrize("query", ["kiwi agent:codex", "kiwi status:200", "kiwi title:absent", "kiwi -tag:absent"])
def test_a_value_that_may_be_meant_is_no_error(store: SearchStore, query: str) -> None:
    with Searcher(store.path, store.search_path) as searcher:
        searcher.search(query)
        searcher.sessions(query)


@pytest.mark.parametrize(
    ("query", "note"),
    [
        ("kiwi OR -peeler", "Left out of everything: -peeler. Beside OR, an excluded word is no alternative."),
        ("kiwi OR NOT peeler", "Left out of everything: -peeler. Beside OR, an excluded word is no alternative."),
        ("-peeler OR kiwi", "Left out of everything: -peeler. Beside OR, an excluded word is no alternative."),
        (
            "kiwi -peeler OR -tag:later",
            "Left out of everything: -peeler, -tag:later. Beside OR, an excluded word is no alternative.",
        ),
        ("kiwi -peeler", None),
        ("kiwi OR peeler -dollar", None),
        ("kiwi NOT peeler", None),
    ],
)
def test_an_excluded_word_beside_or_is_said_to_be_no_alternative(
    store: SearchStore, query: str, note: str | None
) -> None:
    with Searcher(store.path, store.search_path) as searcher:
        assert searcher.search(query).note == searcher.sessions(query).note == note


@pytest.mark.parametrize(
    ("query", "note"),
    [
        ("kiwi branch:fix/peelr", "There is no branch 'fix/peelr': did you mean fix/peeler?"),
        ("kiwi -branch:zzz", "There is no branch 'zzz'; there are fix/peeler, main."),
        ("kiwi tag:latter", "There is no tag 'latter': did you mean later?"),
        ("kiwi tool:Edti", "There is no tool 'Edti': did you mean Edit?"),
        ("kiwi title:absent", "There is no title with 'absent'."),
        ("kiwi file:absent.py", "There is no file with 'absent.py'."),
        ("kiwi title:absent OR tag:later", "There is no title with 'absent'."),
        ("kiwi tool:edit branch:main tag:harvest title:flaky file:src/peeler.py title:peel*", None),
    ],
)
def test_a_value_of_a_field_that_nothing_has_is_said_to_be_none(
    store: SearchStore, query: str, note: str | None
) -> None:
    with Searcher(store.path, store.search_path) as searcher:
        assert searcher.search(query).note == searcher.sessions(query).note == note


def test_values_of_hidden_sessions_are_not_listed(store: SearchStore) -> None:
    seen = SearchFilter(only=frozenset({session_id("crate")}))
    with Searcher(store.path, store.search_path) as searcher:
        said = [searcher.search(query, seen).note for query in ("branch:fix/peeler", "title:flaky", "tool:Edit")]
    assert said == [
        "There is no branch 'fix/peeler'; there are main.",
        "There is no title with 'flaky'.",
        "There is no tool 'Edit'.",
    ]


def test_words_of_sessions_follow_the_store(tmp_path: Path) -> None:
    store = SearchStore(tmp_path)
    log = store.log("one", cwd="/home/dev/orchard")
    log.message(text_message("a", "kiwi"))
    store.index()
    assert store.found("tag:ripe") == store.found("file:late.py") == []
    part = edit("1", "/home/dev/orchard/early.py", "done")
    log.message(Message(id="b", role="assistant", created_at=at(1), parts=(part,)))
    store.index()
    part = edit("2", "/home/dev/orchard/late.py", "done")
    log.message(Message(id="c", role="assistant", created_at=at(2), parts=(part,)))
    store.read()
    with open_store(store.path) as opened:
        opened.annotate(session_id("one"), title="Strange fruit", tags=("ripe",))
        opened.rename_project("/home/dev/orchard", "Garden")
    store.index()
    for query in ("tag:ripe", "title:strange", "project:garden", "file:late.py", "file:early.py"):
        assert "a" in store.found(query), query
    assert store.found('file:"early py home"') == []


def test_an_index_without_words_of_sessions_gets_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_words, "_MOST_SESSIONS", 2)
    store = SearchStore(tmp_path)
    for number in range(5):
        log = store.log(f"s{number}", cwd="/home/dev/orchard")
        log.message(text_message(f"m{number}", "kiwi", minutes=number))
    store.index()
    with sqlite3.connect(store.search_path) as connection:
        before = connection.execute("SELECT count(*) FROM documents").fetchone()
        connection.execute("DROP TABLE session_words")
        connection.execute("DROP TABLE session_progress")
    with Indexer(store.path, store.search_path) as indexer:
        indexer.catch_up()
    assert len(store.found("project:orchard")) == 5
    with sqlite3.connect(store.search_path) as connection:
        # The index of parts stays as it was.
        assert connection.execute("SELECT count(*) FROM documents").fetchone() == before
