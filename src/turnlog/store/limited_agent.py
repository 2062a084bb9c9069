"""The agent whose usage is limited by blocks, as the last sync noted it.

Asking the agents for it takes longer than a report, and a status line asks again and again.
"""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from turnlog.agents.base import Agent

_SETTING: Final = "limited_agent"


def limited_agent(connection: sqlite3.Connection) -> str | None:
    """The agent's name; None if no agent has blocks."""
    noted = _noted(connection)
    if noted is not None:
        return noted
    # A store that no sync has written yet, such as one of an earlier version.
    from turnlog.agents import agents

    return _first(agents())


def note_limited_agent(connection: sqlite3.Connection, found: Iterable[Agent]) -> None:
    """Remember which of these agents it is, if one is; if none is known yet, which of all."""
    from turnlog.agents import agents
    from turnlog.store.connection import write_transaction

    name = _first(found)
    if name is None and _noted(connection) is None:
        # Once for a store: agents of which nothing is here need not be imported otherwise.
        name = _first(agents())
    if name is not None and name != _noted(connection):
        with write_transaction(connection):
            connection.execute("INSERT OR REPLACE INTO settings (name, value) VALUES (?, ?)", (_SETTING, name))


def _noted(connection: sqlite3.Connection) -> str | None:
    row = connection.execute("SELECT value FROM settings WHERE name = ?", (_SETTING,)).fetchone()
    return None if row is None else row[0]


def _first(agents: Iterable[Agent]) -> str | None:
    return next((agent.name for agent in agents if agent.has_usage_blocks), None)
