"""Rows of `session_message`, where OpenCode's next generation keeps a whole message in one row, in today's shape.

A row becomes the JSON of a message and of its parts as `message` and `part` rows have them, so that one reader serves
both. What a row says and today's shape has no place for stays in the message's metadata; the row itself is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from turnlog.agents.opencode.rows import Row, document_of, list_of, object_of, text_of
from turnlog.agents.opencode.timeline import SHELL_NOTE
from turnlog.model.codec import to_json

SESSION_MESSAGE = "session_message"

_PLACED = frozenset({"content", "model", "text", "files", "agents", "command", "output", "recent", "reason", "summary"})
"""Fields that parts, or other fields of the message, have."""


def is_message(row: Row) -> bool:
    """Whether a row of `session_message` is something that was said; others say that a setting was changed."""
    return text_of(row.get("type")) in _READERS


def is_session_message(row: Row) -> bool:
    """Whether a message's row is of this table: `message` has no column `type`."""
    return is_message(row) and "session_id" in row


def documents_of(row: Row, parts: Sequence[Row]) -> tuple[Row, list[Row]]:
    """A message's JSON and that of its parts, from rows of either table. Raises ValueError for no object."""
    if not is_session_message(row):
        return document_of(row) if row else {}, [document_of(part) for part in parts]
    data = document_of(row)
    info, found = _READERS[row["type"]](data)
    if info["role"] == "user":
        # A prompt may wait until the agent has ended a step or a turn: its row is written when it is taken up.
        info["time"] = {"entered": row.get("time_updated"), **object_of(data.get("time"))}
    return info, found


def _info(role: str, data: Row, **more: Any) -> Row:
    kept = {name: value for name, value in data.items() if name not in _PLACED}
    return {"role": role, **kept, **more}


def _read_user(data: Row) -> tuple[Row, list[Row]]:
    parts: list[Row] = [{"type": "text", "text": data.get("text")}]
    parts += [_file(object_of(file)) for file in list_of(data.get("files"))]
    parts += [{"type": "agent", **object_of(agent)} for agent in list_of(data.get("agents"))]
    return _info("user", data), parts


def _read_injected(data: Row) -> tuple[Row, list[Row]]:
    return _info("user", data), [{"type": "text", "text": data.get("text"), "synthetic": True}]


def _read_shell(data: Row) -> tuple[Row, list[Row]]:
    """A command that the user ran: today's OpenCode notes it, and shows it as a call of an answer."""
    shown = f"{data.get('command') or ''}\n{data.get('output') or ''}".rstrip("\n")
    texts = [SHELL_NOTE, shown]
    return _info("user", data), [{"type": "text", "text": text, "synthetic": True} for text in texts]


def _read_compaction(data: Row) -> tuple[Row, list[Row]]:
    """The summary itself, and the newest messages in words: what the model sees from here on."""
    asked: Row = {"type": "compaction", "auto": data.get("reason") == "auto"}
    texts = [text for text in (data.get("summary"), data.get("recent")) if text]
    return _info("user", data, compacted=True), [asked, *({"type": "text", "text": text} for text in texts)]


def _read_assistant(data: Row) -> tuple[Row, list[Row]]:
    model = object_of(data.get("model"))
    error = object_of(data.get("error"))
    info = _info("assistant", data, modelID=model.get("id"), providerID=model.get("providerID"))
    if model.get("variant") not in (None, "default"):
        info["variant"] = model["variant"]
    if error:
        info["error"] = {"name": error.get("type"), "data": {"message": error.get("message")}}
    return info, [_part(object_of(part)) for part in list_of(data.get("content"))]


_READERS: dict[str, Callable[[Row], tuple[Row, list[Row]]]] = {
    "user": _read_user,
    "assistant": _read_assistant,
    "synthetic": _read_injected,
    "system": _read_injected,
    "shell": _read_shell,
    "compaction": _read_compaction,
}


def _part(part: Row) -> Row:
    if part.get("type") == "tool":
        return _call(part)
    if part.get("type") == "reasoning":
        return {**part, "metadata": part.get("providerMetadata"), "time": _span(part, "created")}
    return part


def _span(part: Row, start: str) -> Row:
    """When it began and ended."""
    time = object_of(part.get("time"))
    return {
        name: time[old]
        for name, old in (("start", start), ("end", "completed"), ("compacted", "pruned"))
        if time.get(old)
    }


def _call(part: Row) -> Row:
    provider, state = object_of(part.get("provider")), object_of(part.get("state"))
    metadata = {**object_of(provider.get("metadata")), **object_of(provider.get("resultMetadata"))}
    is_pending = state.get("status") == "pending"
    given: Row = {"raw": state.get("input")} if is_pending else {"input": state.get("input")}
    return {
        "type": "tool",
        "callID": part.get("id"),
        "tool": part.get("name"),
        "metadata": {"providerExecuted": provider.get("executed"), **metadata},
        "state": {"status": state.get("status"), **given, **_outcome(state), "time": _span(part, "ran")},
    }


def _outcome(state: Row) -> Row:
    """What came back. A tool that says nothing in words gives the model its facts."""
    content = [object_of(piece) for piece in list_of(state.get("content"))]
    texts = [piece["text"] for piece in content if isinstance(piece.get("text"), str)]
    files = [*(piece for piece in content if "uri" in piece), *map(object_of, list_of(state.get("attachments")))]
    paths, facts = list_of(state.get("outputPaths")), object_of(state.get("structured"))
    if not content and facts and state.get("status") == "completed":
        texts = [bytes(to_json(facts)).decode()]
    return {
        "output": "\n".join(texts) if texts else None,
        "error": text_of(object_of(state.get("error")).get("message")),
        "attachments": [_file(file) for file in files],
        "metadata": facts | ({"outputPath": paths[0]} if paths else {}),
    }


def _file(file: Row) -> Row:
    return {
        "type": "file",
        "url": file.get("uri"),
        "mime": file.get("mime"),
        "filename": file.get("name"),
        "source": file.get("source"),
    }
