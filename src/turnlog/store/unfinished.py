"""Ending what a killed process had begun, before anything else is done with a store."""

from __future__ import annotations

from pathlib import Path

from turnlog.store.connection import can_be_written
from turnlog.store.forgetting_mark import mark_path


def end_forgetting(store_path: Path) -> None:
    """Forget the rest of a session where a process was killed over it, and not while one is at work on it."""
    # A path without a name is of no file, as the opening will say.
    if store_path.name and mark_path(store_path).exists() and store_path.exists() and can_be_written(store_path):
        # Imported only then: nearly no store has such a mark.
        from turnlog.store.sqlite import forget

        forget.end_forgetting(store_path)
