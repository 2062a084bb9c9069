"""Grok Build, for the tests that every agent shares."""

from __future__ import annotations

from support.agent_cases import AgentCase, Answer, CommandLine

CASES = (
    AgentCase(
        name="grok-build",
        home=".grok",
        recorded=("grok_build/0.2.111/tour",),
        answer=Answer("The notes hold", 1500, 1400, 55, 5),
        lacks=frozenset({"times as text"}),
        sample_cwd="/home/dev/work",
        sample_branch="main",
        commands=(
            CommandLine("grok -p 'Fix it' -m grok-4.5", "Fix it", "grok-4.5"),
            CommandLine("grok --resume 01a2", session="01a2"),
        ),
        subagent_tool="spawn_subagent",
    ),
)
