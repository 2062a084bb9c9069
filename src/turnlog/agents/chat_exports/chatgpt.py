"""The fold of one conversation of ChatGPT: a tree of nodes, of which one is the end of what the user sees.

Thoughts are nodes of their own; they belong to the answer behind them. A message to a tool is a call, and what the tool
says behind it is its result.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Any, overload

import msgspec
from msgspec import UNSET, Raw

from turnlog.agents.chat_exports import CHATGPT
from turnlog.agents.chat_exports.export_files import Service
from turnlog.agents.chat_exports.fold import ExportFold
from turnlog.agents.chat_exports.shapes import ANY_NAME, Shape, report_others
from turnlog.agents.chat_exports.sources import JSON
from turnlog.agents.chat_exports.trees import ExportNode, in_order, nearest
from turnlog.agents.conversation import ConversationContext
from turnlog.agents.decoding import list_of, object_of, text_of
from turnlog.agents.jsonl import UNREADABLE
from turnlog.agents.row_files import RowLine, files_in, row_of
from turnlog.model import (
    FilePart,
    InterruptEvent,
    Message,
    Origin,
    Part,
    ReasoningPart,
    ResultStatus,
    StopReason,
    TextPart,
    ToolCallPart,
    ToolKind,
    ToolResult,
    UnknownPart,
)
from turnlog.model.merge import add_results
from turnlog.model.session import title_line

TOOL_KINDS: dict[str, ToolKind] = {
    "bio": ToolKind.THINK,
    "browser": ToolKind.FETCH,
    "canmore": ToolKind.EDIT,
    "container": ToolKind.EXECUTE,
    "dalle": ToolKind.OTHER,
    "file_search": ToolKind.SEARCH,
    "image_gen": ToolKind.OTHER,
    "myfiles_browser": ToolKind.SEARCH,
    "python": ToolKind.EXECUTE,
    "t2uay3k": ToolKind.OTHER,
    "web": ToolKind.FETCH,
}
"""What a tool does, by the first word of its name: `web.run`, `dalle.text2im`. Others are of kind `other`."""

STOP_REASONS: dict[str, StopReason] = {
    "stop": "stop",
    "max_tokens": "length",
    "interrupted": "aborted",
    "content_filter": "content_filter",
}
"""`finish_details.type` of an answer -> why the model stopped."""

_FAILED = frozenset({"failed", "failed_with_in_kernel_exception", "failed_with_response", "error"})
"""`aggregate_result.status` of code that failed."""

_UNIQUE = re.compile("[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""The names that ChatGPT gives to nodes."""

_IMAGE, _AUDIO = "image_asset_pointer", "audio_asset_pointer"

_MEDIA_TYPES = (
    (b"\x89PNG", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"RIFF", "image/webp"),
    (b"%PDF", "application/pdf"),
)


_SHAPE: Shape = {
    "title": str,
    "mapping": {ANY_NAME: {"message": {"author": dict, "content": {"parts": list}, "metadata": dict}}},
}


def _files_of(conversation: Any) -> Iterator[str]:
    for node in object_of(object_of(conversation).get("mapping")).values():
        message = object_of(object_of(node).get("message"))
        for part in list_of(object_of(message.get("content")).get("parts")):
            yield from _pointers_in(part)
        for each in list_of(object_of(message.get("metadata")).get("attachments")):
            yield text_of(object_of(each).get("id")) or ""


def _pointers_in(part: Any) -> Iterator[str]:
    fields = object_of(part)
    for each in (fields, object_of(fields.get(_AUDIO))):
        name = _file_name(each)
        if name is not None:
            yield name


def _file_name(part: Mapping[str, Any]) -> str | None:
    """How the name of a file begins that a part points to: `file-service://file-abc`, `sediment://file_abc`."""
    pointer = text_of(part.get("asset_pointer"))
    return None if pointer is None else pointer.partition("://")[2].partition("#")[0] or None


def _first_of(conversation: Any) -> tuple[str | None, str | None]:
    facts = object_of(conversation)
    nodes = object_of(facts.get("mapping"))
    # The root may have the same name in all conversations.
    first = min((name for name, node in nodes.items() if object_of(node).get("parent") is not None), default=None)
    return str(facts.get("create_time")), first


