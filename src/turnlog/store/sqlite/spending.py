"""What was spent since a time and in the running block, for status lines.

It imports as little as it can: an agent asks for a status line after every answer, and imports take most of the time.
"""

from __future__ import annotations

import sqlite3
from datetime import UTC, datetime

from turnlog.arguments import checked
from turnlog.store.dollars import known_cost, per_hour
from turnlog.store.limited_agent import limited_agent
from turnlog.store.periods import BLOCK, block_starts, start_of
from turnlog.store.spending import RunningBlock, Spending, SpentMoney
from turnlog.store.sqlite.reading import Connections
from turnlog.store.sqlite.usage_rows import first_call, read_sums, used_quarter_hours
from turnlog.store.usage_filter import UsageFilter


class SpendingQueries(Connections):
    """The query of `Store` about what was just spent."""

    @checked
    def spending(self, since: datetime) -> Spending:
        now = datetime.now(UTC)
        with self._snapshot() as connection:
            return Spending(_spent(connection, UsageFilter(since=since)), _running_block(connection, now))


def _spent(connection: sqlite3.Connection, wanted: UsageFilter) -> SpentMoney:
    sums = read_sums(connection, wanted)
    return SpentMoney(known_cost(sums), sums["unpriced_calls"] + sums["unknown_calls"])


def _running_block(connection: sqlite3.Connection, now: datetime) -> RunningBlock | None:
    agent = limited_agent(connection)
    used = used_quarter_hours(connection, agent, now - BLOCK)
    begun = [each for each in block_starts(used) if start_of(each, UTC) <= now]
    if not begun or now >= start_of(begun[-1], UTC) + BLOCK:
        return None
    start = start_of(begun[-1], UTC)
    spent = _spent(connection, UsageFilter(agent=agent, since=start, until=start + BLOCK))
    first = first_call(connection, next(each for each in used if each >= begun[-1]), agent)
    return RunningBlock(start + BLOCK, spent, per_hour(spent.cost, first, now))
