"""A conversation as a rollout of Codex, in the format of 0.171.

The head is `session_meta`, then come bare items of the Responses API. Codex needs no more to go on with a thread; its
list of sessions and its screen also want the events of prompts and answers.
"""

from __future__ import annotations

import base64
import secrets
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from turnlog.agents.handoffs import (
    MARK,
    FileWriter,
    HandoffConversation,
    NewFile,
    NewFiles,
    NewSession,
    input_text,
    iso,
    mark,
    to_line,
)
from turnlog.model import FilePart, Message, Part, TextPart, ToolCallPart, ToolResult


class CodexWriter(FileWriter):
    """See `turnlog.agents.handoffs.HandoffWriter`."""

    unanswered = "aborted"
    takes_text = True
    version = "0.171.0"

    def write(self, conversation: HandoffConversation, home: Path) -> NewSession:
        """A rollout in the folder of the day."""
        name = str(_version_7(conversation.at))
        day = conversation.at.astimezone(UTC)
        path = home / day.strftime("sessions/%Y/%m/%d") / f"rollout-{day:%Y-%m-%dT%H-%M-%S}-{name}.jsonl"
        return NewFiles(name, home, (NewFile(path, b"".join(map(to_line, _lines(conversation, name, self.version)))),))


WRITER: Final = CodexWriter()


def _version_7(moment: datetime) -> uuid.UUID:
    """A UUID with its time in it, by which Codex sorts threads."""
    value = int(moment.timestamp() * 1000) << 80 | 7 << 76 | 2 << 62
    return uuid.UUID(int=value | secrets.randbits(12) << 64 | secrets.randbits(62))


def _lines(conversation: HandoffConversation, thread: str, version: str) -> Iterator[dict[str, Any]]:
    made = [(message, line) for message in conversation.messages for line in _of_message(conversation, message)]
    if conversation.title and conversation.messages:
        marked = {MARK: mark(conversation)}
        name = _event(type="thread_name_updated", thread_id=thread, thread_name=conversation.title, **marked)
        made.append((conversation.messages[-1], name))
    meta = {
        "id": thread,
        "timestamp": iso(conversation.at),
        "cwd": str(conversation.folder),
        "originator": "turnlog",
        "cli_version": version,
        "source": "cli",
        MARK: mark(conversation, records=len(made) + 1),
    }
    git = {"branch": conversation.git_branch, "commit_hash": conversation.git_commit}
    if any(git.values()):
        meta["git"] = {name: value for name, value in git.items() if value}
    yield {"timestamp": iso(conversation.at), "type": "session_meta", "payload": meta}
    for message, line in made:
        yield {"timestamp": iso(message.created_at or conversation.at), **line}


def _of_message(conversation: HandoffConversation, message: Message) -> Iterator[dict[str, Any]]:
    marked = {MARK: mark(conversation, message, model=message.model)}
    if message.role == "user":
        content = [_content(part) for part in message.parts]
        yield _item(type="message", role="user", content=content, **marked)
        text = "\n".join(part.text for part in message.parts if isinstance(part, TextPart))
        yield _event(type="user_message", message=text, images=[], **marked)
        return
    calls: list[ToolCallPart] = []
    for part in message.parts:
        if isinstance(part, TextPart):
            content = [{"type": "output_text", "text": part.text}]
            yield _item(type="message", role="assistant", content=content, **marked)
            yield _event(type="agent_message", message=part.text, **marked)
        elif isinstance(part, ToolCallPart):
            calls.append(part)
            yield _item(**_call(part), **marked)
    for call in calls:
        result = call.results[0]
        kind = "custom_tool_call_output" if _is_free(call) else "function_call_output"
        marks = {MARK: mark(conversation, message, status=result.status)}
        yield _item(type=kind, call_id=call.tool_call_id, output=_output(result), **marks)


def _item(**payload: Any) -> dict[str, Any]:
    return {"type": "response_item", "payload": payload}


def _event(**payload: Any) -> dict[str, Any]:
    return {"type": "event_msg", "payload": payload}


def _is_free(call: ToolCallPart) -> bool:
    """Whether the input is a text, as that of `apply_patch`."""
    return call.input_text is not None


def _call(call: ToolCallPart) -> dict[str, Any]:
    kind, field = ("custom_tool_call", "input") if _is_free(call) else ("function_call", "arguments")
    return {"type": kind, "name": call.tool_name, field: input_text(call) or "{}", "call_id": call.tool_call_id}


def _output(result: ToolResult) -> str | list[dict[str, Any]]:
    if len(result.content) == 1 and isinstance(result.content[0], TextPart):
        return result.content[0].text
    return [_content(part) for part in result.content]


def _content(part: Part) -> dict[str, Any]:
    if isinstance(part, TextPart):
        return {"type": "input_text", "text": part.text}
    assert isinstance(part, FilePart)
    data = base64.b64encode(part.data or b"").decode()
    return {"type": "input_image", "image_url": f"data:{part.media_type};base64,{data}"}
