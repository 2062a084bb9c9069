"""What can still be read of a file of JSON that was cut off while it was written."""

from __future__ import annotations

import json
import re

_LIST = re.compile(r'"messages"\s*:\s*\[')
_GAP = re.compile(r"[\s,]*")
_decoder = json.JSONDecoder(strict=False, parse_int=len, parse_float=len)


def sound_beginning(data: bytes) -> bytes:
    """The file up to the end of its last whole message, closed; nothing when no list of messages begins in it."""
    text = data.decode("latin-1")
    start = _LIST.search(text)
    if start is None:
        return b""
    end = position = _behind_gap(text, start.end())
    while position < len(text):
        try:
            _, end = _decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            break
        position = _behind_gap(text, end)
    return data[:end].rstrip(b", \t\r\n") + b"]}"


def _behind_gap(text: str, position: int) -> int:
    gap = _GAP.match(text, position)
    return gap.end() if gap else position
