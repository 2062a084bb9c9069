"""Exports of chat services, for the tests that every agent shares."""

from __future__ import annotations

from support.agent_cases import AgentCase, Answer

CASES = (
    AgentCase(
        name="chatgpt",
        home=".local/share/turnlog/exports/chatgpt",
        recorded=("chat_exports/handwritten/chatgpt",),
        answer=Answer("", 0, 0, 0, 0),
        lacks=frozenset({"tokens", "totals", "folders", "projects", "subagents", "own records", "written times"}),
        sample_logs="2026-06",
    ),
    AgentCase(
        name="claude-ai",
        home=".local/share/turnlog/exports/claude-ai",
        recorded=("chat_exports/handwritten/claude_ai",),
        answer=Answer("", 0, 0, 0, 0),
        lacks=frozenset(
            {
                "tokens",
                "totals",
                "folders",
                "projects",
                "model",
                "events",
                "stop reasons",
                "subagents",
                "own records",
            }
        ),
        sample_logs="data-2026-06",
    ),
)
