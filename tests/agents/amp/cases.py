"""Amp, for the tests that every agent shares."""

from __future__ import annotations

from support.agent_cases import AgentCase, Answer, CommandLine

CASES = (
    AgentCase(
        name="amp",
        home=".local/share/amp",
        recorded=("amp/handwritten/tour",),
        answer=Answer("The notes hold", 18, 1580, 12, 0),
        is_word=True,
        lacks=frozenset(
            {"project in the path", "subagents", "one message per record", "times as text", "lines of JSON"}
        ),
        sample_cwd="/home/dev/work",
        sample_branch="main",
        sample_logs="threads",
        commands=(
            CommandLine("amp -x 'Fix it'", "Fix it"),
            CommandLine("amp threads continue T-019c", session="T-019c"),
        ),
    ),
)
