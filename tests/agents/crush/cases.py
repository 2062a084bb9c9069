"""Crush, for the tests that every agent shares."""

from __future__ import annotations

from support.agent_cases import AgentCase, Answer, CommandLine
from support.crush_files import write_home

CASES = (
    AgentCase(
        name="crush",
        spoilt=(("DROP TABLE messages", "no table messages"),),
        home=".local/share/crush",
        recorded=("crush/handwritten/tour",),
        answer=Answer("", 0, 0, 0, 0),
        lacks=frozenset(
            {
                "tokens per call",
                "session totals",
                "working folder",
                "project in the path",
                "one message per record",
                "times as text",
            }
        ),
        write_recorded=write_home,
        sample_cwd="",
        strays=(
            ("DELETE FROM sessions", {"messages.session_id": 20}),
            (
                "UPDATE sessions SET id = 'a#b' WHERE id = (SELECT min(session_id) FROM messages)",
                {"messages.session_id": 2, "sessions.id": 1},
            ),
        ),
        touch="UPDATE messages SET updated_at = updated_at + 1",
        said="messages",
        empty="DELETE FROM messages",
        sample_logs="crush.db",
        commands=(
            CommandLine("crush run -m claude-sonnet-4-5 'Fix it'", "Fix it", "claude-sonnet-4-5"),
            CommandLine("crush --session 8c4e", session="8c4e"),
        ),
        subagent_tool="agent",
    ),
)
