"""Pushes by itself: a thread beside the server, or a process of its own, sends what changes within a second."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from turnlog.errors import NotFoundError, TurnlogError
from turnlog.hub.machine.client import HubClient
from turnlog.hub.machine.pusher import StorePusher
from turnlog.hub.machine.state import MachineState, is_connected
from turnlog.store.connection import DatabaseError
from turnlog.store.feed.reading import last_change, snapshot

LOOK_SECONDS: Final = 0.2
"""Between two looks for changes; what is written within this time goes together."""

EVERY_SECONDS: Final = 30.0
"""Between two pushes without a change: large contents may be missing, or the levels be others."""

LONGEST_PAUSE: Final = 60.0
"""Between two tries while the hub is away."""


class HubFollower:
    """Pushes a store whenever it changes, on a thread of its own."""

    def __init__(self, store_path: Path, announce: Callable[[str], None] = lambda _: None) -> None:
        """Start nothing yet. `announce` gets what is wrong, each thing once, and that it is over."""
        self._store_path = store_path
        self._announce = announce
        self._end = threading.Event()
        self._problem: str | None = None
        self._thread = threading.Thread(target=self._run, name="turnlog-hub", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End, after the request under way."""
        self._end.set()
        self._thread.join(5)

    def wait(self) -> None:
        """Wait until it has ended."""
        while self._thread.is_alive():
            self._thread.join(1)

    def _run(self) -> None:
        known, pushed_at, pause = -1, 0.0, LOOK_SECONDS
        while not self._end.wait(pause):
            pause = LOOK_SECONDS
            # A machine may be connected, or disconnected, while this runs.
            if not is_connected(self._store_path):
                pause = 2.0
                continue
            try:
                last = self._last_change()
                if last == known and time.monotonic() - pushed_at < EVERY_SECONDS:
                    continue
                self._push()
                known, pushed_at = last, time.monotonic()
                self._announce_once(None)
            except Exception as error:  # whatever goes wrong, agents go on, and the next try may succeed
                self._announce_once(str(error) or type(error).__name__)
                pause = min(max(2.0, time.monotonic() - pushed_at), LONGEST_PAUSE) if pushed_at else 5.0

    def _push(self) -> None:
        with MachineState(self._store_path) as state:
            connection = state.connection()
            with HubClient(connection.url, connection.token, seconds=0, sleep=self._end.wait) as client:
                report = StorePusher(self._store_path, state, client).push()
            if report.batches:
                state.note("pushed", int(time.time() * 1000))

    def _last_change(self) -> int:
        with snapshot(self._store_path) as connection:
            return last_change(connection)

    def _announce_once(self, problem: str | None) -> None:
        if problem == self._problem:
            return
        self._problem = problem
        self._announce("the hub answers again" if problem is None else problem)
        with suppress(TurnlogError, DatabaseError), MachineState(self._store_path) as state:
            state.note("problem", problem)


def follow(store_path: Path, *, sync: bool, announce: Callable[[str], None]) -> None:
    """Push until Ctrl-C or SIGTERM; with `sync`, read logs in a process beside it."""
    from turnlog.server.background import Background, PassProgress

    follower = HubFollower(store_path, announce)
    background = Background(store_path, PassProgress()) if sync else None
    if not is_connected(store_path):
        raise NotFoundError("this machine is connected to no hub: `turnlog hub connect URL`")
    if background is not None:
        background.start()
    follower.start()
    try:
        follower.wait()
    finally:
        follower.stop()
        if background is not None:
            background.stop()
