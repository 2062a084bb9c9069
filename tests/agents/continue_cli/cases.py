"""Continue, for the tests that every agent shares."""

from __future__ import annotations

from support.agent_cases import AgentCase, Answer, CommandLine

CASES = (
    AgentCase(
        name="continue",
        home=".continue",
        recorded=tuple(f"continue_cli/1.5.47/{name}" for name in ("tour", "errors")),
        answer=Answer("The notes hold", 1500, 1400, 55, 5),
        is_word=True,
        lacks=frozenset(
            {
                "subagents",
                "run events",
                "stop reasons",
                "project in the path",
                "times as text",
                "message times",
                "result times",
                "reasoning text",
            }
        ),
        sample_cwd="/home/dev/work",
        commands=(CommandLine("cn --fork 684be4dd 'Go on'", prompt="Go on", session="684be4dd"),),
    ),
)
