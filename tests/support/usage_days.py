"""Whether the sums by day are those of what sessions used."""

from __future__ import annotations

from typing import Any, Final

import psycopg

_COLUMNS: Final = (
    "team_key, model_key, day, session_key, owner_user, project_key, calls, unknown_calls, unpriced_calls, tokens,"
    " output, cost"
)

_USED: Final = """
SELECT u.team_key, {model}, u.quarter_hour / 96, u.session_key, o.owner_user,
    CASE WHEN o.level <> 'metrics' THEN s.project_key END, sum(u.calls), sum(u.unknown_calls), sum(u.unpriced_calls),
    sum(u.input + u.cache_read + u.cache_write_5m + u.cache_write_1h + u.cache_write + u.output + u.reasoning
        + u.tool_prompt), sum(u.output), sum(u.cost)
FROM turnlog.usage u JOIN turnlog.sessions s ON (s.team_key, s.key) = (u.team_key, u.session_key)
JOIN turnlog.session_owners o ON (o.team_key, o.session_key) = (u.team_key, u.session_key)
GROUP BY 1, 2, 3, 4, 5, 6
"""


def days_that_differ(url: str) -> list[tuple[Any, ...]]:
    """Rows of sums that nobody used, and used ones of which there is no row."""
    with psycopg.connect(url) as connection:
        used = {
            tuple(row)
            for model in ("u.model_key", "-1")
            for row in connection.execute(_USED.format(model=model).encode()).fetchall()
        }
        kept = {tuple(row) for row in connection.execute(f"SELECT {_COLUMNS} FROM turnlog.usage_days".encode())}
    return sorted(used ^ kept, key=repr)
