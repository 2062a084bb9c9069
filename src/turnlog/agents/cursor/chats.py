"""The fold of a chat in the terminal: a line for each message, in the form of the AI SDK's messages."""

from __future__ import annotations

import re
from typing import Any, cast

import msgspec
from msgspec import UNSET, Raw, UnsetType

from turnlog.agents.claude_code.contents import from_base64
from turnlog.agents.conversation import ConversationContext, ConversationFold
from turnlog.agents.cursor import NAME
from turnlog.agents.cursor.databases import BLOBS
from turnlog.agents.cursor.places import session_id
from turnlog.agents.cursor.tools import is_typed, kind_of, prompt_parts, time_in
from turnlog.agents.decoding import clean_json, object_of, text_of, value_of
from turnlog.agents.jsonl import UNREADABLE
from turnlog.agents.row_files import ROWS, RowLine, json_in, row_of
from turnlog.model import (
    CompactionEvent,
    FilePart,
    Message,
    Origin,
    Part,
    ProviderData,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolKind,
    ToolResult,
    UnknownPart,
)


class ChatMessage(msgspec.Struct, rename="camel"):
    """A message of a chat."""

    role: str = ""
    id: str | None = None
    content: Raw | UnsetType = UNSET
    provider_options: Raw | UnsetType = UNSET


class ChatPart(msgspec.Struct, rename="camel"):
    """A part of a content."""

    type: str = ""
    text: str | None = None
    signature: str | None = None
    tool_call_id: str | None = None
    tool_name: str | None = None
    args: Raw | UnsetType = UNSET
    input: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    output: Raw | UnsetType = UNSET
    is_error: bool | None = None
    image: str | None = None
    data: str | None = None
    mime_type: str | None = None
    media_type: str | None = None
    filename: str | None = None


_WORKSPACE = re.compile(r"^Workspace Path: *(?P<path>\S.*?) *$", re.MULTILINE)
_BRANCH = re.compile(r"^Current branch: *(?P<name>\S+)", re.MULTILINE)
_EXIT_CODE = re.compile(r"^Exit code: (?P<code>\d{1,3})\b")
_DATA_URL = re.compile(r"data:(?P<type>[\w.+-]+/[\w.+-]+);base64,(?P<data>.*)", re.DOTALL)
_ROLES = ("system", "user", "assistant", "tool")


class ChatFold(ConversationFold[RowLine]):
    """Reads the messages of a chat."""

    records = ROWS
    says_results = True

    def session_id(self) -> str:
        """The path of a chat names it."""
        return self._source.session_id or session_id(self._source.path.rpartition("#")[2])

    def read(self, context: ConversationContext, record: RowLine) -> None:
        """See `ConversationFold.read`."""
        message = _message_in(record)
        if record.table != BLOBS or message is None:
            context.report("no message that can be read: it is encrypted, or of another form")
            context.changes.counts.unreadable += 1
            return
        # A blob is named by its content, so the same words in two chats have the same name.
        identity = f"{context.external_id}:{str(row_of(record).get('id'))[:16]}" + (
            f"~{record.note}" if record.note else ""
        )
        if message.role == "tool":
            self._read_results(context, message, identity)
        elif message.role == "assistant":
            self._read_answer(context, message, identity)
        elif message.role in _ROLES:
            self._read_input(context, message, identity)
        else:
            context.add_record(message.role, known=False)

    def _read_input(self, context: ConversationContext, message: ChatMessage, identity: str) -> None:
        found = parts_of(message.content)
        texts = [part.text or "" for part, _ in found if part.type == "text"]
        parts: list[Part] = []
        for part, raw in found:
            if part.type == "text":
                parts += prompt_parts(part.text or "", identity, len(parts))
            else:
                parts.append(_file(part, raw, f"{identity}.{len(parts)}"))
        self._read_place(context, "\n".join(texts))
        origin = self._origin_of(context, message, texts)
        if origin is Origin.COMPACTION:
            context.add_event(CompactionEvent(id=f"{identity}.compaction", summary_message_id=identity))
            context.state.is_branched = True
        context.add(
            Message(
                id=identity,
                role="user" if origin is Origin.PROMPT else "system" if message.role == "system" else "developer",
                parts=tuple(parts),
                origin=origin,
                created_at=next(filter(None, map(time_in, texts)), None),
                metadata=_metadata(message),
            )
        )

    def _origin_of(self, context: ConversationContext, message: ChatMessage, texts: list[str]) -> Origin:
        if _options(message).get("isSummary") is True:
            return Origin.COMPACTION
        if message.role == "system":
            return Origin.HARNESS
        is_added = bool(texts) and texts[0].lstrip().startswith("<") and not any(map(is_typed, texts))
        return Origin.HARNESS if is_added and not context.state.turn else Origin.PROMPT

    def _read_place(self, context: ConversationContext, text: str) -> None:
        """Read the folder and the branch in what Cursor says to the model about the user's machine."""
        folder, branch = _WORKSPACE.search(text), _BRANCH.search(text)
        if folder is not None and not context.state.turn:
            context.session.cwd = context.session.project_path = folder["path"]
        if branch is not None and not context.state.turn:
            context.session.git_branch = branch["name"]

    def _read_answer(self, context: ConversationContext, message: ChatMessage, identity: str) -> None:
        parts = tuple(
            _answer_part(part, raw, f"{identity}.{number}")
            for number, (part, raw) in enumerate(parts_of(message.content))
        )
        context.add(
            Message(
                id=identity,
                role="assistant",
                parts=parts,
                model=text_of(_options(message).get("modelName")),
                request_id=text_of(_options(message).get("requestId")),
                metadata=_metadata(message),
            )
        )

    def _read_results(self, context: ConversationContext, message: ChatMessage, identity: str) -> None:
        for number, (part, _) in enumerate(parts_of(message.content)):
            if part.tool_call_id:
                result = _result_of(part, f"{identity}.{number}")
                context.add_result(part.tool_call_id, result, record_ids=(identity,))
        context.changes.counts.results += 1


