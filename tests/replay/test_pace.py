"""How long a replay waits before each event."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest

from support.replay_values import START, at
from turnlog.replay import ErrorShown, timed


def delays(*seconds: float | None, speed: float = 1, longest_pause: float = 10) -> list[float]:
    events = [ErrorShown(error_text="", created_at=None if after is None else at(after)) for after in seconds]
    return [delay for delay, _ in timed(events, speed, longest_pause)]


def test_pauses_are_as_long_as_they_were() -> None:
    assert delays(0, 1, 3.5) == [0, 1, 2.5]


def test_speed_shortens_pauses_and_long_ones_are_capped() -> None:
    assert delays(0, 8, 8 + 3600, speed=4) == [0, 2, 10]
    assert delays(0, 8, speed=0.5, longest_pause=12) == [0, 12]
    assert delays(0, 8, speed=math.inf) == [0, 0]
    assert delays(0, 8, longest_pause=0) == [0, 0]


def test_what_has_no_time_or_an_earlier_one_is_not_waited_for() -> None:
    assert delays(None, 5, None, 6) == [0, 0, 0, 1]
    assert delays(5, 2, 6) == [0, 0, 1]


@pytest.mark.parametrize(("speed", "pause"), [(0, 1), (-1, 1), (math.nan, 1), (1, -1), (1, math.nan), (1, math.inf)])
def test_what_is_no_speed_or_pause_is_refused_at_once(speed: float, pause: float) -> None:
    with pytest.raises(ValueError, match="not"):
        timed([], speed, pause)


def test_events_are_read_as_they_are_requested() -> None:
    def endless() -> Iterator[ErrorShown]:
        while True:
            yield ErrorShown(error_text="", created_at=START)

    assert next(timed(endless())).delay == 0
