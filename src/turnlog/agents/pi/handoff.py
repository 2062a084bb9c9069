"""A conversation as a log of pi, in version 3 of its format (0.87): a header, then a record for each message."""

from __future__ import annotations

import base64
import secrets
import uuid
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from turnlog.agents.handoffs import (
    MARK,
    FileWriter,
    HandoffConversation,
    NewFile,
    NewFiles,
    NewSession,
    iso,
    mark,
    object_input,
    to_line,
)
from turnlog.model import FilePart, Message, Part, TextPart, ToolCallPart

_FORMAT: Final = 3

# What was handed over was paid for in the session that it came from.
_NO_COST: Final = {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0}
_NO_USAGE: Final = {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 0, "cost": _NO_COST}


class PiWriter(FileWriter):
    """See `turnlog.agents.handoffs.HandoffWriter`."""

    unanswered = "Operation aborted"
    version = "0.87.1"

    def write(self, conversation: HandoffConversation, home: Path) -> NewSession:
        """A log in the folder of the working directory."""
        name = str(uuid.uuid4())
        # pi lists the logs of the folder that is named after the working directory in just this way.
        folder = f"--{str(conversation.folder).strip('/').replace('/', '-').replace(':', '-')}--"
        stamp = iso(conversation.at).replace(":", "-").replace(".", "-")
        path = home / "sessions" / folder / f"{stamp}_{name}.jsonl"
        return NewFiles(name, home, (NewFile(path, b"".join(map(to_line, _lines(conversation, name)))),))


WRITER: Final = PiWriter()


def _lines(conversation: HandoffConversation, session: str) -> Iterator[dict[str, Any]]:
    yield {
        "type": "session",
        "version": _FORMAT,
        "id": session,
        "timestamp": iso(conversation.at),
        "cwd": str(conversation.folder),
        MARK: mark(conversation),
    }
    parent: str | None = None
    for message in conversation.messages:
        at = message.created_at or conversation.at
        for body, facts_of_mark in _bodies(message, at):
            name = secrets.token_hex(4)
            yield {
                "type": "message",
                "id": name,
                "parentId": parent,
                "timestamp": iso(at),
                "message": body,
                MARK: mark(conversation, message, **facts_of_mark),
            }
            parent = name
    if conversation.title:
        yield {
            "type": "session_info",
            "id": secrets.token_hex(4),
            "parentId": parent,
            "timestamp": iso(conversation.at),
            "name": conversation.title,
            MARK: mark(conversation),
        }


def _bodies(message: Message, at: datetime) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """The message, then the results of its calls; each with what its mark says besides."""
    milliseconds = int(at.timestamp() * 1000)
    content = [_block(part) for part in message.parts]
    if message.role == "user":
        yield {"role": "user", "content": content, "timestamp": milliseconds}, {}
        return
    calls = [part for part in message.parts if isinstance(part, ToolCallPart)]
    yield (
        {
            "role": "assistant",
            "content": content,
            "api": "openai-completions",
            "provider": "turnlog",
            "model": message.model or "unknown",
            "usage": _NO_USAGE,
            "stopReason": "toolUse" if calls else "stop",
            "timestamp": milliseconds,
        },
        {},
    )
    for call in calls:
        result = call.results[0]
        yield (
            {
                "role": "toolResult",
                "toolCallId": call.tool_call_id,
                "toolName": call.tool_name,
                "content": [_block(part) for part in result.content],
                # pi knows no other outcome: the mark has the exact one.
                "isError": result.status != "success",
                "timestamp": milliseconds,
            },
            {"status": result.status},
        )


def _block(part: Part) -> dict[str, Any]:
    if isinstance(part, TextPart):
        return {"type": "text", "text": part.text}
    if isinstance(part, ToolCallPart):
        return {"type": "toolCall", "id": part.tool_call_id, "name": part.tool_name, "arguments": object_input(part)}
    assert isinstance(part, FilePart)
    return {"type": "image", "data": base64.b64encode(part.data or b"").decode(), "mimeType": part.media_type}
