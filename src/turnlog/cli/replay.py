"""`turnlog replay`: play a session again, at its own pace or any other."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from turnlog.cli.fresh_store import fresh_store_option, open_fresh
from turnlog.cli.options import complete_session, examples, find_session, json_option
from turnlog.cli.terminal import is_terminal, write_json_text

if TYPE_CHECKING:
    from turnlog.model import HistoryEvent, Session
    from turnlog.replay import ReplayEvent

LONGEST_PAUSE = 3.0
"""The same as `turnlog.replay.LONGEST_PAUSE`, which a test compares: help does not import that room."""


@click.command(
    epilog=examples(
        "turnlog replay 3f2a91c0",
        "turnlog replay 3f2a91c0 --speed 4 --max-pause 1",
        "turnlog replay 3f2a91c0 --view model",
        "turnlog replay 3f2a91c0 --json | jq '.events[].type'",
    )
)
@click.argument("session_id", metavar="SESSION", shell_complete=complete_session)
@click.option(
    "--speed",
    type=click.FloatRange(min=0, min_open=True),
    default=1.0,
    show_default=True,
    help="Play this many times as fast as it happened.",
)
@click.option(
    "--max-pause",
    type=click.FloatRange(min=0, max=3600),
    default=LONGEST_PAUSE,
    show_default=True,
    help="Wait at most this many seconds between events.",
)
@click.option(
    "--view",
    type=click.Choice(["full", "model"]),
    default="full",
    show_default=True,
    help="Play everything, or only what the model sees at the end: the active branch after compactions.",
)
@click.option("--full", is_flag=True, help="Show inputs, outputs, reasoning and texts of the harness in full.")
@json_option
@fresh_store_option
def replay(
    session_id: str, speed: float, max_pause: float, view: str, full: bool, as_json: bool, store_path: Path
) -> None:
    """Play a session again, event by event, with its original pauses.

    SESSION is an id or the beginning of one. A pipe gets everything at once. Ctrl-C stops.
    """
    if math.isnan(speed) or math.isnan(max_pause):
        raise click.UsageError("--speed and --max-pause must be numbers, not nan.")
    with open_fresh(store_path) as store:
        session = find_session(store, session_id)
        history = store.history(session.id)
    shown = _shown(history, view)
    if as_json:
        _write_document(session, shown)
    else:
        _play(shown, speed, max_pause, full=full)


def _shown(history: Iterable[HistoryEvent], view: str) -> list[ReplayEvent]:
    from turnlog.replay import model_view
    from turnlog.replay import replay as derive

    return derive(model_view(history).events if view == "model" else history, response_metadata=True)


def _write_document(session: Session, shown: Iterable[ReplayEvent]) -> None:
    from turnlog.model.codec import encode

    write_json_text(f'{{"session":{encode(session).decode()},"events":[')
    for number, event in enumerate(shown):
        write_json_text(f"{',' if number else ''}\n{encode(event).decode()}")
    write_json_text("\n]}\n")


def _play(shown: Iterable[ReplayEvent], speed: float, max_pause: float, *, full: bool) -> None:
    from turnlog.cli.replay_lines import lines_of
    from turnlog.replay import timed

    waits = is_terminal()
    for delay, event in timed(shown, speed, max_pause):
        if waits and delay:
            time.sleep(delay)
        for line in lines_of(event, full=full):
            click.echo(line)
