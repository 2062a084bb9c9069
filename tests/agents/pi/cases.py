"""pi and the programs that write its logs, for the tests that every agent shares."""

from __future__ import annotations

from dataclasses import replace

from support import pi_files
from support.agent_cases import AgentCase, Answer
from support.claude_files import Gathered


def _prompt(text: str) -> Gathered:
    return pi_files.fold(pi_files.header(), pi_files.user(text, 1))


_PI = AgentCase(
    name="pi",
    home=".pi/agent",
    recorded=("pi/0.87.1/basic", "pi/0.87.1/tour"),
    answer=Answer("I remember", 200, 0, 14, 0),
    lacks=frozenset({"subagents"}),
    sample_cwd="/home/dev/work",
)

CASES = (
    replace(_PI, prompt=_prompt),
    replace(_PI, name="oh-my-pi", home=".omp/agent", recorded=("pi/handwritten-oh-my-pi",), lacks=frozenset()),
    replace(_PI, name="prime-agent", home=".prime/agent", recorded=("pi/handwritten-prime-agent",)),
    replace(_PI, name="omo", home=".omo/agent", recorded=("pi/handwritten-omo",)),
    replace(_PI, name="stepcode", home=".stepcode/agent", recorded=("pi/handwritten-stepcode",)),
)
