"""Mistral Vibe, for the tests that every agent shares."""

from __future__ import annotations

from support.agent_cases import AgentCase, Answer, CommandLine

CASES = (
    AgentCase(
        name="mistral-vibe",
        home=".vibe",
        recorded=tuple(f"mistral_vibe/3.0.2/{name}" for name in ("tour", "subagent", "interrupted", "compaction")),
        answer=Answer("The notes hold", 1500, 1400, 60, 0),
        lacks=frozenset({"one message per record", "project in the path", "times as text"}),
        sample_cwd="/home/dev/work",
        subagent_tool="agents.spawn",
        sample_logs="logs/session",
        commands=(
            CommandLine("vibe -p 'Fix it' --auto-approve", prompt="Fix it"),
            CommandLine("vibe --resume 4ba798bb", session="4ba798bb"),
        ),
    ),
)
