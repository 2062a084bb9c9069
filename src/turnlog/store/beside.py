"""What lies beside a store and is ours: it goes with the session that it is about."""

from __future__ import annotations

from pathlib import Path

from turnlog.hooks.send import SPOOLS


def imports_folder(store_path: Path) -> Path:
    """Where the bytes of files that were imported one by one are kept."""
    return store_path.absolute().parent / "imports"


def hooks_folder(store_path: Path) -> Path:
    """Where the spools of hooks lie, a folder for each agent."""
    return store_path.absolute().parent / SPOOLS
