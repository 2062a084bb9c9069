"""Droid, for the tests that every agent shares."""

from __future__ import annotations

from support import droid_files
from support.agent_cases import AgentCase, Answer, CommandLine

CASES = (
    AgentCase(
        name="droid",
        home=".factory",
        recorded=("droid/0.215.0/tour", "droid/0.117.0/subagent", "droid/0.215.0/compaction"),
        answer=Answer("", 1700, 1500, 15, 0),
        lacks=frozenset({"tokens per call", "stop reasons"}),
        sample_cwd="/home/dev/work",
        prompt=lambda text: droid_files.fold(droid_files.start(), droid_files.user("u", None, text)),
        first_line=b'{"type":"session_start","id":"s","title":"%s"}',
        commands=(
            CommandLine("droid exec -m mock-model 'Fix it'", prompt="Fix it", model="mock-model"),
            CommandLine("droid exec -s 1-2 Go", prompt="Go", session="1-2"),
        ),
    ),
)
