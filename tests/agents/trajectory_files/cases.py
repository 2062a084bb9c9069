"""Trajectories, for the tests that every agent shares."""

from __future__ import annotations

from support.agent_cases import AgentCase, Answer

CASES = (
    AgentCase(
        name="atif",
        home=".local/share/turnlog/exports/atif",
        recorded=("trajectory_files/harbor-0.26", "trajectory_files/turnlog"),
        answer=Answer("two parallel calls", 12, 2500, 45, 0),
        is_word=True,
        lacks=frozenset(
            {
                "run events",
                "stop reasons",
                "subagents",
                "one message per record",
                "project in the path",
                "times as text",
                "session totals",
            }
        ),
        sample_cwd="/home/dev/lighthouse",
        sample_logs="lighthouse",
        subagent_tool="delegate",
    ),
)
