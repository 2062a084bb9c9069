"""The pytest fixture: `turnlog_cassette(path)` plays a cassette for one test, and fails the test that left it.

pytest loads this in every run where turnlog is installed, so it imports nothing until the fixture is used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from turnlog.cassette.player import Player

    PlayCassette = Callable[..., Player]


@pytest.fixture
def turnlog_cassette(request: pytest.FixtureRequest) -> Iterator[PlayCassette]:
    """Play recorded conversations (`turnlog export --as cassette`): `turnlog_cassette(path)` gives a `Player`.

    Arguments of the call: `path`, from the test's own folder; `ignore`, regular expressions of what is not compared;
    `aside`, the answer to unrecorded requests without tools; `partial`, whether answers may be left over. Point your
    client to the player's `url`. The test fails where a request was not the recorded one.
    """
    from turnlog.cassette.player import play

    playing: list[tuple[Player, bool]] = []
    with ExitStack() as servers:

        def play_cassette(
            path: Path | str, *, ignore: Sequence[str] = (), aside: str | None = None, partial: bool = False
        ) -> Player:
            player = servers.enter_context(play(request.path.parent / path, ignore=ignore, aside=aside))
            playing.append((player, partial))
            return player

        yield play_cassette
    problems = [problem for player, partial in playing for problem in _problems(player, partial)]
    if problems:
        pytest.fail("\n\n".join(problems), pytrace=False)


def _problems(player: Player, partial: bool) -> list[str]:
    """A conversation that went wrong has answers left over, which is not reported too."""
    return player.failures or ([] if partial else player.unplayed())
