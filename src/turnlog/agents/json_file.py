"""Files that are one JSON object with a list of messages: Gemini CLI before 0.44, Qwen Code before 0.5, Cline.

Such a file is rewritten whole, and read whole each time. Of a damaged one the complete messages are read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Raw

from turnlog.agents.decoding import LineContext, object_of
from turnlog.agents.jsonl import JsonLines

RecordT = TypeVar("RecordT", bound=msgspec.Struct)

_EDGES = b" \t\r\n\x00"
_BOM = b"\xef\xbb\xbf"


def read_object(
    context: LineContext, data: bytes, records: JsonLines[RecordT], is_message: Callable[[dict[str, Any]], bool]
) -> RecordT | None:
    """Read a file of JSON, and report and count what is wrong with it; None if nothing of it can be read.

    Args:
        context: Gets the JSON that was read, valid UTF-8, and its place in the file.
        data: The file.
        records: Decodes the object.
        is_message: Whether an object found after damage is a message and not a part of one.
    """
    text = data.strip(_EDGES).removeprefix(_BOM).lstrip(_EDGES)
    context.json, context.position, context.length, context.line_number = text, max(data.find(text), 0), len(text), 1
    if not text:
        context.changes.counts.blank += 1
        return None
    found = records.decode(text)
    if isinstance(found, str):
        context.report(found)
        context.changes.counts.unreadable += 1
        context.json = recover_messages(text, is_message)
        found = records.decode(context.json)
        if isinstance(found, str):
            return None
    for problem in found.problems:
        context.report(problem.reason, problem.severity, problem.json_path)
    context.json = found.json
    context.report_replaced_bytes()
    return found.record


def locate_items(items: Sequence[Raw], json: bytes, position: int) -> Iterator[tuple[Raw, int, int]]:
    """Each item with its byte offset and its length in the file.

    Args:
        items: Raw values that `json` holds, in this order.
        json: A piece of the file.
        position: The byte offset of `json`.
    """
    start = 0
    for item in items:
        data = bytes(item)
        at = json.find(data, start)
        start = start if at < 0 else at + len(data)
        yield item, position + max(at, 0), len(data)


# -- damaged files: cut off while they were written, or damaged in the middle


_SEPARATORS = " \t\r\n,"

_decoder = json.JSONDecoder(strict=False, parse_int=len, parse_float=len)

_TOO_DEEP: Final = object()
"""Stands for a whole value that is nested too deep to be decoded."""

_STRUCTURE = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|["\[\]{}]', re.DOTALL)
"""A string, one that does not end, or a bracket."""

_SEARCH_LIMIT = 8
"""How many times its own length a damaged file is searched for messages, so that a huge one cannot stall a sync."""


def recover_messages(data: bytes, is_message: Callable[[dict[str, Any]], bool]) -> bytes:
    """The file up to its list of messages, with the complete messages only; empty when it has no such list."""
    return recover_items(data, "messages", is_message)


def recover_items(data: bytes, field: str, is_item: Callable[[dict[str, Any]], bool]) -> bytes:
    """The object up to the list in a field, with the complete items only; empty when it has no such list."""
    text = data.decode("latin-1")
    start = re.search(rf'"{field}"\s*:\s*\[', text)
    if start is None:
        return b""
    found = [data[first:end] for first, end in _complete_items(text, start.end(), is_item)]
    return data[: start.end()] + b",".join(found) + b"]}"


def _complete_items(
    text: str, position: int, is_message: Callable[[dict[str, Any]], bool]
) -> Iterator[tuple[int, int]]:
    """Where each complete item begins and ends, up to the end of its list if that is whole.

    After the first damage an object counts only when it has the fields of an item: the search may have stopped inside
    a broken message, where a call or a part begins with a brace too.
    """
    is_damaged = False
    budget = _SEARCH_LIMIT * len(text)
    while 0 <= position < len(text) and budget > 0:
        if text[position] in _SEPARATORS:
            position += 1
            continue
        if text[position] == "]" and not is_damaged:
            return
        value, end, cost = _value_at(text, position)
        budget -= cost
        if end is None:
            is_damaged = True
            position = text.find("{", position + 1)
            continue
        if value is not _TOO_DEEP and (not is_damaged or is_message(object_of(value))):
            yield position, end
        position = end


def _value_at(text: str, position: int) -> tuple[Any, int | None, int]:
    """The value that begins here, its end (None: it has none), and the number of characters that were read."""
    try:
        value, end = _decoder.raw_decode(text, position)
    except json.JSONDecodeError as error:
        return None, None, max(error.pos - position, 1)
    except RecursionError:
        # What comes behind such a value is whole, so its end is found without decoding it.
        deep_end = _end_of_brackets(text, position)
        return (None, None, len(text) - position) if deep_end is None else (_TOO_DEEP, deep_end, deep_end - position)
    return value, end, end - position


def _end_of_brackets(text: str, position: int) -> int | None:
    """The end of the array or object that begins here; None if it is cut off."""
    depth = 0
    for found in _STRUCTURE.finditer(text, position):
        token = found[0]
        if token == '"':
            return None
        if len(token) == 1:
            depth += 1 if token in "[{" else -1
            if depth == 0:
                return found.end()
    return None
