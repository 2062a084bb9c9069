"""OpenHands, for the tests that every agent shares."""

from __future__ import annotations

from support.agent_cases import AgentCase, Answer, CommandLine

CASES = (
    AgentCase(
        name="openhands",
        home=".openhands",
        recorded=tuple(f"openhands/1.16.0/{name}" for name in ("tour", "errors", "failed", "subagent")),
        answer=Answer("The notes hold", 1500, 1400, 55, 5),
        lacks=frozenset({"stop reasons", "project in the path", "one message per record", "reasoning text"}),
        sample_cwd="/home/dev/work",
        sample_logs="conversations",
        commands=(
            CommandLine("openhands --headless -t 'Fix it'", prompt="Fix it"),
            CommandLine("openhands --resume 18c1", session="18c1"),
        ),
    ),
)
