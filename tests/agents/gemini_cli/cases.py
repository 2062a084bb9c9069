"""Gemini CLI, for the tests that every agent shares."""

from __future__ import annotations

from typing import Any

from support import gemini_files
from support.agent_cases import AgentCase, Answer, CommandLine


def _call_ids(record: dict[str, Any]) -> list[str]:
    return [record["id"]] if record.get("type") == "gemini" else []


CASES = (
    AgentCase(
        name="gemini-cli",
        home=".gemini",
        recorded=tuple(f"gemini_cli/scenarios/{name}" for name in ("basic", "subagent", "interrupt")),
        answer=Answer("I remember", 15, 3000, 11, 4),
        # It writes lists of messages anew in one record.
        lacks=frozenset({"stop reasons", "one message per record"}),
        sample_logs="tmp",
        prompt=lambda text: gemini_files.fold(gemini_files.header(), gemini_files.user("u", text)),
        call_ids=_call_ids,
        repeats_records=True,
        commands=(
            CommandLine("gemini -p 'fix it' -o stream-json -m gemini-3", "fix it", "gemini-3"),
            CommandLine("gemini fix it", "fix it"),
        ),
        edit_tool="replace",
        subagent_tool="invoke_agent",
    ),
)
