"""The numbers that the chat backend is given: what each may be, in one table.

A number that makes no sense is refused where it is given, and not when a page waits for an answer.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from typing import Any, Final, NamedTuple, TypeVar

KindT = TypeVar("KindT", bound=type[tuple[Any, ...]])


class Allowed(NamedTuple):
    """What a number may be, besides None where its type says so."""

    expected: str
    """In words."""
    least: float
    is_least_allowed: bool = True

    def fits(self, value: float) -> bool:
        """Whether the number is one of these. What is no number (`nan`), or more than a float can be, never is."""
        return (value >= self.least if self.is_least_allowed else value > self.least) and value <= sys.float_info.max


_COUNT: Final = Allowed("1 or more", 1)
_SOME: Final = Allowed("0 or more", 0)
_ABOVE: Final = Allowed("a number above 0", 0, is_least_allowed=False)
_COUNT_OR_NONE: Final = _COUNT._replace(expected="1 or more, or None for no limit")
_ABOVE_OR_NONE: Final = _ABOVE._replace(expected="a number above 0, or None for no limit")

ALLOWED: Final = {
    "Limits.calls": _COUNT,
    "Limits.tokens": _COUNT_OR_NONE,
    "Limits.seconds": _ABOVE_OR_NONE,
    "Limits.tool_seconds": _ABOVE_OR_NONE,
    "Retry.times": _SOME,
    "Retry.seconds": _SOME,
    "keep_turns.turns": _COUNT,
    "AgentRuntime.grace_seconds": _SOME,
    "AgentRuntime.wait_seconds": _SOME,
    "ChatHttp.max_bytes": _COUNT,
    "RedisStreamStore.expire_seconds": _COUNT,
    "Streams.keep_alive": _ABOVE,
    "Streams.keep_finished": _SOME,
    "Tail.keep_alive": _ABOVE._replace(expected="a number above 0, or None for no comments"),
}
"""The owner of a parameter, and its name -> what it may be."""


def check_numbers(owner: str, **numbers: float | None) -> None:
    """Raise ValueError, which says what to give, for a number that `ALLOWED` does not allow. None is allowed."""
    for name, value in numbers.items():
        allowed = ALLOWED[f"{owner}.{name}"]
        if value is not None and not allowed.fits(value):
            # An integer may have more digits than Python writes.
            shown = "a number of this size" if isinstance(value, int) and value > sys.float_info.max else value
            raise ValueError(f"{owner}: {name} cannot be {shown}: expected {allowed.expected}")


def checked_numbers(kind: KindT) -> KindT:
    """Decorate a named tuple so that it refuses numbers that are not allowed when it is made."""
    make: Callable[..., Any] = kind.__new__

    @wraps(make)
    def new(cls: type[Any], *args: Any, **named: Any) -> Any:
        made = make(cls, *args, **named)
        check_numbers(kind.__name__, **made._asdict())
        return made

    kind.__new__ = new
    return kind