SERVICE = Service(
    agent=CHATGPT,
    version="1",
    id_fields=("conversation_id", "id"),
    time_field="update_time",
    first_of=_first_of,
    marks=(b'"mapping"', b'"title"'),
    files_of=_files_of,
)


def time_of(seconds: object) -> datetime | None:
    """The time of a number of Unix seconds; None if it is none."""
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or seconds <= 0:
        return None
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return None


class ChatGptFold(ExportFold):
    """Reads a conversation, which is one line."""

    service = SERVICE

    def read_conversation(self, context: ConversationContext, conversation: dict[str, Any], row: RowLine) -> None:
        """See `ExportFold.read_conversation`."""
        _Reading(context, conversation, files_in(row_of(row, without=JSON))).read()


class _Reading:
    """One reading of a conversation."""

    def __init__(self, context: ConversationContext, conversation: dict[str, Any], files: Mapping[str, bytes]) -> None:
        self._context = context
        self._conversation = conversation
        self._files = files
        nodes = object_of(conversation.get("mapping"))
        self._nodes = {self._own(name): object_of(node) for name, node in nodes.items()}
        self._parents = {name: self._own(text_of(node.get("parent"))) for name, node in self._nodes.items()}
        self._children: dict[str | None, int] = {}
        for parent in self._parents.values():
            self._children[parent] = self._children.get(parent, 0) + 1
        self._messages: dict[str, str] = {}
        """Node -> the message that it is, or belongs to."""
        self._found: dict[str, tuple[Message, str | None]] = {}
        """Each message by its id, and the one that it follows."""
        self._thoughts: dict[str, str] = {}
        """Node of a thought that waits for its answer -> the message."""
        self._calls: dict[str, str] = {}
        """Node with a call -> the message with it. The node's name is the call's id."""
        self._results: dict[str, list[ToolResult]] = {}
        """Call -> its results, which may be thousands."""

    @overload
    def _own(self, name: str) -> str: ...
    @overload
    def _own(self, name: None) -> None: ...
    def _own(self, name: str | None) -> str | None:
        """The name of a node, which no node of another conversation has.

        One that somebody made up gets that of its conversation before it.
        """
        if name is None or _UNIQUE.fullmatch(name):
            return name
        return f"{self._context.session_id.partition(':')[2]}.{name}"

    def read(self) -> None:
        """Read all nodes, and which one is the end."""
        report_others(self._context, self._conversation, _SHAPE)
        facts, change = self._conversation, self._context.session
        change.first_at, change.last_at = self._time(facts, "create_time", "$"), self._time(facts, "update_time", "$")
        title = title_line(text_of(facts.get("title")) or "")
        if title:
            change.titles["generated"] = title
        names = ("gizmo_id", "conversation_template_id", "is_archived", "is_starred", "default_model_slug", "voice")
        kept = {name: facts[name] for name in names if facts.get(name)}
        change.metadata = {CHATGPT: kept} if kept else {}
        order = {
            name: ExportNode(self._parents[name], float(_number(object_of(node.get("message")).get("create_time"))))
            for name, node in self._nodes.items()
        }
        for name in in_order(order):
            self._read_node(name, object_of(self._nodes[name].get("message")))
        self._add_all()
        if any(count > 1 for parent, count in self._children.items() if parent is not None):
            state = self._context.state
            state.is_branched = True
            end = nearest(self._parents, self._messages, self._own(text_of(facts.get("current_node"))))
            state.leaf = end or state.leaf

    def _add_all(self) -> None:
        place = self._context.position
        for found, before in self._found.values():
            message = self._answered(found)
            self._context.add(message, parent=before, position=place + 1, is_counted=False)
            # Results of its calls are placed behind it.
            place += 1 + sum(len(part.results) for part in message.parts if isinstance(part, ToolCallPart))
            if message.stop_reason == "aborted":
                place += 1
                self._context.add_event(
                    InterruptEvent(
                        id=f"{message.id}.interrupt",
                        position=place,
                        created_at=message.created_at,
                        during="answer",
                        message_id=message.id,
                    )
                )

    def _read_node(self, name: str, message: dict[str, Any]) -> None:
        parent = self._parents[name]
        before = nearest(self._parents, self._messages, parent)
        role = text_of(object_of(message.get("author")).get("role"))
        content = object_of(message.get("content"))
        reader = {"assistant": self._read_answer, "tool": self._read_result}.get(role or "", self._read_input)
        if message and (content or role):
            reader(name, message, content, before)

    def _message_time(self, name: str, message: Mapping[str, Any]) -> datetime | None:
        node = text_of(self._nodes[name].get("id")) or name
        return self._time(message, "create_time", f"$.mapping.{node}.message")

    def _time(self, facts: Mapping[str, Any], field: str, place: str) -> datetime | None:
        """A time; a note where it is none that a calendar has."""
        found = time_of(facts.get(field))
        # Without one there is null, or 0.
        if found is None and facts.get(field):
            self._context.report("a time out of range is left out", "note", f"{place}.{field}")
        return found

    # -- what the user and the service said

    def _read_input(self, name: str, message: dict[str, Any], content: dict[str, Any], before: str | None) -> None:
        parts = list(self._parts(content, name))
        metadata = object_of(message.get("metadata"))
        role = text_of(object_of(message.get("author")).get("role"))
        is_hidden = metadata.get("is_visually_hidden_from_conversation") is True or role != "user"
        if is_hidden and not parts:
            # An empty message of the system begins each conversation.
            return
        attached = [text_of(object_of(each).get("name")) for each in list_of(metadata.get("attachments"))]
        facts = {"attached": [each for each in attached if each is not None]} if any(attached) else {}
        is_own = is_hidden or content.get("content_type") == "user_editable_context"
        self._add(
            name,
            Message(
                id=name,
                role="system" if role == "system" else "developer" if is_own else "user",
                parts=tuple(parts),
                origin=Origin.HARNESS if is_own else Origin.PROMPT,
                created_at=self._message_time(name, message),
                metadata={CHATGPT: facts} if facts else {},
            ),
            before,
        )

    def _add(self, name: str, message: Message, before: str | None) -> None:
        self._found[message.id] = message, before
        self._messages[name] = message.id

    # -- answers

    def _read_answer(self, name: str, message: dict[str, Any], content: dict[str, Any], before: str | None) -> None:
        thought = self._thoughts.pop(self._parents[name] or "", None)
        reasoning, follows = (None, before) if thought is None else self._found[thought]
        parts = () if reasoning is None else reasoning.parts
        metadata = object_of(message.get("metadata"))
        at = self._message_time(name, message)
        identity = name if thought is None else thought
        finish = text_of(object_of(metadata.get("finish_details")).get("type"))
        answer = Message(
            id=identity,
            role="assistant",
            parts=(*parts, *self._answer_parts(name, message, content, identity, len(parts), at)),
            created_at=at if reasoning is None or reasoning.created_at is None else reasoning.created_at,
            completed_at=None if reasoning is None else at,
            model=text_of(metadata.get("model_slug")) or (reasoning.model if reasoning is not None else None),
            requested_model=text_of(metadata.get("requested_model_slug")),
            request_id=text_of(metadata.get("request_id")),
            stop_reason=STOP_REASONS.get(finish or ""),
            raw_stop_reason=finish,
        )
        self._add(name, answer, follows)
        is_thought = content.get("content_type") in ("thoughts", "reasoning_recap")
        if is_thought and self._children.get(name) == 1:
            self._thoughts[name] = identity

    def _answer_parts(
        self,
        name: str,
        message: dict[str, Any],
        content: dict[str, Any],
        identity: str,
        first: int,
        at: datetime | None,
    ) -> list[Part]:
        recipient = text_of(message.get("recipient")) or "all"
        if recipient == "all":
            return list(self._parts(content, identity, first))
        text = text_of(content.get("text")) or "\n".join(
            part for part in list_of(content.get("parts")) if isinstance(part, str)
        )
        self._calls[name] = identity
        value, words = _input_of(text, recipient)
        return [
            ToolCallPart(
                id=f"{identity}.{first}",
                tool_call_id=name,
                tool_name=recipient,
                kind=TOOL_KINDS.get(recipient.partition(".")[0], ToolKind.OTHER),
                input=UNSET if value is None else value,
                input_text=words,
                started_at=at,
            )
        ]

    # -- results

    def _read_result(self, name: str, message: dict[str, Any], content: dict[str, Any], before: str | None) -> None:
        """Read what a tool said: a result of the nearest call above it. A tool may say something several times."""
        call = nearest(self._parents, {node: node for node in self._calls}, self._parents[name])
        metadata = object_of(message.get("metadata"))
        parts = tuple(self._parts(content, f"{name}.result"))
        text = "\n".join([part.text for part in parts if isinstance(part, TextPart)])
        outcome = text_of(object_of(metadata.get("aggregate_result")).get("status"))
        failed = content.get("content_type") == "system_error" or outcome in _FAILED
        status: ResultStatus = "error" if failed else "success"
        if before is not None:
            self._messages[name] = before
        result = ToolResult(
            id=f"{name}.result",
            status=status,
            content=parts,
            error_text=(text or text_of(content.get("name")) or "failed") if failed else None,
            completed_at=self._message_time(name, message),
            metadata={CHATGPT: {"tool": text_of(object_of(message.get("author")).get("name"))}},
        )
        if call is not None:
            self._results.setdefault(call, []).append(result)
        elif parts:
            self._context.add_result(name, result)

    def _answered(self, message: Message) -> Message:
        parts = [
            add_results(part, self._results.get(part.tool_call_id, ())) if isinstance(part, ToolCallPart) else part
            for part in message.parts
        ]
        return msgspec.structs.replace(message, parts=tuple(parts))

    # -- contents

    def _parts(self, content: dict[str, Any], identity: str, first: int = 0) -> Iterator[Part]:
        number = first
        for part in self._content_parts(content, identity, number):
            yield msgspec.structs.replace(part, id=f"{identity}.{number}")
            number += 1

    def _content_parts(self, content: dict[str, Any], identity: str, first: int) -> Iterator[Part]:
        kind = text_of(content.get("content_type")) or ""
        if kind in ("text", "multimodal_text"):
            for part in list_of(content.get("parts")):
                found = self._part(part)
                if found is not None:
                    yield found
        elif kind == "thoughts":
            for thought in map(object_of, list_of(content.get("thoughts"))):
                texts = (text_of(thought.get(name)) for name in ("summary", "content"))
                yield ReasoningPart(text="\n".join(filter(None, texts)))
        elif kind == "reasoning_recap":
            return
        elif kind == "user_editable_context":
            texts = [text_of(content.get(name)) for name in ("user_profile", "user_instructions")]
            if any(texts):
                yield TextPart(text="\n\n".join(filter(None, texts)))
        else:
            text = text_of(content.get("text")) or text_of(content.get("result"))
            if text is not None:
                yield TextPart(text=text)
            elif kind and kind not in ("code", "execution_output", "system_error", "tether_browsing_display"):
                yield UnknownPart(kind=kind, data=Raw(msgspec.json.encode(content)))

    def _part(self, part: Any) -> Part | None:
        if isinstance(part, str):
            return TextPart(text=part) if part else None
        fields = object_of(part)
        kind = text_of(fields.get("content_type")) or ""
        if kind == "audio_transcription":
            return TextPart(text=text_of(fields.get("text")) or "")
        name = _file_name(fields) or _file_name(object_of(fields.get(_AUDIO)))
        found = next((each for each in self._files if name is not None and each.startswith(name)), None)
        if found is not None:
            data = self._files[found]
            return FilePart(media_type=_media_type(data, found), filename=found, data=data)
        return UnknownPart(kind=kind, data=Raw(msgspec.json.encode(part)))


def _input_of(text: str, recipient: str) -> tuple[Raw | None, str | None]:
    """The input of a call: JSON, code, or a text."""
    try:
        msgspec.json.decode(text)
    except (*UNREADABLE, UnicodeError):
        name = recipient.partition(".")[0]
        if TOOL_KINDS.get(name) is ToolKind.EXECUTE:
            return Raw(msgspec.json.encode({"command": text})), None
        return None, text
    return Raw(text.encode()), None


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) and abs(value) < 1 << 53 else 0.0


def _media_type(content: bytes, name: str) -> str:
    known = next((kind for start, kind in _MEDIA_TYPES if content.startswith(start)), None)
    ending = PurePosixPath(name).suffix.lower()
    return known or _ENDINGS.get(ending, "application/octet-stream")


_ENDINGS = {".wav": "audio/wav", ".mp3": "audio/mpeg", ".m4a": "audio/mp4", ".webp": "image/webp"}
