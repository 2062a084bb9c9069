"""`turnlog replay`: a session shown again as it came, at any speed."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from turnlog.cli.lookup import complete_session, find_session, open_existing
from turnlog.cli.options import examples, json_option, store_option
from turnlog.cli.terminal import is_terminal, write_json_text

if TYPE_CHECKING:
    from turnlog.model import HistoryEvent, Session
    from turnlog.replay import ReplayEvent

LONGEST_PAUSE = 3.0
"""As in `turnlog.replay`, which is not imported for a command's help."""


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
    help="How many times as fast as it was.",
)
@click.option(
    "--max-pause",
    type=click.FloatRange(min=0, max=3600),
    default=LONGEST_PAUSE,
    show_default=True,
    help="Seconds that are waited at most.",
)
@click.option(
    "--view",
    type=click.Choice(["full", "model"]),
    default="full",
    show_default=True,
    help="Everything, or what the model sees at the end: the active branch, compactions applied.",
)
@click.option("--full", is_flag=True, help="Show everything in full: inputs, outputs, reasoning, the harness's texts.")
@json_option
@store_option
def replay(
    session_id: str, speed: float, max_pause: float, view: str, full: bool, as_json: bool, store_path: Path
) -> None:
    """Show a session again, event by event, with the pauses it had.

    SESSION is its id, or the beginning of one. A pipe gets everything at once. Ctrl-C ends it.
    """
    if math.isnan(speed) or math.isnan(max_pause):
        raise click.UsageError("nan is no number of seconds, and no speed.")
    with open_existing(store_path) as store:
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
