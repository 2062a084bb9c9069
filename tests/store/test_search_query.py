from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from datetime import datetime

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from turnlog.store.search.query import MAX_QUERY_LENGTH, MAX_TERMS, QueryError, any_of, parse_query, to_expression


def _local(year: int, month: int, day: int) -> datetime:
    return datetime(year, month, day).astimezone()


WORDS = ("connect", "connection", "context", "unrelated")


def expand(beginning: str) -> Sequence[str]:
    return [word for word in WORDS if word.startswith(beginning.lower())] or [beginning.lower()]


def expression(text: str) -> str | None:
    return to_expression(parse_query(text), [], [], expand)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("one two", '"one" AND "two"'),
        ("one AND two", '"one" AND "two"'),
        ('"one two" three', '"one two" AND "three"'),
        ('say "never closed', '"say" AND "never closed"'),
        ("a OR b c", '("a" OR "b") AND "c"'),
        ("a OR b OR c", '("a" OR "b" OR "c")'),
        ("OR a OR", '"a"'),
        ("a OR OR b", '("a" OR "b")'),
        ("a -b", '("a") NOT "b"'),
        ('a -b -"c d"', '("a") NOT ("b" OR "c d")'),
        ("a OR -b c", '("a" AND "c") NOT "b"'),
        ("or and not near", '"or" AND "and" AND "not" AND "near"'),
    ],
)
def test_words_phrases_alternatives_and_exclusions(text: str, expected: str) -> None:
    assert expression(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("snake_case", '"snake case"'),
        ("a.b.c", '"a b c"'),
        ("foo::bar", '"foo bar"'),
        ("ECONNRESET_4711", '"ECONNRESET 4711"'),
        ("/usr/lib/x-1.2", '"usr lib x 1 2"'),
        ("--verbose", '"verbose"'),
        ("-", None),
        ("well-known", '"well known"'),
        ("f(x)", '"f x"'),
        ('say"hi there"', '"say" AND "hi there"'),
    ],
)
def test_code_is_a_phrase_of_its_words(text: str, expected: str | None) -> None:
    assert expression(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("会话分支", '"会话 话 话分 分 分支"'),
        ("会话", '"会话"'),
        ("会", '"会"'),
        ("用React框架", '"用 react 框 框架"'),
        ("React框", '"react 框"'),
        ("会话*", '"会话"'),
    ],
)
def test_cjk_is_a_phrase_of_characters_and_pairs(text: str, expected: str) -> None:
    found = expression(text)
    assert found is not None
    assert found.lower() == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("conn*", '("connect" OR "connection")'),
        ("CONT*", '"context"'),
        ("socket.conn*", '("socket connect" OR "socket connection")'),
        ("会话conn*", '("会话 话 connect" OR "会话 话 connection")'),
        ('"open conn"*', '("open connect" OR "open connection")'),
        ("-conn* open", '("open") NOT ("connect" OR "connection")'),
        ("conn*ion", '"conn ion"'),
        ("conn.*", '"conn"'),
        ("*", None),
    ],
)
def test_beginnings_become_the_words_they_begin(text: str, expected: str | None) -> None:
    assert expression(text) == expected


def test_conditions_stand_beside_the_words() -> None:
    query = parse_query("word -other")
    required, forbidden = [any_of(["x", "y"]), any_of(["z"])], [any_of(["n"])]
    assert to_expression(query, required, forbidden, expand) == (
        '(("x" OR "y") AND "z" AND "word") NOT ("n" OR "other")'
    )
    assert to_expression(parse_query(""), required, [], expand) == '("x" OR "y") AND "z"'


@pytest.mark.parametrize("text", ["", "   ", "→ … —", '""', '"→"', "-only -without", "\ue000\ue001", "\0"])
def test_a_query_without_a_word_to_find_finds_nothing(text: str) -> None:
    assert expression(text) is None


def test_a_query_with_too_much_is_refused() -> None:
    """To leave out some of its words would find what lacks them."""
    words = [f"w{number}" for number in range(MAX_TERMS)]
    assert len(parse_query(" ".join(words)).terms) == MAX_TERMS
    with pytest.raises(ValueError, match="at most 32 words and phrases; this one has 34"):
        parse_query(" ".join([*words, "-more", "tag:later"]))
    with pytest.raises(ValueError, match="at most 4000 characters; this one has 4001"):
        parse_query("x" * (MAX_QUERY_LENGTH + 1))


@given(st.text(max_size=60) | st.text(alphabet="ab \"-*()ORAND:^{}+'\\会→\0\ue000", max_size=40))
@example('"')
@example('a"b"*')
@example("NEAR(a b, 2)")
@example("text:word ^start {x} + y")
def test_no_text_is_a_wrong_query(text: str) -> None:
    connection = sqlite3.connect(":memory:")
    try:
        connection.execute("CREATE VIRTUAL TABLE t USING fts5 (x, content = '', columnsize = 0)")
        connection.execute("INSERT INTO t (rowid, x) VALUES (1, 'a b text word')")
        found = expression(text)
        if found is not None:
            connection.execute("SELECT rowid FROM t WHERE t MATCH ?", (found,)).fetchall()
    finally:
        connection.close()


def test_until_includes_the_period_it_names_and_before_excludes_it() -> None:
    whole, start = parse_query("walrus until:2026-11"), parse_query("walrus before:2026-11")
    assert (whole.until, start.until) == (_local(2026, 12, 1), _local(2026, 11, 1))
    assert parse_query('walrus since:2026-11-20 until:"2026-11-20"').until == _local(2026, 11, 21)


@pytest.mark.parametrize("text", ["after:2026-12 before:2026-11", "until:2026-11-01 since:2026-11-03"])
def test_a_period_that_ends_before_it_begins_is_no_query(text: str) -> None:
    with pytest.raises(QueryError, match="the period ends before it begins"):
        parse_query(text)
