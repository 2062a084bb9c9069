"""Says, before a push, who may read on the hub what it shows more of."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from turnlog.cli import formatting
from turnlog.errors import TurnlogError
from turnlog.plain_text import one_line

if TYPE_CHECKING:
    from turnlog.hub.machine.client import HubClient
    from turnlog.hub.machine.state import MachineState


def write_readers(store_path: Path, state: MachineState, client: HubClient | None = None) -> None:
    """Name the readers of sessions whose level was raised since they were sent, on standard error.

    Nothing if there are none, or no hub. Without a client, the hub is asked once, and a failure is said and no more.
    """
    from turnlog.hub.machine.client import HubClient
    from turnlog.hub.machine.pusher import current_levels
    from turnlog.hub.machine.raising import raised_sessions, readers_of

    if not state.is_connected():
        return
    raised = raised_sessions(store_path, state, current_levels(state))
    if not raised:
        return
    count = formatting.plural(len(raised), "session")
    try:
        if client is None:
            connection = state.connection()
            with HubClient(connection.url, connection.token, seconds=0) as asking:
                shared = asking.shared_sessions()
        else:
            shared = client.shared_sessions()
    except TurnlogError as error:
        _say(f"the next push shows more of {count}; the hub does not say to whom: {one_line(str(error))}")
        return
    if shared is None:
        _say(f"the next push shows more of {count}; this hub is too old to say to whom")
        return
    readers = readers_of(raised, shared)
    if not readers:
        _say(f"the next push shows more of {count}, to you only")
        return
    said = "; ".join(f"{one_line(who)} ({formatting.plural(sessions, 'session')})" for who, sessions in readers)
    _say(f"the next push shows more of {count}, also to others: {said}. The page of a session changes who reads it")


def _say(text: str) -> None:
    click.echo(f"turnlog: {text}", err=True)
