"""Logs of Inspect, for the tests that every agent shares."""

from __future__ import annotations

from support.agent_cases import AgentCase, Answer

CASES = (
    AgentCase(
        name="inspect-ai",
        home=".local/share/turnlog/exports/inspect-ai",
        recorded=("inspect_logs/0.3.285/tour", "inspect_logs/0.3.285/failed"),
        is_word=True,
        answer=Answer("High water is at 06:12", 1700, 4000, 30, 0),
        lacks=frozenset(
            {
                "working folder",
                "project in the path",
                "subagents",
                "one message per record",
                "session totals",
            }
        ),
        sample_logs="lighthouse",
    ),
)
