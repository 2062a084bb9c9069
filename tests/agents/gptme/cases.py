"""gptme, for the tests that every agent shares."""

from __future__ import annotations

from support.agent_cases import AgentCase, Answer, CommandLine

CASES = (
    AgentCase(
        name="gptme",
        home=".local/share/gptme",
        recorded=tuple(f"gptme/0.35.1/{name}" for name in ("tour", "stopped", "edits")),
        answer=Answer("The notes hold", 1500, 1400, 55, 5),
        lacks=frozenset({"subagents", "stop reasons", "project in the path"}),
        sample_cwd="/home/dev/work",
        sample_logs="logs",
        commands=(CommandLine("gptme --name tour -m m 'Go on'", prompt="Go on", model="m", session="tour"),),
    ),
)
