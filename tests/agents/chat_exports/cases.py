"""Exports of chat services, for the tests that every agent shares."""

from __future__ import annotations

from support.agent_cases import AgentCase, Answer

CASES = (
    AgentCase(
        name="chatgpt",
        home=".local/share/turnlog/exports/chatgpt",
        recorded=("chat_exports/handwritten/chatgpt",),
        answer=Answer("", 0, 0, 0, 0),
        lacks=frozenset(
            {
                "tokens per call",
                "session totals",
                "working folder",
                "project in the path",
                "subagents",
                "one message per record",
                "times as text",
            }
        ),
        sample_logs="2026-06",
    ),
    AgentCase(
        name="claude-ai",
        home=".local/share/turnlog/exports/claude-ai",
        recorded=("chat_exports/handwritten/claude_ai",),
        answer=Answer("", 0, 0, 0, 0),
        lacks=frozenset(
            {
                "tokens per call",
                "session totals",
                "working folder",
                "project in the path",
                "models",
                "run events",
                "stop reasons",
                "subagents",
                "one message per record",
            }
        ),
        sample_logs="data-2026-06",
    ),
)
