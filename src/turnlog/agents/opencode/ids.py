"""OpenCode's names for things, and places made from them: ids of sessions, positions within one.

`msg_` and `prt_` ids begin with 12 hex digits: milliseconds times 4096 plus a counter, modulo 2^48. Messages stand in
the order of (time created, id); a fork's copies have new ids and the old times. So a position is the time, with the
id's counter for messages of the same millisecond.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime

NAME = "opencode"

_TIME_AND_COUNTER = re.compile(r"[a-z]+_([0-9a-f]{12})")
_STEPS = 1 << 12
_WRAP = 1 << 48
_BEGINNING = int(datetime(2020, 1, 1, tzinfo=UTC).timestamp() * 1000)
"""Where positions begin, so that those of this century are exact in JSON's numbers."""
_MOST = (1 << 53) - 1


def session_id(external: str) -> str:
    """The id of a session. `/` separates nothing in it."""
    return f"{NAME}:{external.replace('/', '_')}"


def message_position(created: int, message_id: str) -> int:
    """Where a message stands in its session, by its time (Unix milliseconds) and id."""
    return _bounded(time_position(created) + (_number(message_id) or 0) % _STEPS)


def time_position(milliseconds: int) -> int:
    """The first position of a millisecond (Unix time)."""
    return _bounded((milliseconds - _BEGINNING) * _STEPS)


def part_position(message: int, message_id: str, part_id: str, index: int) -> int:
    """Where a part stands, given its message's position: by its own id, else right behind, by its number."""
    own, base = _number(part_id), _number(message_id)
    if own is not None and base is not None and 0 < (own - base) % _WRAP < _WRAP // 2:
        return _bounded(message + (own - base) % _WRAP)
    return _bounded(message + index + 1)


def moment(milliseconds: object) -> datetime | None:
    """A time from Unix milliseconds; None for what is no time."""
    if isinstance(milliseconds, bool) or not isinstance(milliseconds, int | float):
        return None
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def whole(value: object) -> int:
    """A count of milliseconds as a whole number; 0 for what is none."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < _MOST:
        return 0
    return int(value)


def time_of_id(name: str, near: int) -> int:
    """When a thing with this id was made, not after `near` (both Unix milliseconds); `near` when the id has no time."""
    number = _number(name)
    return near if number is None else near - ((near - number // _STEPS) % (_WRAP // _STEPS))


def time_of_later_id(name: str, since: int) -> int | None:
    """When a thing with this id was made, not before `since` (both Unix milliseconds); None when the id has no time."""
    number = _number(name)
    return None if number is None else since + (number // _STEPS - since) % (_WRAP // _STEPS)


def _number(name: str) -> int | None:
    match = _TIME_AND_COUNTER.match(name)
    return int(match[1], 16) if match else None


def _bounded(position: int) -> int:
    return min(max(position, 0), _MOST)
