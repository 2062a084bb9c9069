"""llm, for the tests that every agent shares."""

from __future__ import annotations

from support.agent_cases import AgentCase, Answer, CommandLine

CASES = (
    AgentCase(
        name="llm",
        spoilt=(
            ("DROP TABLE turns", "no table turns"),
            ("DROP TABLE threads", "no table threads"),
            ("ALTER TABLE turns RENAME parent_message_hash TO other", "no column parent_message_hash in turns"),
        ),
        home=".config/io.datasette.llm",
        recorded=("llm/0.36/tour",),
        answer=Answer("One answered", 1300, 1200, 30, 0),
        is_word=True,
        lacks=frozenset(
            {
                "subagents",
                "run events",
                "project in the path",
                "one message per record",
                "times as text",
                "reasoning text",
                "working folder",
            }
        ),
        sample_cwd="",
        strays=(
            ("DELETE FROM threads", {"turns.thread_id": 5}),
            ("DELETE FROM messages", {"parts.message_hash": 17}),
            (
                "UPDATE threads SET id = x'00' WHERE id = (SELECT min(id) FROM threads)",
                {"turns.thread_id": 3, "threads.id": 1},
            ),
        ),
        touch="UPDATE threads SET name = 'Another name'",
        empty="DELETE FROM turns; DELETE FROM messages; DELETE FROM parts",
        sample_logs="logs.db",
        commands=(
            CommandLine("llm -m mock-model 'What version?'", prompt="What version?", model="mock-model"),
            CommandLine("llm --cid 01m8 'And now?'", prompt="And now?", session="01m8"),
        ),
    ),
)
