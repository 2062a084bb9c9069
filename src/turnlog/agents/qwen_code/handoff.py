"""A conversation as a log of Qwen Code, in the format of 0.24: a record for each message and each result."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from turnlog.agents.gemini_cli.handoff import STATUSES, UNANSWERED, content_part, response_parts
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
from turnlog.model import Message, Part, ToolCallPart


class QwenCodeWriter(FileWriter):
    """See `turnlog.agents.handoffs.HandoffWriter`."""

    unanswered = UNANSWERED
    texts_first = True
    is_flat = True
    version = "0.24.4"

    def write(self, conversation: HandoffConversation, home: Path) -> NewSession:
        """A log in the project's folder."""
        name = str(uuid.uuid4())
        project = re.sub(r"[^A-Za-z0-9]", "-", str(conversation.folder))
        path = home / "projects" / project / "chats" / f"{name}.jsonl"
        records = _Records(conversation, name, self.version)
        return NewFiles(name, home, (NewFile(path, b"".join(map(to_line, records.all()))),))


WRITER: Final = QwenCodeWriter()


class _Records:
    """The records of one session, each with the one before it as its parent."""

    def __init__(self, conversation: HandoffConversation, session: str, version: str) -> None:
        self._conversation = conversation
        self._session = session
        self._version = version
        self._parent: str | None = None

    def all(self) -> Iterator[dict[str, Any]]:
        for message in self._conversation.messages:
            content = [_part(part) for part in message.parts]
            if message.role == "user":
                yield self._record("user", "real_user", message, {"role": "user", "parts": content})
                continue
            answer = self._record("assistant", "assistant_output", message, {"role": "model", "parts": content})
            yield answer | ({"model": message.model} if message.model else {})
            yield from (self._result(message, part) for part in message.parts if isinstance(part, ToolCallPart))
        if self._conversation.title and self._conversation.messages:
            title = self._record("system", "system", self._conversation.messages[-1], None)
            payload = {"customTitle": self._conversation.title, "titleSource": "manual"}
            yield title | {"subtype": "custom_title", "systemPayload": payload}

    def _record(
        self, kind: str, provenance: str, message: Message, content: dict[str, Any] | None, **facts: Any
    ) -> dict[str, Any]:
        name = str(uuid.uuid4())
        record: dict[str, Any] = {
            "uuid": name,
            "parentUuid": self._parent,
            "sessionId": self._session,
            "timestamp": iso(message.created_at or self._conversation.at),
            "type": kind,
            "provenance": provenance,
            "cwd": str(self._conversation.folder),
            "version": self._version,
            "gitBranch": self._conversation.git_branch or "",
            **({} if content is None else {"message": content}),
            MARK: mark(self._conversation, message, **facts),
        }
        self._parent = name
        return record

    def _result(self, message: Message, call: ToolCallPart) -> dict[str, Any]:
        result = call.results[0]
        content = {"role": "user", "parts": response_parts(call)}
        record = self._record("tool_result", "tool_result", message, content, status=result.status)
        status = STATUSES[result.status]
        return record | {"toolCallResult": {"callId": call.tool_call_id, "status": status, "resultDisplay": ""}}


def _part(part: Part) -> dict[str, Any]:
    if isinstance(part, ToolCallPart):
        return {"functionCall": {"id": part.tool_call_id, "name": part.tool_name, "args": object_input(part)}}
    return content_part(part)
