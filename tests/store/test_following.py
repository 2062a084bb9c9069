"""Whatever happens to a session, a page that follows it has in the end what a page that is loaded anew has."""

from __future__ import annotations

import tempfile
from pathlib import Path
from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from support.followers import Follower, Loaded, loaded
from support.plain_store import PRICE_VERSION, price
from support.profiles import examples
from support.toy_agent import ToyAgent
from support.toy_logs import World, make_schedule, worlds, write_world
from turnlog.agents.base import Agent, Source
from turnlog.store import open_store
from turnlog.store.base import SessionFilter, Store
from turnlog.store.connection import connect
from turnlog.sync.reader import SourceReader


@settings(max_examples=examples(25))
@given(worlds(), st.integers(0, 1 << 32))
def test_following_is_as_good_as_loading(world: World, seed: int) -> None:
    """R-S39: rewinds, compactions, forks, late results, streams that give way, in any order and any pieces."""
    agent = ToyAgent()
    with tempfile.TemporaryDirectory() as folder:
        home, path = Path(folder) / "home", Path(folder) / "store.db"
        connection = connect(path, checked=False)
        reader = SourceReader(connection, price, PRICE_VERSION)
        followers: dict[str, Follower] = {}
        with open_store(path) as store:
            for name, size in make_schedule(Random(seed), world, 6):
                write_world(home, {name: world[name][:size]})
                source = agent.source_of(home / name, home)
                group: list[tuple[Agent, Source]] = [] if source is None else [(agent, source)]
                assert reader.read(group).problems == []
                for follower in followers.values():
                    follower.follow()
                followers |= {id: Follower(store, id) for id in sessions_of(store) if id not in followers}
            for id, follower in followers.items():
                assert differences(follower, loaded(store, id)) == []
        connection.close()


def sessions_of(store: Store) -> list[str]:
    return [session.id for session in store.sessions(SessionFilter(subagents=True), limit=200).items]


def differences(follower: Follower, wanted: Loaded) -> list[str]:
    """What a page has otherwise than it should, a line each."""
    found: list[str] = []
    pairs: list[tuple[dict[Any, Any], dict[Any, Any]]] = list(
        zip((follower.messages, follower.rows, follower.events), wanted, strict=True)
    )
    for known, right in pairs:
        wrong = [key for key in {*known, *right} if known.get(key) != right.get(key)]
        found += [f"{key}: {known.get(key)} instead of {right.get(key)}" for key in wrong]
    return found
