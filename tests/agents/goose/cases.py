"""Goose, for the tests that every agent shares."""

from __future__ import annotations

from support.agent_cases import AgentCase, Answer, CommandLine

CASES = (
    AgentCase(
        name="goose",
        spoilt=(("ALTER TABLE messages RENAME content_json TO other", "no column content_json in messages"),),
        home=".local/share/goose",
        recorded=("goose/1.52.0/tour",),
        answer=Answer("The notes hold", 1500, 1400, 60, 0),
        lacks=frozenset({"stop reasons", "project in the path", "one message per record", "times as text"}),
        sample_cwd="/home/dev/work",
        strays=(
            ("DELETE FROM sessions", {"messages.session_id": 80}),
            (
                "UPDATE messages SET session_id = '' WHERE id = (SELECT min(id) FROM messages)",
                {"messages.session_id": 1},
            ),
        ),
        touch="UPDATE sessions SET updated_at = datetime('now')",
        said="messages",
        empty="DELETE FROM messages",
        sample_logs="sessions",
        commands=(
            CommandLine("goose run -t 'Fix it' --model gpt-5", "Fix it", "gpt-5"),
            CommandLine("goose session --resume --session-id 20261126_1", session="20261126_1"),
        ),
        subagent_tool="delegate",
    ),
)
