"""Search in PostgreSQL finds what search in a file finds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import get_args

import pytest

from support.hits_only import leave_out_suggestions
from support.postgres_stores import PostgresDatabases, push
from support.profiles import examples
from turnlog.model import Message, TextPart
from turnlog.store import open_store
from turnlog.store.base import Store
from turnlog.store.connection import connect
from turnlog.store.postgres.search import SearchReplica
from turnlog.store.postgres.store import PostgresStore
from turnlog.store.search.base import Hit, SearchField, SearchFilter, SearchPage, search_path
from turnlog.store.search.indexer import Indexer
from turnlog.store.search.searcher import Searcher
from turnlog.sync.syncer import sync

DATA = Path(__file__).parents[2] / "data"

FOLDERS = sorted(case for agent in DATA.iterdir() if agent.is_dir() for case in agent.glob("*/*") if case.is_dir())[
    ::12
]

QUERIES = examples(2000)

FOREIGN = (
    "日本語の文章です",
    "中文 搜索 測試",
    "한국어 검색 시험",
    "Größe über Straße",
    "snake_case camelCase HTTPServer2",
    "a.b.c::d->e",
    "wi\u0301d\u200bth sof\xadtened \ufeffbeginning می\u200cروم",
)
"""Texts of words that recorded sessions do not have."""


class Searches:
    """The same sessions twice, and words of theirs."""

    def __init__(self, path: Path, replica: SearchReplica, words: list[str], texts: list[str]) -> None:
        self.searcher = Searcher(path, search_path(path))
        self.replica = replica
        self.words = words
        self.texts = texts


@pytest.fixture(scope="module")
def searches(databases: PostgresDatabases, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Searches]:
    path = tmp_path_factory.mktemp("searched") / "turnlog.db"
    sync(path, roots=FOLDERS)
    with open_store(path) as one:
        say_foreign_words(one)
        texts = [
            part.text
            for session in one.sessions(limit=500).items
            for placed in one.messages(session.id)
            for part in placed.message.parts
            if isinstance(part, TextPart)
        ]
    with Indexer(path, search_path(path)) as indexer:
        indexer.catch_up()
    # Of a word like `is:open`, a beginning would be an error: a field with a value that it cannot have.
    words = sorted({word for text in texts for word in text.split() if len(word) < 40 and ":" not in word[:7]})
    with databases.store() as other:
        push(path, other, most=200)
        with SearchReplica(other, tmp_path_factory.mktemp("cache")) as replica:
            replica.follow()
            found = Searches(path, replica, words, texts)
            yield found
            found.searcher.close()


def say_foreign_words(store: Store, name: str = "words") -> None:
    for number, text in enumerate(FOREIGN):
        part = TextPart(id=f"f{number}.0", text=text)
        at = datetime(2026, 5, 1 + number, tzinfo=UTC)
        message = Message(id=f"f{number}", role="user", parts=(part,), created_at=at, updated_at=at)
        store.save_messages(f"demo:{name}", [message])


def a_query(random: Random, searches: Searches) -> str:
    """Words, beginnings, pieces of texts, phrases and what is left out, as somebody might type them."""
    word = random.choice(searches.words)
    text = random.choice([*searches.texts, *FOREIGN])
    start = random.randrange(max(1, len(text)))
    piece = text[start : start + random.randint(1, 12)]
    return random.choice(
        [
            word,
            word[: random.randint(1, 4)] + "*",
            f'"{" ".join(text.split()[:2])}"',
            piece,
            f"{word} {random.choice(searches.words)}",
            f"{word} -{random.choice(searches.words)}",
            f"{word} OR {random.choice(searches.words)}",
            random.choice(FOREIGN)[random.randint(0, 3) :],
            word.upper(),
        ]
    )


def a_filter(random: Random) -> SearchFilter:
    return random.choice(
        [
            *[SearchFilter()] * 4,
            SearchFilter(agent=random.choice(["claude-code", "codex", "demo", "pi"])),
            SearchFilter(role=random.choice(["user", "assistant"])),
            SearchFilter(field=random.choice(get_args(SearchField))),
            SearchFilter(failed=random.random() < 0.5),
            SearchFilter(tool=random.choice(["bash", "Read", "shell"])),
            SearchFilter(project="/home/dev/proj"),
            SearchFilter(since=datetime(2026, 4, 1, tzinfo=UTC)),
            SearchFilter(until=datetime(2026, 6, 1, tzinfo=UTC)),
        ]
    )


def said(page: SearchPage) -> tuple[list[Hit], int | None, bool]:
    """All that a page says; hits of the same time, and the sessions that share one, come in any order."""
    hits = [hit._replace(places=tuple(sorted(hit.places, key=repr))) for hit in page.hits]
    return sorted(hits, key=repr), page.total, page.total_is_exact


def test_hundreds_of_queries_find_the_same(searches: Searches, monkeypatch: pytest.MonkeyPatch) -> None:
    leave_out_suggestions(monkeypatch)
    random, found = Random(5), 0
    for _ in range(QUERIES):
        query, wanted = a_query(random, searches), a_filter(random)
        one = searches.searcher.search(query, wanted, limit=1000)
        other = searches.replica.search(query, wanted, limit=1000)
        assert said(one) == said(other), (query, wanted)
        found += bool(one.hits)
    assert found > QUERIES / 4
    assert searches.replica.unindexed() == 0


def test_sessions_are_found_in_the_same_order(searches: Searches) -> None:
    random = Random(6)
    for _ in range(100):
        query = a_query(random, searches)
        one, other = (each.sessions(query, limit=5) for each in (searches.searcher, searches.replica))
        assert one.total == other.total
        # Without words the newest come first. Of messages of one second the order of indexing decides.
        if query.strip():
            assert {hits.session_id for hits in one.sessions} == {hits.session_id for hits in other.sessions}, query


def test_the_copy_follows_what_is_written_and_forgotten(store: PostgresStore, tmp_path: Path) -> None:
    with SearchReplica(store, tmp_path) as replica:
        assert replica.follow() >= 0
        say_foreign_words(store)
        replica.follow()
        assert [hit.message_id for hit in replica.search("Straße").hits] == ["f3"]
        store.forget("demo:words")
        replica.follow()
        assert replica.search("Straße").hits == ()
        files = [path for path in tmp_path.rglob("*") if path.is_file()]
        assert files
        assert not any("Straße".encode() in path.read_bytes() for path in files if path.suffix == ".db")
        # The next session has the key of the forgotten one in the copy.
        say_foreign_words(store, "later")
        replica.follow()
        assert [hit.message_id for hit in replica.search("Straße").hits] == ["f3"]
        with closing(connect(next(tmp_path.rglob("turnlog.db")), read_only=True)) as copy:
            assert copy.execute("PRAGMA foreign_key_check").fetchall() == []


def test_a_copy_that_was_deleted_is_made_again(store: PostgresStore, tmp_path: Path) -> None:
    say_foreign_words(store)
    for name in ("one", "two"):
        with SearchReplica(store, tmp_path / name) as replica:
            replica.follow()
            assert [hit.message_id for hit in replica.search("camelCase").hits] == ["f4"]
