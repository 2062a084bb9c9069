"""Any split of the bytes and any order of the files ends in the same hits, however often the index looked meanwhile."""

from __future__ import annotations

import tempfile
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.hits_only import leave_out_suggestions
from support.plain_store import PRICE_VERSION, price
from support.profiles import examples
from support.toy_agent import ToyAgent, session_id
from support.toy_logs import Schedule, World, make_schedule, worlds, write_world
from turnlog.store.connection import connect
from turnlog.store.search import batch
from turnlog.store.search.base import Hit, SearchFilter
from turnlog.store.search.indexer import Indexer
from turnlog.store.search.searcher import Searcher
from turnlog.sync.reader import SourceReader

QUERIES = (
    *("please", "words", "done", "hm", "ok", "no", "你", "你好", '"words and words"', "output", "whole", "long", "way"),
    *("src", "Read", "pl*", "wor*", "words -done", "done OR please", ""),
)
FILTERS = (
    *(SearchFilter(), SearchFilter(failed=True), SearchFilter(failed=False), SearchFilter(role="user")),
    *(SearchFilter(session=session_id("s0")), SearchFilter(session=session_id("s1")), SearchFilter(tool="Bash")),
    *(SearchFilter(project="s0"), SearchFilter(project="s1"), SearchFilter(field="output", agent="toy")),
)


def read_and_index(folder: Path, home: Path, schedule: Schedule, world: World, agent: ToyAgent, looks: Random) -> None:
    """Let the files grow by the schedule and read each after each step; index now and then, and at the end."""
    store, search = folder / "store.db", folder / "search.db"
    connection = connect(store, checked=False)
    try:
        reader = SourceReader(connection, price, PRICE_VERSION)
        with Indexer(store, search) as indexer:
            for name, size in schedule:
                write_world(home, {name: world[name][:size]})
                source = agent.source_of(home / name, home)
                assert source is not None
                assert not reader.read([(agent, source)]).problems
                if looks.random() < 0.5:
                    indexer.step()
            indexer.catch_up()
            assert indexer.unindexed() == 0
    finally:
        connection.close()


def answers(folder: Path) -> dict[tuple[str, SearchFilter], list[Hit]]:
    """Every hit of every query with every filter."""
    with Searcher(folder / "store.db", folder / "search.db") as opened:
        return {
            (query, wanted): [_without_keys(hit) for hit in opened.search(query, wanted, limit=10_000).hits]
            for query in QUERIES
            for wanted in FILTERS
        }


def _without_keys(hit: Hit) -> Hit:
    """Sessions in the order of their ids: behind the payer they come in the order of their keys."""
    return hit._replace(places=(hit.places[0], *sorted(hit.places[1:])))


@settings(max_examples=examples(20))
@given(worlds(), st.integers(0, 1 << 32), st.integers(0, 4), st.booleans(), st.sampled_from([0, 300, 1 << 20]))
def test_any_split_and_any_order_end_in_the_same_hits(
    world: World, seed: int, cuts: int, grouped: bool, fresh_size: int
) -> None:
    random = Random(seed)
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        patch.setattr(batch, "FRESH_SIZE", fresh_size)
        leave_out_suggestions(patch)
        home, grown, whole = Path(folder) / "home", Path(folder) / "grown", Path(folder) / "whole"
        grown.mkdir()
        whole.mkdir()
        schedule = make_schedule(random, world, cuts)
        read_and_index(grown, home, schedule, world, ToyAgent(grouped=grouped), random)
        names = sorted(world, key=lambda name: random.random())
        read_and_index(whole, home, [(name, len(world[name])) for name in names], world, ToyAgent(), random)
        assert answers(grown) == answers(whole)
