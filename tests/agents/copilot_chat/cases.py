"""Copilot Chat in VS Code, for the tests that every agent shares."""

from __future__ import annotations

from support.agent_cases import AgentCase, Answer

CASES = (
    AgentCase(
        name="vscode-copilot",
        home=".vscode-server/data/User",
        recorded=("copilot_chat/handwritten/home",),
        answer=Answer("", 9000, 0, 215, 0),
        lacks=frozenset({"tokens per call", "stop reasons", "subagents", "one message per record", "times as text"}),
        sample_cwd="/home/dev/work",
        sample_branch="main",
        sample_logs="workspaceStorage",
    ),
)
