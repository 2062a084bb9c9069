"""Codex, for the tests that every agent shares."""

from __future__ import annotations

from support import codex_files
from support.agent_cases import AgentCase, Answer, CommandLine

CASES = (
    AgentCase(
        name="codex",
        home=".codex",
        recorded=tuple(f"codex/scenarios/{name}" for name in ("basic", "subagent-gpt-5.5", "interrupt")),
        answer=Answer("I remember", 15, 3000, 11, 0),
        # A subagent's task is encrypted: nothing readable was said to it.
        lacks=frozenset({"project in the path"}),
        sample_branch="main",
        prompt=lambda text: codex_files.fold(codex_files.meta(), codex_files.prompt(text)),
        first_line=b'{"type":"session_meta","payload":{"id":"t","base_instructions":{"text":"%s"}}}',
        repeats_records=True,
        commands=(
            CommandLine("codex exec --json 'fix it'", "fix it"),
            CommandLine("codex -m gpt-5.5 exec -C /work -", None, "gpt-5.5"),
            CommandLine("codex exec resume 0199 'go on'", "go on", session="0199"),
            CommandLine("codex exec resume --last 'go on'", "go on"),
            CommandLine("codex resume 0199", session="0199"),
        ),
        edit_tool="apply_patch",
        subagent_tool="spawn_agent",
    ),
)
