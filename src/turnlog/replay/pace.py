"""How long to wait before each event of a replay: as long as it took then, scaled, with long pauses capped.

Only says how long; waiting is up to whoever shows the events.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Generic, NamedTuple, Protocol, TypeVar

LONGEST_PAUSE = 3.0
"""Seconds that a replay waits at most, unless told otherwise: a pause says that time passed, not how much."""


class _Dated(Protocol):
    @property
    def created_at(self) -> datetime | None: ...


DatedT = TypeVar("DatedT", bound=_Dated)
EventT = TypeVar("EventT", covariant=True)


class Timed(NamedTuple, Generic[EventT]):
    """An event, and the seconds to wait before it."""

    delay: float
    event: EventT


class Pace:
    """Turns times of a log into seconds to wait."""

    def __init__(self, speed: float = 1.0, longest_pause: float = LONGEST_PAUSE) -> None:
        """Wait so many times less than it took then, and never longer than the longest pause (both in real seconds).

        Raises ValueError for a speed that is not above zero, or a pause below it. An infinite speed never waits.
        """
        if not speed > 0:
            raise ValueError(f"a speed is a number above zero, not {speed}")
        if not longest_pause >= 0 or math.isinf(longest_pause):
            raise ValueError(f"the longest pause is a number of seconds, not {longest_pause}")
        self._speed = speed
        self._longest = longest_pause
        self._latest: datetime | None = None

    def delay(self, at: datetime | None) -> float:
        """Seconds to wait for what happened at this time; none where it, or what was before, has no time.

        A time before what was shown already is not waited for, and does not make what follows wait longer.
        """
        if at is None:
            return 0.0
        latest, self._latest = self._latest, at if self._latest is None else max(self._latest, at)
        seconds = 0.0 if latest is None else (at - latest).total_seconds()
        return min(max(seconds, 0.0) / self._speed, self._longest)


def timed(
    events: Iterable[DatedT], speed: float = 1.0, longest_pause: float = LONGEST_PAUSE
) -> Iterator[Timed[DatedT]]:
    """Events with the seconds to wait before each. Raises ValueError as `Pace` does, before the first is asked for."""
    pace = Pace(speed, longest_pause)
    return (Timed(pace.delay(event.created_at), event) for event in events)
