"""What one run of the server is told. Nothing here is read from files or the environment."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

DEFAULT_PORT = 8765

STATIC_FOLDER = Path(__file__).parent / "static"


class Settings(NamedTuple):
    """How an application behaves."""

    host: str = "127.0.0.1"
    """The address it is bound to; it decides which Host headers are right."""
    token: str | None = None
    """What every request must present; None and the empty one ask for nothing (loopback only)."""
    sample: bool = False
    """Whether the store is the bundled sample."""
    prompts: bool = False
    """Whether the page may let an agent go on with a session (loopback only, with a token)."""
    static_folder: Path = STATIC_FOLDER
    """The built web app."""
