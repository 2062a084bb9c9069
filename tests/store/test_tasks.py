"""Tasks: sessions that belong together, on both engines."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from turnlog.errors import ConflictError, NotFoundError
from turnlog.model import Ownership
from turnlog.store import open_store
from turnlog.store.base import SessionFilter, Store


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    if request.param == "sqlite":
        with open_store(tmp_path / "turnlog.db", create=True) as found:
            yield found
    else:
        with request.getfixturevalue("databases").store() as found:
            yield found


def ids(store: Store, task: str) -> list[str]:
    return sorted(session.id for session in store.sessions(SessionFilter(task=task)).items)


def save(store: Store, name: str, task: str, user: str | None = None) -> None:
    store.save_session(f"bot:{name}", title=name, ownership=Ownership(user=user, task=task, machine="m"))


def test_a_task_has_the_sessions_that_name_it(store: Store) -> None:
    """R-C6."""
    made = store.create_task("Move  the till\n", task_id="t1")
    assert (made.id, made.name, made.sessions, made.updated_at) == ("t1", "Move the till", 0, None)
    assert made.created_at is not None
    save(store, "a", "t1")
    save(store, "b", "t1")
    save(store, "c", "T-2")
    found = {task.id: (task.name, task.sessions, task.created_at is None) for task in store.tasks()}
    assert found == {"t1": ("Move the till", 2, False), "T-2": ("T-2", 1, True)}
    assert store.task("t1").updated_at == store.session("bot:b").updated_at
    assert ids(store, "t1") == ["bot:a", "bot:b"]


def test_a_task_is_renamed_and_its_id_stays(store: Store) -> None:
    save(store, "a", "T-2")
    assert store.rename_task("T-2", "Second").name == "Second"
    assert store.rename_task("T-2", "Other").name == "Other"
    assert store.rename_task("T-2", "").name == "T-2"
    assert ids(store, "T-2") == ["bot:a"]


def test_a_deleted_task_leaves_its_sessions(store: Store) -> None:
    store.create_task("x", task_id="t1")
    save(store, "a", "t1", "ann")
    save(store, "b", "t1", "bob")
    before = store.last_change()
    store.delete_task("t1", user="ann")
    assert ids(store, "t1") == ["bot:b"]
    assert store.session("bot:a").ownership == Ownership(user="ann", machine="m")
    assert [entry.session_id for entry in store.changes(before)] == ["bot:a"]
    store.delete_task("t1")
    with pytest.raises(NotFoundError, match="t1"):
        store.task("t1")
    assert store.session("bot:b").ownership.task is None


def test_an_id_is_taken_once(store: Store) -> None:
    store.create_task("x", task_id="t1", user="ann")
    with pytest.raises(ConflictError, match="t1"):
        store.create_task("y", task_id="t1", user="bob")
    with pytest.raises(ConflictError, match="t1"):
        store.rename_task("t1", "y", user="bob")
    assert store.task("t1").name == "x"
    assert store.create_task("x").id != store.create_task("x").id


@pytest.mark.parametrize("method", ["task", "rename_task", "delete_task"])
def test_what_is_not_there_is_not_found(store: Store, method: str) -> None:
    with pytest.raises(NotFoundError, match="nobody"):
        getattr(store, method)("nobody", *(["x"] if method == "rename_task" else []))
