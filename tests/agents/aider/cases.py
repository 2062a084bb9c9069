"""Aider, for the tests that every agent shares."""

from __future__ import annotations

from support.agent_cases import AgentCase, Answer

CASES = (
    AgentCase(
        name="aider",
        home=".aider",
        recorded=("aider/0.86.2/edits", "aider/0.86.2/tour"),
        answer=Answer("", 5100, 0, 31, 0),
        lacks=frozenset({"JSON", "subagents", "stop reasons", "own records", "times", "folders", "tokens"}),
        sample_logs="",
    ),
)
