"""klaude-code, for the tests that every agent shares."""

from __future__ import annotations

from typing import Any

from support import klaude_files
from support.agent_cases import AgentCase, Answer


def _call_ids(record: dict[str, Any]) -> list[str]:
    return [record["data"]["created_at"]] if record.get("type") == "AssistantMessage" else []


CASES = (
    AgentCase(
        name="klaude",
        home=".klaude",
        recorded=("klaude/versions/2.43.0",),
        answer=Answer("Fixed: it ", 200, 1800, 40, 0),
        sample_logs="projects",
        prompt=lambda text: klaude_files.fold(klaude_files.user("u", text)),
        first_line=b'{"type":"UserMessage","data":{"parts":[{"type":"text","text":"%s"}]}}',
        call_ids=_call_ids,
        subagent_tool="Agent",
    ),
)
