"""Kimi Code and Kimi CLI, for the tests that every agent shares."""

from __future__ import annotations

from support.agent_cases import AgentCase, Answer

CASES = (
    AgentCase(
        name="kimi-code",
        home=".kimi-code",
        recorded=tuple(f"kimi/2.1.0/{name}" for name in ("tour", "interrupt", "compaction")),
        answer=Answer("Resumed: nothing", 1700, 1500, 15, 0),
        lacks=frozenset({"times as text"}),
        sample_cwd="/home/dev/work",
    ),
    AgentCase(
        name="kimi-cli",
        home=".kimi",
        recorded=("kimi_cli/1.45.0/tour", "kimi_cli/handwritten-subagent"),
        answer=Answer("Resumed: nothing", 1700, 1500, 15, 0),
        lacks=frozenset({"models", "stop reasons", "times as text"}),
        sample_cwd="/home/dev/work",
    ),
)
