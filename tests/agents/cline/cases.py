"""Cline CLI, for the tests that every agent shares."""

from __future__ import annotations

from support.agent_cases import AgentCase, Answer

CASES = (
    AgentCase(
        name="cline",
        home=".cline/data",
        recorded=tuple(f"cline/3.0.65/{name}" for name in ("tour", "errors", "resume", "fork")),
        answer=Answer("The notes hold", 1500, 1400, 60, 0),
        lacks=frozenset({"times as text", "stop reasons", "project in the path"}),
        sample_cwd="/home/dev/work",
        sample_branch="main",
    ),
)
