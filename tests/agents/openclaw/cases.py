"""OpenClaw and QClaw, for the tests that every agent shares."""

from __future__ import annotations

from support.agent_cases import AgentCase, Answer

CASES = tuple(
    AgentCase(
        name=name,
        # What QClaw has recorded are files.
        spoilt=(("DROP TABLE transcript_events", "no table transcript_events"),) if len(recorded) > 1 else (),
        home=f".{name}",
        recorded=recorded,
        answer=Answer("Resumed: nothing", 1700, 1500, 15, 0),
        lacks=frozenset({"project in the path"} if len(recorded) > 1 else {"subagents", "project in the path"}),
        sample_cwd="/home/dev/work",
        strays=(
            ("UPDATE transcript_events SET session_id = 'a#b' WHERE seq = 1", {"transcript_events.session_id": 1}),
            ("UPDATE transcript_events SET session_id = '' WHERE seq = 1", {"transcript_events.session_id": 1}),
        )
        if len(recorded) > 1
        else (),
        touch="UPDATE transcript_rewrite_watermarks SET generation = generation + 1",
        said="transcript_events" if len(recorded) > 1 else None,
        empty="DELETE FROM transcript_events",
        sample_logs="agents",
    )
    for name, recorded in (
        ("openclaw", tuple(f"openclaw/2026.9.6/{name}" for name in ("basic", "interrupted", "subagent"))),
        ("qclaw", ("openclaw/handwritten-qclaw",)),
    )
)
