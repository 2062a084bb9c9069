"""Copilot CLI, for the tests that every agent shares."""

from __future__ import annotations

from typing import Any

from support.agent_cases import AgentCase, Answer


def _call_ids(record: dict[str, Any]) -> list[str]:
    return [record["id"]] if record.get("type") == "assistant.message" else []


CASES = (
    AgentCase(
        name="copilot-cli",
        home=".copilot",
        recorded=tuple(f"copilot_cli/1.0.102/{name}" for name in ("basic", "subagent", "interrupt")),
        answer=Answer("The notes hold", 1500, 1400, 55, 5),
        lacks=frozenset({"project in the path"}),
        sample_branch="main",
        sample_logs="session-state",
        call_ids=_call_ids,
        subagent_tool="task",
    ),
)
