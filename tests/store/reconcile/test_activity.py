"""How long a session was active: the time between its messages, without gaps of more than ten minutes."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from random import Random

import pytest

from support.toy_agent import line
from support.toy_store import ToyStore, in_any_order
from turnlog.store.reconcile import activity as module


def prompt(message: str, at: float, **fields: object) -> bytes:
    return line(kind="prompt", id=f"r-{message}", message=message, text=message, at=at, **fields)


def active(times: list[float]) -> int | None:
    """Milliseconds between these minutes, worked out in the plainest way; None if there are none."""
    return sum(round((b - a) * 60_000) for a, b in pairwise(sorted(times)) if b - a <= 10) or None


@pytest.mark.parametrize(("gap", "counted"), [(10, 600_000), (10.1, 0)])
def test_a_gap_counts_up_to_ten_minutes(tmp_path: Path, gap: float, counted: int) -> None:
    with ToyStore(tmp_path) as store:
        store.add("s.log", prompt("a", 5), prompt("b", 6), prompt("c", 6 + gap))
        assert store.session("s", "active_ms") == 60_000 + counted


def test_a_session_that_grows_measures_what_a_whole_one_does(tmp_path: Path) -> None:
    for number in range(20):
        chance = Random(number)
        times: list[float] = []
        moment = 0.0
        with ToyStore(tmp_path, name=f"{number}.db") as store:
            for _ in range(12):
                moment += chance.choice([0.5, 3, 9, 11, 90])
                # Records are not always in the order of their times.
                here = [moment, moment - chance.choice([0, 0.5, 5, 20, 200])]
                lines = [prompt(f"{number}.{len(times) + index}", max(0, at)) for index, at in enumerate(here)]
                times += [max(0, at) for at in here]
                store.add(f"{number}.log", *lines)
                assert store.session(str(number), "active_ms") == active(times)


def test_a_new_session_is_measured_without_reading_its_messages_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_MEASURE_ALL", "no SQL")
    for number in range(5):
        chance = Random(number)
        times = [chance.randrange(800) / 2 for _ in range(40)]
        with ToyStore(tmp_path, name=f"{number}.db") as store:
            store.add(f"{number}.log", *(prompt(f"{number}.{index}", at) for index, at in enumerate(times)))
            assert store.session(str(number), "active_ms") == active(times)
            (ends,) = store.rows("SELECT active_since, active_until FROM sessions")
            last = max((b for a, b in pairwise(sorted(times)) if b - a > 10), default=min(times))
            assert ends[1] - ends[0] == (max(times) - last) * 60_000


def test_a_copied_message_counts_where_it_was_written(tmp_path: Path) -> None:
    first = prompt("a", 1) + prompt("b", 2)
    files = {"first.log": first, "fork.log": prompt("a", 1, copied=True) + prompt("f", 500)}

    def look(store: ToyStore) -> None:
        assert store.session("first", "active_ms") == 60_000
        assert store.session("fork", "active_ms") is None

    in_any_order(tmp_path, files, look)


def test_one_time_for_all_messages_says_nothing_of_how_long_it_took(tmp_path: Path) -> None:
    """Aider and Continue log the time of a run alone."""
    with ToyStore(tmp_path) as store:
        store.add("s.log", prompt("a", 5), prompt("b", 5))
        assert store.session("s", "active_ms") is None
        store.add("s.log", prompt("c", 6))
        assert store.session("s", "active_ms") == 60_000


def test_nothing_is_known_without_times(tmp_path: Path) -> None:
    with ToyStore(tmp_path) as store:
        store.add("s.log", line(kind="prompt", id="r-a", message="a", text="a", at=None))
        assert store.session("s", "active_ms") is None
