"""A conversation as a session of Claude Code, in the format of 2.1.332.

One record for each block of an answer and for each result, in one chain of parent ids. Claude Code needs `uuid`,
`parentUuid` and `timestamp`; it ignores fields that it does not know, and keeps its hands off earlier records.
"""

from __future__ import annotations

import base64
import re
import uuid
from collections.abc import Iterator
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
from turnlog.model import FilePart, Message, Part, TextPart, ToolCallPart, ToolResult

_LONGEST_FOLDER: Final = 200
"""Claude Code cuts longer names of a project's folder and adds a checksum."""


class ClaudeCodeWriter(FileWriter):
    """See `turnlog.agents.handoffs.HandoffWriter`."""

    unanswered = "[Tool call interrupted: the session ended before it had a result]"
    texts_first = True
    version = "2.1.332"

    def write(self, conversation: HandoffConversation, home: Path) -> NewSession:
        """A log below the project's folder."""
        name = str(uuid.uuid4())
        records = _Records(conversation, name, self.version)
        path = home / "projects" / project_folder(conversation.folder) / f"{name}.jsonl"
        return NewFiles(name, home, (NewFile(path, b"".join(map(to_line, records.all()))),))


WRITER: Final = ClaudeCodeWriter()


def project_folder(folder: Path) -> str:
    """The name of the folder for the logs of a working directory."""
    name = re.sub(r"[^A-Za-z0-9]", "-", str(folder))
    return name if len(name) <= _LONGEST_FOLDER else f"{name[:_LONGEST_FOLDER]}-{_checksum(str(folder))}"


def _checksum(text: str) -> str:
    """djb2 of UTF-16, in base 36, as JavaScript computes it with numbers of 32 bits."""
    value = 0
    encoded = text.encode("utf-16-le")
    for low, high in zip(encoded[::2], encoded[1::2], strict=True):
        value = (value * 31 + low + (high << 8)) & 0xFFFFFFFF
    value = abs(value - (1 << 32) if value >= 1 << 31 else value)
    digits = ""
    while value:
        value, digit = divmod(value, 36)
        digits = "0123456789abcdefghijklmnopqrstuvwxyz"[digit] + digits
    return digits or "0"


class _Records:
    """The records of one session, each with the one before it as its parent."""

    def __init__(self, conversation: HandoffConversation, session: str, version: str) -> None:
        self._conversation = conversation
        self._session = session
        self._parent: str | None = None
        self._envelope = {
            "isSidechain": False,
            "userType": "external",
            "entrypoint": "cli",
            "cwd": str(conversation.folder),
            "sessionId": session,
            "version": version,
            "gitBranch": conversation.git_branch or "",
        }

    def all(self) -> Iterator[dict[str, Any]]:
        for message in self._conversation.messages:
            yield from self._answer(message) if message.role == "assistant" else self._prompt(message)
        if self._conversation.title:
            yield {
                "type": "custom-title",
                "customTitle": self._conversation.title,
                "sessionId": self._session,
                MARK: mark(self._conversation),
            }

    def _record(self, kind: str, message: Message, body: dict[str, Any], **more: Any) -> dict[str, Any]:
        name = str(uuid.uuid4())
        record = {
            "parentUuid": self._parent,
            "type": kind,
            "message": body,
            "uuid": name,
            "timestamp": iso(message.created_at or self._conversation.at),
            **self._envelope,
            MARK: mark(self._conversation, message, **more),
        }
        self._parent = name
        return record

    def _prompt(self, message: Message) -> Iterator[dict[str, Any]]:
        content = [_block(part) for part in message.parts]
        only_text = len(content) == 1 and content[0]["type"] == "text"
        yield self._record("user", message, {"role": "user", "content": content[0]["text"] if only_text else content})

    def _answer(self, message: Message) -> Iterator[dict[str, Any]]:
        calls = [part for part in message.parts if isinstance(part, ToolCallPart)]
        # Claude Code goes on with the model of the newest answer if it has it, and not with that of its settings.
        is_own = self._conversation.origin.startswith("claude-code:")
        marked = {} if is_own else {"model": message.model}
        body = {
            "id": f"msg_{uuid.uuid4().hex}",
            "type": "message",
            "role": "assistant",
            "model": (is_own and message.model) or "unknown",
            "stop_reason": "tool_use" if calls else "end_turn",
            "stop_sequence": None,
        }
        sources: dict[str, str] = {}
        # Claude Code writes a record for each block of an answer, all with the id of the message.
        for number, part in enumerate(message.parts):
            record = self._record("assistant", message, body | {"content": [_block(part)]}, **marked)
            record["apiBlockIndex"] = number
            yield record
            if isinstance(part, ToolCallPart):
                sources[part.tool_call_id] = record["uuid"]
        for call in calls:
            yield self._result(message, call, sources[call.tool_call_id])

    def _result(self, message: Message, call: ToolCallPart, source: str) -> dict[str, Any]:
        result = call.results[0]
        block: dict[str, Any] = {"tool_use_id": call.tool_call_id, "type": "tool_result", "content": _content(result)}
        if result.status != "success":
            block["is_error"] = True
        record = self._record("user", message, {"role": "user", "content": [block]}, status=result.status)
        record["timestamp"] = iso(result.completed_at or message.created_at or self._conversation.at)
        return record | {"sourceToolAssistantUUID": source}


def _content(result: ToolResult) -> str | list[dict[str, Any]]:
    blocks = [_block(part) for part in result.content]
    return blocks[0]["text"] if len(blocks) == 1 and blocks[0]["type"] == "text" else blocks


def _block(part: Part) -> dict[str, Any]:
    if isinstance(part, TextPart):
        return {"type": "text", "text": part.text}
    if isinstance(part, ToolCallPart):
        return {"type": "tool_use", "id": part.tool_call_id, "name": part.tool_name, "input": object_input(part)}
    assert isinstance(part, FilePart)
    kind = "image" if part.media_type.startswith("image/") else "document"
    data = base64.b64encode(part.data or b"").decode()
    return {"type": kind, "source": {"type": "base64", "media_type": part.media_type, "data": data}}
