"""Qwen Code, for the tests that every agent shares."""

from __future__ import annotations

from support import qwen_files
from support.agent_cases import AgentCase, Answer

CASES = (
    AgentCase(
        name="qwen-code",
        home=".qwen",
        recorded=tuple(f"qwen_code/0.24.4/{name}" for name in ("tour", "subagent", "interrupt")),
        answer=Answer("Resumed: nothing", 1700, 1500, 15, 0),
        sample_branch="main",
        sample_logs="projects",
        prompt=lambda text: qwen_files.fold(qwen_files.user("u", None, text)),
        first_line=b'{"uuid":"u","sessionId":"s","type":"user","message":{"role":"user","parts":[{"text":"%s"}]}}',
        subagent_tool="agent",
    ),
)
