"""The fold of one conversation of Claude.ai: messages, each of which names the one that it follows.

A message of the assistant holds all that it said and did until it stopped: each call of the model ends with its calls,
so what stands behind their results is a further answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import msgspec
from msgspec import Raw

from turnlog.agents.chat_exports import CLAUDE_AI
from turnlog.agents.chat_exports.export_files import Service
from turnlog.agents.chat_exports.fold import ExportFold
from turnlog.agents.chat_exports.shapes import Shape, report_others
from turnlog.agents.chat_exports.trees import ExportNode, in_order, nearest
from turnlog.agents.claude_code.contents import from_base64
from turnlog.agents.conversation import ConversationContext
from turnlog.agents.decoding import aware, list_of, object_of, text_of
from turnlog.agents.row_files import RowLine
from turnlog.model import (
    FilePart,
    Message,
    Origin,
    Part,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolKind,
    ToolResult,
    UnknownPart,
)
from turnlog.model.merge import add_result
from turnlog.model.session import title_line

TOOL_KINDS: dict[str, ToolKind] = {
    "artifacts": ToolKind.EDIT,
    "bash_tool": ToolKind.EXECUTE,
    "conversation_search": ToolKind.SEARCH,
    "create_file": ToolKind.EDIT,
    "drive_search": ToolKind.SEARCH,
    "google_drive_search": ToolKind.SEARCH,
    "launch_extended_search_task": ToolKind.SUBAGENT,
    "present_files": ToolKind.OTHER,
    "recent_chats": ToolKind.SEARCH,
    "repl": ToolKind.EXECUTE,
    "str_replace": ToolKind.EDIT,
    "view": ToolKind.READ,
    "web_fetch": ToolKind.FETCH,
    "web_search": ToolKind.FETCH,
}
"""Tools of the service; any other, those of connectors included, is of kind `other`."""

IGNORED = frozenset({"token_budget", "flag"})
"""Types of blocks that say nothing about the conversation."""


_SHAPE: Shape = {"name": str, "chat_messages": [{"text": str, "content": [dict], "attachments": [dict]}]}


def _no_files(conversation: Any) -> Iterator[str]:
    """The export names files and does not contain them."""
    yield from ()


def _first_of(conversation: Any) -> tuple[str | None, str | None]:
    facts = object_of(conversation)
    messages = list_of(facts.get("chat_messages"))
    return text_of(facts.get("created_at")), text_of(object_of(messages[0]).get("uuid")) if messages else None


SERVICE = Service(
    agent=CLAUDE_AI,
    version="1",
    id_fields=("uuid",),
    time_field="updated_at",
    first_of=_first_of,
    marks=(b'"uuid"', b'"chat_messages"'),
    files_of=_no_files,
)


def time_of(text: object) -> datetime | None:
    """The time in a text; None if it is none."""
    try:
        return aware(datetime.fromisoformat(text)) if isinstance(text, str) else None
    except ValueError:
        return None


class ClaudeAiFold(ExportFold):
    """Reads a conversation, which is one line."""

    service = SERVICE

    def read_conversation(self, context: ConversationContext, conversation: dict[str, Any], row: RowLine) -> None:
        """See `ExportFold.read_conversation`."""
        _Reading(context, conversation).read()


class _Reading:
    """One reading of a conversation."""

    def __init__(self, context: ConversationContext, conversation: dict[str, Any]) -> None:
        self._context = context
        self._conversation = conversation
        self._place = context.position
        self._ends: dict[str, str] = {}
        """Message of the export -> the last message that it became."""

    def read(self) -> None:
        """Read all messages in their order."""
        report_others(self._context, self._conversation, _SHAPE)
        facts, change = self._conversation, self._context.session
        change.first_at, change.last_at = time_of(facts.get("created_at")), time_of(facts.get("updated_at"))
        title = title_line(text_of(facts.get("name")) or "")
        if title:
            change.titles["generated"] = title
        project = text_of(object_of(facts.get("project")).get("name"))
        change.metadata = {CLAUDE_AI: {"project": project}} if project else {}
        messages = [object_of(each) for each in list_of(facts.get("chat_messages"))]
        named = self._named(messages)
        parents = {name: text_of(each.get("parent_message_uuid")) for name, each in named.items()}
        if not any(parent in named for parent in parents.values()):
            # Older exports name no parents: then a message follows the one before it.
            parents = dict(zip(named, [None, *named], strict=False))
        order = {name: ExportNode(parents[name], _seconds(each.get("created_at"))) for name, each in named.items()}
        for name in in_order(order):
            self._read_message(name, named[name], nearest(parents, self._ends, parents[name]))
        self._find_branch(parents, list(named))

    def _named(self, messages: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
        """The messages by their names: a name of its own for one without, or with that of another message."""
        named: dict[str, dict[str, Any]] = {}
        for number, message in enumerate(messages):
            made_up = f"{self._context.external_id}.{number}"
            name = text_of(message.get("uuid")) or made_up
            if name not in named:
                named[name] = message
            elif named[name] != message:
                place = f"$.chat_messages[{number}].uuid"
                self._context.report("another message has this uuid: this one has a made-up name", "note", place)
                named[made_up] = message
        return named

    def _find_branch(self, parents: dict[str, str | None], names: list[str]) -> None:
        """Mark the branch that the conversation ended with: that of its newest message, if no field names it."""
        known = [parent for parent in parents.values() if parent in parents]
        if len(known) == len(set(known)):
            return
        state = self._context.state
        state.is_branched = True
        end = text_of(self._conversation.get("current_leaf_message_uuid")) or (names[-1] if names else None)
        state.leaf = nearest(parents, self._ends, end) or state.leaf

    def _next(self) -> int:
        self._place += 1
        return self._place

    def _read_message(self, name: str, message: dict[str, Any], before: str | None) -> None:
        if message.get("sender") == "assistant":
            self._read_answers(name, message, before)
        else:
            self._read_prompt(name, message, before)

    def _add(self, message: Message, before: str | None) -> None:
        self._context.add(message, parent=before, position=self._next(), is_counted=False)
        # Results in the message are placed behind it.
        self._place += sum(len(part.results) for part in message.parts if isinstance(part, ToolCallPart))

    def _read_prompt(self, name: str, message: dict[str, Any], before: str | None) -> None:
        parts: list[Part] = []
        for block in _blocks_of(message):
            parts += _part_of(block, f"{name}.{len(parts)}", None)
        for attached in map(object_of, list_of(message.get("attachments"))):
            text = text_of(attached.get("extracted_content"))
            if text is not None:
                facts = {"synthetic": True, "attached": text_of(attached.get("file_name"))}
                parts.append(TextPart(id=f"{name}.{len(parts)}", text=text, metadata={CLAUDE_AI: facts}))
        files = [text_of(object_of(each).get("file_name")) for each in list_of(message.get("files"))]
        named = [each for each in files if each is not None]
        self._add(
            Message(
                id=name,
                role="user",
                parts=tuple(parts),
                origin=Origin.PROMPT,
                created_at=time_of(message.get("created_at")),
                metadata={CLAUDE_AI: {"files": named}} if named else {},
            ),
            before,
        )
        self._ends[name] = name

    def _read_answers(self, name: str, message: dict[str, Any], before: str | None) -> None:
        for number, blocks in enumerate(_answers_in(_blocks_of(message))):
            identity = name if number == 0 else f"{name}:{number}"
            at = next(filter(None, (time_of(block.get("start_timestamp")) for block in blocks)), None)
            parts: list[Part] = []
            for block in blocks:
                if block.get("type") == "tool_result":
                    _add_result(parts, block, f"{identity}.r{len(parts)}")
                else:
                    parts += _part_of(block, f"{identity}.{len(parts)}", at or time_of(message.get("created_at")))
            ended = [time_of(block.get("stop_timestamp")) for block in blocks if block.get("type") != "tool_result"]
            self._add(
                Message(
                    id=identity,
                    role="assistant",
                    parts=tuple(parts),
                    created_at=at or time_of(message.get("created_at")),
                    completed_at=max(filter(None, ended), default=None),
                    raw_stop_reason=text_of(message.get("stop_reason")) if number == 0 else None,
                ),
                before,
            )
            self._ends[name] = before = identity


def _seconds(text: object) -> float:
    found = time_of(text)
    return 0.0 if found is None else found.timestamp()


def _blocks_of(message: dict[str, Any]) -> list[dict[str, Any]]:
    blocks = [block for block in map(object_of, list_of(message.get("content"))) if block]
    text = text_of(message.get("text"))
    return blocks or ([{"type": "text", "text": text}] if text is not None else [])


def _answers_in(blocks: list[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """The blocks of a message, one call of the model after the other: a call ends with the results of its tools."""
    answer: list[dict[str, Any]] = []
    has_results = False
    for block in blocks:
        is_result = block.get("type") == "tool_result"
        if has_results and not is_result:
            yield answer
            answer = []
        has_results = is_result
        answer.append(block)
    yield answer


def _part_of(block: dict[str, Any], part_id: str, at: datetime | None) -> list[Part]:
    kind = text_of(block.get("type")) or ""
    if kind in ("text", "voice_note"):
        text = text_of(block.get("text"))
        return [] if text is None else [TextPart(id=part_id, text=text)]
    if kind == "thinking":
        return [ReasoningPart(id=part_id, text=text_of(block.get("thinking")) or "")]
    if kind == "tool_use":
        name = text_of(block.get("name")) or ""
        return [
            ToolCallPart(
                id=part_id,
                tool_call_id=text_of(block.get("id")) or part_id,
                tool_name=name,
                kind=TOOL_KINDS.get(name, ToolKind.OTHER),
                input=Raw(msgspec.json.encode(block.get("input") or {})),
                title=text_of(block.get("message")),
                started_at=time_of(block.get("start_timestamp")) or at,
            )
        ]
    image = _image(block, part_id)
    if image is not None:
        return [image]
    return [] if kind in IGNORED else [UnknownPart(id=part_id, kind=kind, data=Raw(msgspec.json.encode(block)))]


def _image(block: dict[str, Any], part_id: str) -> FilePart | None:
    source = object_of(block.get("source"))
    data = text_of(source.get("data"))
    content = from_base64(data) if block.get("type") == "image" and data is not None else None
    return (
        FilePart(id=part_id, media_type=text_of(source.get("media_type")) or "image/*", data=content)
        if content
        else None
    )


def _add_result(parts: list[Part], block: dict[str, Any], identity: str) -> None:
    """Add a result to its call: the one that it names, else the first without a result of the same tool."""
    named = text_of(block.get("tool_use_id"))
    content = [
        part
        for number, inner in enumerate(map(object_of, list_of(block.get("content"))))
        for part in _part_of(inner, f"{identity}.{number}", None)
    ]
    text = "\n".join([part.text for part in content if isinstance(part, TextPart)])
    failed = block.get("is_error") is True
    result = ToolResult(
        id=identity,
        status="error" if failed else "success",
        content=tuple(content),
        error_text=(text or "failed") if failed else None,
        completed_at=time_of(block.get("stop_timestamp")),
    )
    for number, part in enumerate(parts):
        if not isinstance(part, ToolCallPart):
            continue
        is_named = part.tool_call_id == named if named is not None else part.tool_name == block.get("name")
        if is_named and not part.results:
            parts[number] = add_result(part, result)
            return
    parts.append(UnknownPart(id=identity, kind="tool_result", data=Raw(msgspec.json.encode(block))))
