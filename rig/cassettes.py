"""Plays an agent's conversation again: what turnlog recorded is the model, and the same agent must find its way.

Nothing but the agent's own words about the day, the machine and a command's run is left out of the comparison.
"""

from __future__ import annotations

from collections.abc import Callable

from turnlog.cassette import play, record
from turnlog.cassette.recording import RecordedSession
from turnlog.logs import SessionHistory

CHANGING = (
    r"<system-reminder>.*?</system-reminder>",
    r"<current_datetime>.*?</current_datetime>\s*",
    r"<environment_context>.*?</environment_context>",
    r"<session_context>.*?</session_context>",
    r"Chunk ID: \w+",
    r"Wall time: [\d.]+ seconds",
    r"Process Group PGID: \d+",
)


def check_cassette(history: SessionHistory, start: Callable[[str], None]) -> list[str]:
    """What is not as recorded when `start(url)` runs the agent again in a home of its own."""
    places = {place.message_id: place for place in history.memberships}
    placed = [(message, places[message.id]) for message in history.messages]
    made = record([RecordedSession(history.session, placed, history.events)])
    with play(made.cassette, ignore=CHANGING, aside="A short talk") as player:
        start(player.url)
        return [*player.failures, *player.unplayed()]
