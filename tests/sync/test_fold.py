"""The fold property (R-C13, R-C19): any split of the bytes and any order of the files ends in the same store."""

from __future__ import annotations

import tempfile
from pathlib import Path
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from support.plain_store import PRICE_VERSION, price
from support.profiles import examples
from support.store_dump import Dump, check_integrity, differences, dump, json_of
from support.toy_agent import ToyAgent
from support.toy_logs import Schedule, World, make_schedule, worlds, write_world
from turnlog.agents.base import Agent, Source
from turnlog.store.connection import connect
from turnlog.sync.reader import SourceReader

SEEDS = st.integers(0, 1 << 32)


def read_all(store: Path, home: Path, passes: list[Schedule], world: World, agent: ToyAgent) -> Dump:
    """Let the files grow, a group of them before each pass, and tell what the store says in the end."""
    connection = connect(store, checked=False)
    try:
        reader = SourceReader(connection, price, PRICE_VERSION)
        for growth in passes:
            write_world(home, {name: world[name][:size] for name, size in growth})
            sources = [agent.source_of(home / name, home) for name, _ in growth]
            group: list[tuple[Agent, Source]] = [(agent, source) for source in sources if source is not None]
            assert reader.read(group).problems == []
        check_integrity(connection)
        return dump(connection)
    finally:
        connection.close()


def clean(store: Path, home: Path, world: World, random: Random, agent: ToyAgent) -> Dump:
    """One import of everything, in any order."""
    names = sorted(world)
    random.shuffle(names)
    return read_all(store, home, [[(name, len(world[name])) for name in names]], world, agent)


def passes_of(random: Random, schedule: Schedule) -> list[Schedule]:
    """The schedule in groups; a file twice in a group has simply grown more."""
    passes: list[Schedule] = []
    while schedule:
        size = random.choice([1, 1, 2, 5])
        passes.append(list(dict(schedule[:size]).items()))
        schedule = schedule[size:]
    return passes


def settled(found: Dump) -> Dump:
    """Without what a fold only remembers until it knows whether a line goes on."""
    for path, (*words, state) in found["sources"].items():
        remembered = {**json_of(state), "end": None, "ended": None} if state else None
        found["sources"][path] = (*words, remembered)
    return found


@settings(max_examples=examples(30))
@given(worlds(), SEEDS, st.integers(0, 4), st.booleans())
def test_any_split_and_any_order_end_in_the_same_store(world: World, seed: int, cuts: int, grouped: bool) -> None:
    random = Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        passes = passes_of(random, make_schedule(random, world, cuts))
        grown = read_all(Path(folder) / "grown.db", home, passes, world, ToyAgent(grouped=grouped))
        whole = clean(Path(folder) / "whole.db", home, world, random, ToyAgent())
    assert differences(settled(grown), settled(whole)) == []
