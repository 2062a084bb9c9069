"""Aider, for the tests that every agent shares."""

from __future__ import annotations

from support.agent_cases import AgentCase, Answer

CASES = (
    AgentCase(
        name="aider",
        home=".aider",
        recorded=("aider/0.86.2/edits", "aider/0.86.2/tour"),
        answer=Answer("", 5100, 0, 31, 0),
        lacks=frozenset(
            {
                "lines of JSON",
                "subagents",
                "stop reasons",
                "one message per record",
                "message times",
                "result times",
                "working folder",
                "tokens per call",
            }
        ),
        sample_logs="",
    ),
)
