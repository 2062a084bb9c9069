"""Claude Code, for the tests that every agent shares."""

from __future__ import annotations

from typing import Any

from support import claude_files
from support.agent_cases import AgentCase, Answer, CommandLine


def _call_ids(record: dict[str, Any]) -> list[str]:
    return [record["message"]["id"]] if record.get("type") == "assistant" else []


CASES = (
    AgentCase(
        name="claude-code",
        home=".claude",
        recorded=tuple(f"claude_code/scenarios/{name}" for name in ("basic", "subagent-sync", "interrupt")),
        answer=Answer("I remember", 15, 3000, 11, 0),
        sample_branch="main",
        sample_logs="projects",
        prompt=lambda text: claude_files.fold(claude_files.Log().user(text)),
        first_line=b'{"message":{"role":"user","content":"%s"},"type":"user","uuid":"u","sessionId":"s"}',
        call_ids=_call_ids,
        repeats_records=True,
        commands=(
            CommandLine("claude -p 'fix it'", "fix it"),
            CommandLine("claude 'fix it' -p --model opus --verbose", "fix it", "opus"),
            CommandLine("claude --model=opus --allowedTools Bash Edit --verbose -p 'fix'", "fix", "opus"),
            CommandLine("claude -p --allowedTools Bash Edit -- 'fix'", "fix"),
            CommandLine("claude --append-system-prompt short --resume 11 -p go", "go", None, "short", "11"),
            CommandLine("/usr/bin/claude.cmd -p x", "x"),
            CommandLine("npx --yes @anthropic-ai/claude-code@2.1.0 -p x", "x"),
            CommandLine("env A=b timeout 60 claude -p x", "x"),
        ),
        edit_tool="Edit",
    ),
)
