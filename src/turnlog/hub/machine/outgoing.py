"""What follows batches, and is still to be sent. Made for `turnlog hub status`, which imports nothing of a push."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from turnlog.hub.machine.client import HubClient
from turnlog.hub.machine.state import MachineState


class Outgoing(NamedTuple):
    """How much of what belongs to batches that the hub has is still to be sent."""

    contents: int
    """Large contents."""
    files: int
    """Log files."""


def find_outgoing(store_path: Path, state: MachineState, client: HubClient) -> Outgoing:
    """Ask the hub what it lacks of this person's, and count what this machine has of it. Raises as the client does."""
    missing = client.missing_blobs()
    stored = _stored(store_path, missing) if missing else set[str]()
    contents = [sha256 for sha256 in missing if sha256 in stored or state.content(sha256) is not None]
    return Outgoing(len(contents), len(state.archives()))


def _stored(store_path: Path, hashes: list[str]) -> set[str]:
    from turnlog.store.feed.reading import snapshot, stored_blobs

    with snapshot(store_path) as connection:
        return stored_blobs(connection, hashes)
