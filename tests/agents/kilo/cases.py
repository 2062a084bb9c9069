"""Kilo CLI, for the tests that every agent shares."""

from __future__ import annotations

from support.agent_cases import AgentCase, Answer

CASES = (
    AgentCase(
        name="kilo",
        strays=(
            ("DELETE FROM session", {"message.session_id": 13, "part.session_id": 35}),
            (
                "UPDATE session SET id = 'ses/1' WHERE id = (SELECT min(session_id) FROM message)",
                {"message.session_id": 3, "part.session_id": 9, "session.id": 1},
            ),
            ("UPDATE part SET session_id = 'gone' WHERE id = (SELECT min(id) FROM part)", {"part.session_id": 1}),
        ),
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
