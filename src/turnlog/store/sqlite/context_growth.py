"""How the context of a session grows from step to step, in SQLite."""

from __future__ import annotations

from turnlog.model import Fate
from turnlog.store.insights import ContextStep
from turnlog.store.keys import session_key
from turnlog.store.rows import moment
from turnlog.store.sqlite.reading import Connections, held

_BUCKETS = ("input", "cache_read", "cache_write", "cache_write_5m", "cache_write_1h", "tool_prompt")
"""Columns that together are all that a model was sent; each is NULL if the log does not say it."""

_CONTEXT = (
    f"iif(coalesce({', '.join(f'm.{name}' for name in _BUCKETS)}) IS NULL, NULL,"
    f" {' + '.join(f'coalesce(m.{name}, 0)' for name in _BUCKETS)})"
)

_OUTPUT = "iif(coalesce(m.output, m.reasoning) IS NULL, NULL, coalesce(m.output, 0) + coalesce(m.reasoning, 0))"


class ContextQueries(Connections):
    """The query of `Store` for the context of a session."""

    def context_steps(self, session_id: str) -> list[ContextStep]:
        with self._snapshot() as connection:
            key = session_key(connection, session_id)
            compactions = connection.execute(
                "SELECT position FROM events WHERE session_key = ? AND type = 'compaction' ORDER BY position", (key,)
            ).fetchall()
            rows = connection.execute(
                f"SELECT s.position, m.external_id, s.turn, m.created_at, d.name, {_CONTEXT}, m.cache_read, {_OUTPUT},"
                f" s.fate FROM {held(connection, key)} s JOIN messages m ON m.key = s.message_key"
                " LEFT JOIN models d ON d.key = m.model_key WHERE s.session_key = ? AND m.role = 'assistant'"
                " ORDER BY s.position",
                (key,),
            ).fetchall()
        waiting = [position for (position,) in reversed(compactions)]
        steps: list[ContextStep] = []
        for position, message_id, turn, created_at, model, context, cached, output, fate in rows:
            is_compacted = False
            # Several compactions may come between two calls.
            while waiting and waiting[-1] <= position:
                is_compacted = waiting.pop() is not None
            at = moment(created_at)
            steps.append(
                ContextStep(position, message_id, turn, at, model, context, cached, output, is_compacted, Fate(fate))
            )
        return steps
