"""The agent's own account of a result, out of the record that brought it."""

from __future__ import annotations

import msgspec


class _Block(msgspec.Struct):
    tool_use_id: str | None = None


class _Message(msgspec.Struct):
    content: list[_Block] | str | None = None


class _Progress(msgspec.Struct):
    message: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


class _Record(msgspec.Struct, rename="camel"):
    message: _Message | None = None
    tool_use_result: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    data: _Progress | None = None


def structured_result(record: bytes, tool_call_id: str) -> msgspec.Raw | None:
    """`toolUseResult` of a record with the call's result, also where a `progress` record carries it.

    A record with several results has one `toolUseResult`, which is then that of the first.
    """
    try:
        found = msgspec.json.decode(record, type=_Record)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    if found.data is not None and isinstance(found.data.message, msgspec.Raw):
        return structured_result(bytes(found.data.message), tool_call_id)
    content = found.message.content if found.message else None
    answered = [block.tool_use_id for block in content if block.tool_use_id] if isinstance(content, list) else []
    if answered[:1] != [tool_call_id] or not isinstance(found.tool_use_result, msgspec.Raw):
        return None
    return found.tool_use_result.copy()
