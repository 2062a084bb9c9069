"""Tasks in SQLite: names of tasks, and the sessions that belong to them."""

from __future__ import annotations

import sqlite3
import time
import uuid
from typing import TYPE_CHECKING, Final

from turnlog.errors import ConflictError, NotFoundError
from turnlog.plain_text import one_line
from turnlog.store.sqlite.reading import Connections

if TYPE_CHECKING:
    from turnlog.store.values import Task

_SELECT: Final = (
    "SELECT t.id, coalesce(k.name, t.id), k.user, count(s.key), k.created_at, max(s.updated_at)"
    " FROM (SELECT id FROM tasks UNION SELECT o.task AS id FROM owners o JOIN sessions s ON s.owner_key = o.key"
    " WHERE o.task <> '') t LEFT JOIN tasks k ON k.id = t.id LEFT JOIN owners o ON o.task = t.id"
    " LEFT JOIN sessions s ON s.owner_key = o.key AND s.relationship IS NOT 'subagent'"
)
_GROUPED: Final = " GROUP BY t.id, k.name, k.user, k.created_at"


class TaskQueries(Connections):
    """The methods of `Store` about tasks."""

    def tasks(self) -> list[Task]:
        with self._snapshot() as connection:
            order = "coalesce(max(s.updated_at), k.created_at, 0) DESC, t.id"
            return [_task(*row) for row in connection.execute(f"{_SELECT}{_GROUPED} ORDER BY {order}").fetchall()]

    def task(self, task_id: str) -> Task:
        with self._snapshot() as connection:
            row = connection.execute(f"{_SELECT} WHERE t.id = ?{_GROUPED}", (task_id,)).fetchone()
        if row is None:
            raise NotFoundError(f"there is no task {task_id}")
        return _task(*row)

    def create_task(self, name: str, *, task_id: str | None = None, user: str | None = None) -> Task:
        made = uuid.uuid4().hex if task_id is None else one_line(task_id)
        shown = one_line(name) or made
        if not made:
            raise ValueError("the id of a task is not empty")
        with self._writing() as connection:
            _insert(connection, made, shown, user)
        return self.task(made)

    def rename_task(self, task_id: str, name: str, *, user: str | None = None) -> Task:
        self.task(task_id)
        shown = one_line(name) or task_id
        with self._writing() as connection:
            changed = connection.execute(
                "UPDATE tasks SET name = ?1 WHERE id = ?2 AND user = coalesce(?3, user) RETURNING id",
                (shown, task_id, user),
            ).fetchone()
            if changed is None:
                _insert(connection, task_id, shown, user)
        return self.task(task_id)

    def delete_task(self, task_id: str, *, user: str | None = None) -> None:
        from turnlog.store.writing.owners import leave_task

        self.task(task_id)
        with self._writing() as connection:
            connection.execute("DELETE FROM tasks WHERE id = ?1 AND user = coalesce(?2, user)", (task_id, user))
            leave_task(connection, task_id, user)


def _insert(connection: sqlite3.Connection, task_id: str, name: str, user: str | None) -> None:
    """Raises ConflictError if there is a task with this id."""
    row = connection.execute(
        "INSERT OR IGNORE INTO tasks (id, name, user, created_at) VALUES (?, ?, ?, ?) RETURNING id",
        (task_id, name, user or "", int(time.time() * 1000)),
    ).fetchone()
    if row is None:
        raise ConflictError(f"there is a task {task_id} already")


def _task(task_id: str, name: str, user: str | None, sessions: int, created: int | None, updated: int | None) -> Task:
    from turnlog.store.rows import moment
    from turnlog.store.values import Task

    return Task(task_id, name, user or None, sessions, moment(created), moment(updated))
