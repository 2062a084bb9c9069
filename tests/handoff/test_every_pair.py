"""A session of every agent is handed to every agent that takes sessions, and read again by turnlog."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from support.handed_over import make_databases, own_messages, said, stored
from turnlog import handoff
from turnlog.server.sample import sample_roots
from turnlog.store import open_store
from turnlog.store.base import SessionFilter
from turnlog.sync.syncer import sync

TARGETS = [target.name for target in handoff.targets()]


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with one session or more of every agent."""
    path = tmp_path_factory.mktemp("samples") / "store.db"
    sync(path, roots=sample_roots())
    return path


@pytest.mark.parametrize("target", TARGETS)
def test_every_session_becomes_a_continuation_with_an_equal_history(target: str, samples: Path, tmp_path: Path) -> None:
    path, home = tmp_path / "store.db", tmp_path / "home"
    make_databases(home)
    shutil.copy(samples, path)
    with open_store(path) as store:
        found = store.sessions(SessionFilter(), limit=500).items
        # Of each agent the session with the most calls.
        sessions = {each.agent: each for each in sorted(found, key=lambda each: each.counts.tool_calls)}.values()
        plans = {each.id: handoff.plan(store, each.id, target, folder=tmp_path, home=home) for each in sessions}
    for plan in plans.values():
        plan.write()
    assert len({plan.session.agent for plan in plans.values()}) > 10
    sync(path, roots=[home])
    with open_store(path) as store:
        for session_id, plan in plans.items():
            new = store.session(plan.session_id)
            assert stored(store, new.id) == said(plan), session_id
            assert own_messages(store, new.id) == []
            assert [(each.kind, each.parent_session_id) for each in new.relationships] == [("continuation", session_id)]
            assert (new.usage, new.cost, new.unpriced_calls) == (type(new.usage)(), None, 0)
            assert new.title == plan.session.title
            assert new.cwd == str(tmp_path)
            assert new.created_at is not None
            assert new.created_at >= plan.conversation.at.replace(microsecond=0)
        mine = {plan.session_id for plan in plans.values()}
        assert not [each for each in store.diagnostics(limit=500).items if each.session_id in mine]
        assert not [each for each in store.unknown_kinds() if each.agent == target]
