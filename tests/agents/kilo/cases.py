"""Kilo CLI, for the tests that every agent shares."""

from __future__ import annotations

from support.agent_cases import AgentCase, Answer

CASES = (
    AgentCase(
        name="kilo",
        spoilt=(
            ("DROP TABLE session", "no table session"),
            ("ALTER TABLE part RENAME data TO other", "no column data in part"),
        ),
        home=".local/share/kilo",
        recorded=tuple(f"kilo/7.7.7/{name}" for name in ("tour", "errors", "compaction")),
        answer=Answer("Resumed: nothing", 1700, 1500, 15, 0),
        sample_logs="kilo.db",
    ),
)
