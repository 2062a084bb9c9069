"""A conversation as a log of Gemini CLI, in the format of 0.61.

A header, then a message a line. Results are only in `toolCalls`: in a message of their own they would be sent twice.
The log belongs to the folder whose `.project_root` names the project.
"""

from __future__ import annotations

import base64
import re
import uuid
from collections.abc import Iterator
from datetime import UTC
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import Any, Final

import msgspec

from turnlog.agents.files import read_regular_file
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

STATUSES: Final = {"success": "success", "error": "error", "denied": "cancelled", "aborted": "cancelled"}
"""Status of a result -> the word of the scheduler for it."""

UNANSWERED: Final = "[Operation Cancelled] The session ended before the tool had a result."


class GeminiCliWriter(FileWriter):
    """See `turnlog.agents.handoffs.HandoffWriter`."""

    unanswered = UNANSWERED
    texts_first = True
    is_flat = True
    unsent = ("/", "?", "<session_context>", "<hook_context>")
    version = "0.61.0"

    def write(self, conversation: HandoffConversation, home: Path) -> NewSession:
        """A log in the project's folder, and the file that names the project where there is none."""
        name = str(uuid.uuid4())
        project = _project_folder(home / "tmp", conversation.folder)
        minute = conversation.at.astimezone(UTC).strftime("%Y-%m-%dT%H-%M")
        log = project / "chats" / f"session-{minute}-{name[:8]}.jsonl"
        data = b"".join(map(to_line, _lines(conversation, name)))
        root = project / ".project_root"
        owner = NewFile(root, str(conversation.folder).encode(), is_shared=True)
        return NewFiles(name, home, (owner, NewFile(log, data)))


WRITER: Final = GeminiCliWriter()


def _project_folder(logs: Path, folder: Path) -> Path:
    """The folder of the logs of a working directory: the one that names it, else a new one that is called as it."""
    wanted = str(folder)
    try:
        known = msgspec.json.decode(read_regular_file(logs.parent / "projects.json"), type=_Projects).projects
    except msgspec.MsgspecError:
        known = {}
    if wanted in known:
        return logs / known[wanted]
    for root in sorted(logs.glob("*/.project_root")):
        if read_regular_file(root).decode(errors="replace").strip() == wanted:
            return root.parent
    stem = re.sub(r"[^a-z0-9]+", "-", folder.name.lower()).strip("-") or "project"
    names = (stem if number == 0 else f"{stem}-{number}" for number in count())
    return next(logs / name for name in names if name not in known.values() and not (logs / name).exists())


class _Projects(msgspec.Struct):
    projects: dict[str, str] = {}


def _lines(conversation: HandoffConversation, session: str) -> Iterator[dict[str, Any]]:
    yield {
        "sessionId": session,
        "projectHash": sha256(str(conversation.folder).encode()).hexdigest(),
        "startTime": iso(conversation.at),
        "lastUpdated": iso(conversation.at),
        "kind": "main",
        **({"summary": conversation.title} if conversation.title else {}),
        MARK: mark(conversation),
    }
    for message in conversation.messages:
        yield {
            "id": str(uuid.uuid4()),
            "timestamp": iso(message.created_at or conversation.at),
            **(_answer(conversation, message) if message.role == "assistant" else _prompt(message)),
            MARK: mark(conversation, message),
        }


def _prompt(message: Message) -> dict[str, Any]:
    return {"type": "user", "content": [content_part(part) for part in message.parts]}


def _answer(conversation: HandoffConversation, message: Message) -> dict[str, Any]:
    calls = [_call(conversation, message, part) for part in message.parts if isinstance(part, ToolCallPart)]
    others = [part for part in message.parts if not isinstance(part, ToolCallPart)]
    texts = [part.text for part in others if isinstance(part, TextPart)]
    content = texts[0] if len(others) == len(texts) == 1 else [content_part(part) for part in others]
    answer: dict[str, Any] = {"type": "gemini", "content": content or "", "thoughts": []}
    return answer | ({"model": message.model} if message.model else {}) | ({"toolCalls": calls} if calls else {})


def _call(conversation: HandoffConversation, message: Message, call: ToolCallPart) -> dict[str, Any]:
    result = call.results[0]
    return {
        "id": call.tool_call_id,
        "name": call.tool_name,
        "args": object_input(call),
        "result": response_parts(call),
        "status": STATUSES[result.status],
        "timestamp": iso(result.completed_at or message.created_at or conversation.at),
        MARK: mark(conversation, status=result.status),
    }


def response_parts(call: ToolCallPart) -> list[dict[str, Any]]:
    """The result of a call as parts of the Gemini API: the response, then its files."""
    result = call.results[0]
    text = "\n".join(part.text for part in result.content if isinstance(part, TextPart))
    response = {"output" if result.status == "success" else "error": text}
    answer = {"functionResponse": {"id": call.tool_call_id, "name": call.tool_name, "response": response}}
    return [answer, *(content_part(part) for part in result.content if isinstance(part, FilePart))]


def content_part(part: Part) -> dict[str, Any]:
    """A text or a file as a part of the Gemini API."""
    if isinstance(part, TextPart):
        return {"text": part.text}
    assert isinstance(part, FilePart)
    return {"inlineData": {"mimeType": part.media_type, "data": base64.b64encode(part.data or b"").decode()}}