def _message_in(line: RowLine) -> ChatMessage | None:
    try:
        return msgspec.json.decode(json_in(line, "data") or b"", type=ChatMessage)
    except UNREADABLE:
        return None


def parts_of(content: Raw | UnsetType) -> list[tuple[ChatPart, Raw]]:
    """The parts of a content, each with its JSON; a content that is a text is one part."""
    if isinstance(content, UnsetType):
        return []
    try:
        found = msgspec.json.decode(content, type=str | list[Raw] | None)
    except UNREADABLE:
        return [(ChatPart(), Raw(clean_json(bytes(content))))]
    if isinstance(found, str):
        return [(ChatPart(type="text", text=found), content)]
    return [(_part_in(raw), raw) for raw in found or ()]


def _part_in(raw: Raw) -> ChatPart:
    try:
        return msgspec.json.decode(raw, type=ChatPart)
    except UNREADABLE:
        return ChatPart()


def _options(message: ChatMessage) -> dict[str, Any]:
    options = message.provider_options
    return {} if isinstance(options, UnsetType) else object_of(object_of(value_of(options)).get(NAME))


def _metadata(message: ChatMessage) -> dict[str, Any]:
    options = _options(message)
    return {NAME: options} if options else {}


def _answer_part(part: ChatPart, raw: Raw, part_id: str) -> Part:
    if part.type == "text" and part.text is not None:
        return TextPart(id=part_id, text=part.text)
    if part.type in ("reasoning", "redacted-reasoning"):
        # Which provider signed a thought, the message does not say.
        opaque = {"signature": part.signature} if part.signature else {"data": part.data} if part.data else None
        provider = ProviderData(name="unknown", opaque=opaque) if opaque else None
        return ReasoningPart(id=part_id, text=part.text or "", redacted=not part.text, provider=provider)
    if part.type == "tool-call":
        name = part.tool_name or ""
        given = part.input if isinstance(part.args, UnsetType) else part.args
        return ToolCallPart(
            id=part_id,
            tool_call_id=part.tool_call_id or part_id,
            tool_name=name,
            kind=kind_of(name),
            input=UNSET if isinstance(given, UnsetType) else Raw(clean_json(bytes(given))),
        )
    return _file(part, raw, part_id)


def _file(part: ChatPart, raw: Raw, part_id: str) -> Part:
    content = part.image or part.data
    if part.type not in ("image", "file") or not content:
        return UnknownPart(id=part_id, kind=part.type, data=Raw(clean_json(bytes(raw))))
    match = _DATA_URL.fullmatch(content)
    media_type = match["type"] if match else part.media_type or part.mime_type or "image/*"
    data = from_base64(match["data"] if match else content)
    if data:
        return FilePart(id=part_id, media_type=media_type, filename=part.filename, data=data)
    if content.startswith(("http://", "https://")):
        return FilePart(id=part_id, media_type=media_type, filename=part.filename, url=content)
    return UnknownPart(id=part_id, kind=part.type, data=Raw(clean_json(bytes(raw))))


def _result_of(part: ChatPart, identity: str) -> ToolResult:
    text = _text_in(part.output if isinstance(part.result, UnsetType) else part.result)
    code = _EXIT_CODE.match(text) if kind_of(part.tool_name or "") is ToolKind.EXECUTE else None
    failed = part.is_error is True or (code is not None and code["code"] != "0")
    return ToolResult(
        id=identity,
        status="error" if failed else "success",
        content=(TextPart(id=f"{identity}.0", text=text),) if text else (),
        error_text=text if failed else None,
        exit_code=None if code is None else int(code["code"]),
    )


def _text_in(value: Raw | UnsetType) -> str:
    """A result as a text: a text, the value of an output, or JSON."""
    if isinstance(value, UnsetType):
        return ""
    try:
        found: Any = msgspec.json.decode(value)
    except UNREADABLE:
        return bytes(value).decode(errors="replace")
    if isinstance(found, dict) and isinstance(cast("dict[str, Any]", found).get("value"), str):
        return cast("dict[str, Any]", found)["value"]
    return found if isinstance(found, str) else clean_json(bytes(value)).decode()
