"""What can still be read of a file of JSON that is damaged: cut off while it was written, or in the middle."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from turnlog.agents.gemini_cli.kinds import MESSAGE_TYPES

_LIST = re.compile(r'"messages"\s*:\s*\[')
_BETWEEN = " \t\r\n,"
_decoder = json.JSONDecoder(strict=False, parse_int=len, parse_float=len)

_SEARCH_LIMIT = 8
"""How many times its own length a damaged file is searched for sound messages, so that a huge one cannot stall us."""


def sound_messages(data: bytes) -> bytes:
    """The file with its whole messages only, closed; nothing when no list of messages begins in it."""
    text = data.decode("latin-1")
    start = _LIST.search(text)
    if start is None:
        return b""
    found = [data[first:end] for first, end in _messages(text, start.end())]
    return data[: start.end()] + b",".join(found) + b"]}"


def _messages(text: str, position: int) -> Iterator[tuple[int, int]]:
    """Where each sound message begins and ends. Behind what is none, only what says that it is one counts."""
    is_damaged = False
    budget = _SEARCH_LIMIT * len(text)
    while 0 <= position < len(text) and budget > 0:
        if text[position] in _BETWEEN:
            position += 1
            continue
        value, end, cost = _value_at(text, position)
        budget -= cost
        if end is None:
            is_damaged = True
            position = text.find("{", position + 1)
            continue
        if not is_damaged or _is_message(value):
            yield position, end
        position = end


def _value_at(text: str, position: int) -> tuple[Any, int | None, int]:
    """The value that begins here, where it ends (None: nowhere), and how many characters were looked at."""
    try:
        value, end = _decoder.raw_decode(text, position)
    except json.JSONDecodeError as error:
        return None, None, max(error.pos - position, 1)
    except RecursionError:
        return None, None, len(text) - position
    return value, end, end - position


def _is_message(value: Any) -> bool:
    """Whether it is a message, and no piece of one."""
    return isinstance(value, dict) and "timestamp" in value and value.get("type") in MESSAGE_TYPES  # pyright: ignore[reportUnknownMemberType]  # any JSON
