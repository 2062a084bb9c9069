"""Zed, for the tests that every agent shares."""

from __future__ import annotations

from support.agent_cases import AgentCase, Answer
from support.zed_files import replace_text, write_home

CASES = (
    AgentCase(
        name="zed",
        spoilt=(("ALTER TABLE threads RENAME data_type TO other", "no column data_type in threads"),),
        home=".local/share/zed",
        recorded=("zed/handwritten/tour",),
        answer=Answer("", 1200, 4100, 180, 0),
        is_word=True,
        lacks=frozenset(
            {
                "tokens per call",
                "message times",
                "result times",
                "stop reasons",
                "project in the path",
                "one message per record",
                "times as text",
                "run events",
            }
        ),
        write_recorded=write_home,
        sample_cwd="/home/dev/work",
        empty="""UPDATE threads SET updated_at = '2026-11-27T10:00:00Z', data_type = 'json',
            data = '{"version":"0.3.0","messages":[]}'""",
        change_text=replace_text,
        strays=(("UPDATE threads SET id = '' WHERE id = (SELECT min(id) FROM threads)", {"threads.id": 1}),),
        touch="UPDATE threads SET updated_at = '2026-11-27T10:00:00Z'",
        sample_logs="threads",
        subagent_tool="spawn_agent",
    ),
)
