"""A call of `codex exec --json`: its tool, its input, and what came back, from its item."""

from __future__ import annotations

from zlib import crc32

import msgspec
from msgspec import UNSET, Raw, UnsetType

from turnlog.agents.codex.content import from_base64
from turnlog.agents.codex.exec_records import CallShape, ExecItem, ExecLine, McpPiece
from turnlog.agents.codex.lines import Payload, fields_of
from turnlog.agents.codex.tools import status_of
from turnlog.agents.decoding import clean_json
from turnlog.agents.printed import kept_fields
from turnlog.model import DataPart, FilePart, Part, TextPart, ToolResult, UnknownPart

_PIECES = frozenset({"image", "audio", "resource", "resource_link"})
"""Pieces of an MCP server's answer that have no part of their own when they hold no bytes."""

read_item = Payload(ExecItem).read
"""Reads an item; what of it cannot be read is told and left out."""

_read_piece = Payload(McpPiece).read


def tool_name_of(item: ExecItem) -> str:
    """The name of a call's tool: the item's type, where it does not tell another."""
    if item.type == "mcp_tool_call":
        return f"mcp__{item.server or ''}__{item.tool or ''}"
    if item.type == "collab_tool_call":
        return item.tool or item.type
    return item.type


def input_of(line: ExecLine, item: ExecItem, shape: CallShape, *, has_ended: bool) -> Raw | UnsetType:
    """What a call was given, as exact JSON; UNSET as long as that is not whole."""
    if item.type == "mcp_tool_call":
        return UNSET if item.arguments is UNSET else Raw(clean_json(bytes(item.arguments)))
    if (shape.is_grown and not has_ended) or line.item is UNSET:
        return UNSET
    return kept_fields(fields_of(line.item), shape.input)


def result_of(call_id: str, item: ExecItem, *, has_ended: bool) -> ToolResult | None:
    """How a call ended, or what it has put out so far."""
    content = _content_of(item)
    text = "\n".join([part.text for part in content if isinstance(part, TextPart)])
    if not has_ended and not text:
        return None
    failure = item.error.message if item.error else None
    status = ("error" if failure else status_of(item.status, item.exit_code)) or "success"
    return ToolResult(
        id=f"{call_id}:{crc32(text.encode(errors='replace')):08x}" + ("" if has_ended else ":part"),
        status=status if has_ended else "success",
        content=content,
        error_text=(failure or text) if has_ended and status != "success" else None,
        exit_code=item.exit_code,
        preliminary=not has_ended,
    )


def _content_of(item: ExecItem) -> tuple[Part, ...]:
    if item.aggregated_output:
        return (TextPart(text=item.aggregated_output),)
    if item.result is None or item.result.content is None:
        return ()
    return content_of_pieces(item.result.content)


def content_of_pieces(pieces: list[Raw]) -> tuple[Part, ...]:
    """What an MCP server answered."""
    return tuple([_piece_of(raw) for raw in pieces])


def _piece_of(raw: Raw) -> Part:
    """A piece of what an MCP server answered."""
    exact = Raw(clean_json(bytes(raw)))
    piece = _read_piece(exact, lambda reason, severity, json_path: None)
    if piece.type == "text" and piece.text is not None:
        return TextPart(text=piece.text)
    data = from_base64(piece.data) if piece.data is not None else None
    if data is not None and piece.mime_type is not None:
        return FilePart(media_type=piece.mime_type, data=data)
    return DataPart(name=piece.type, data=exact) if piece.type in _PIECES else UnknownPart(kind=piece.type, data=exact)


def exec_structured_result(record: bytes, tool_call_id: str) -> Raw | None:
    """The item, up to 0.43 the event, that a line of a stream brought, when it is the call's."""
    fields = fields_of(record)
    event, raw = fields.get("msg"), fields.get("item")
    if event is not None:
        names_call = bytes(fields_of(event).get("call_id", b"")) == msgspec.json.encode(tool_call_id)
        return event.copy() if names_call else None
    if raw is None:
        return None
    item = read_item(raw, lambda reason, severity, json_path: None)
    return raw.copy() if tool_call_id.startswith("exec-") and tool_call_id.endswith(f":{item.id}") else None
