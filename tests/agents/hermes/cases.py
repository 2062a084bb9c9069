"""Hermes Agent, for the tests that every agent shares."""

from __future__ import annotations

from support.agent_cases import AgentCase, Answer, CommandLine

CASES = (
    AgentCase(
        name="hermes",
        spoilt=(("DROP TABLE sessions", "no table sessions"),),
        home=".hermes",
        recorded=tuple(f"hermes/0.19.0/{name}" for name in ("tour", "subagent", "compaction")),
        answer=Answer("", 660_600, 0, 102, 0),
        lacks=frozenset({"tokens per call", "one message per record", "project in the path", "times as text"}),
        sample_cwd="/home/dev/work",
        strays=(
            ("DELETE FROM sessions", {"messages.session_id": 11}),
            ("UPDATE sessions SET id = NULL", {"messages.session_id": 11, "sessions.id": 1}),
            (
                "UPDATE messages SET session_id = x'00ff' WHERE id = (SELECT min(id) FROM messages)",
                {"messages.session_id": 1},
            ),
        ),
        touch="UPDATE sessions SET rewind_count = rewind_count + 1",
        said="messages",
        empty="DELETE FROM messages",
        sample_logs="state.db",
        commands=(
            CommandLine("hermes chat -m mock-model -q 'Fix it'", prompt="Fix it", model="mock-model"),
            CommandLine("hermes --resume 2026_1", session="2026_1"),
        ),
        subagent_tool="delegate_task",
    ),
)
