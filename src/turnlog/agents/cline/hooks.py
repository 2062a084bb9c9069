"""Cline's hook events (recorded with 3.0.65): of its own form, with what an event is about in an object of its own.

No event has a prompt or the text of an answer but the last. A subagent's events name the session that started it.
"""

from __future__ import annotations

from datetime import UTC, datetime

from msgspec import Raw

from turnlog.agents.cline import NAME
from turnlog.agents.cline.contents import TOOL_KINDS, result_of
from turnlog.agents.cline.records import ClineBlock
from turnlog.agents.hook_events import HookFormat, HookReading, output_text, read_call, read_prompt, read_stop
from turnlog.model import TextPart


def _read_result(reading: HookReading) -> None:
    event = reading.event
    given = event.tool_response
    block = ClineBlock(name=event.tool_name, content=given, is_error=isinstance(event.error, Raw))
    found = result_of(block, "", datetime.fromtimestamp(0, UTC))
    texts = [part.text for part in found.content if isinstance(part, TextPart)]
    reading.end_call(found.status, "\n".join(filter(None, texts)) or output_text(given))


EVENTS = {
    "UserPromptSubmit": read_prompt,
    "PreToolUse": read_call,
    "PostToolUse": _read_result,
    "Stop": read_stop,
}

NAMES = {
    "sessionContext.rootSessionId": "session_id",
    "hookName": "hook_event_name",
    "workspaceRoots": "workspace_roots",
    "userPromptSubmit.prompt": "prompt",
    "turn.outputText": "last_assistant_message",
    **{
        f"{outer}.{inner}": name
        for outer in ("tool_call", "tool_result")
        for inner, name in {
            "id": "tool_use_id",
            "name": "tool_name",
            "input": "tool_input",
            "output": "tool_response",
            "error": "error",
            "durationMs": "duration_ms",
        }.items()
    },
}

EVENT_NAMES = {
    "agent_start": "TaskStart",
    "agent_resume": "TaskResume",
    "agent_end": "Stop",
    "agent_abort": "StopCancelled",
    "agent_error": "StopFailure",
    "prompt_submit": "UserPromptSubmit",
    "tool_call": "PreToolUse",
    "tool_result": "PostToolUse",
    "session_shutdown": "SessionEnd",
}
"""Cline's name of an event, which is another one than that of its file -> the one here."""

HOOK_FORMAT = HookFormat(
    NAME, EVENTS, TOOL_KINDS, child="{session}__{agent}", names=NAMES, events=EVENT_NAMES, child_facts=True
)
