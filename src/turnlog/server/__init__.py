"""The HTTP API and the web app: views over a store, for the browsers of one machine. Docs: docs/reference/http-api.md.

`create_app` gives an ASGI application to mount or test; `serve` runs it, keeps the store up to date and opens the
browser. Pydantic describes what comes in, msgspec writes what goes out; neither leaves this package.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from turnlog.server.app import create_app
    from turnlog.server.run import serve

__all__ = ["Settings", "create_app", "serve"]

DEFAULT_PORT = 8765

STATIC_FOLDER = Path(__file__).parent / "static"


class Settings(NamedTuple):
    """How an application behaves."""

    host: str = "127.0.0.1"
    """The address it is bound to; it decides which Host headers are right."""
    token: str | None = None
    """The access token that programs present; None and the empty one ask for nothing (loopback only)."""
    page: str | None = None
    """Where a browser finds the page; None: where a request was made."""
    folder: Path | None = None
    """Where the server's own files are; None: the folder of the store."""
    sample: bool = False
    """Whether the store is the bundled sample."""
    prompts: bool = False
    """Whether the page may let an agent go on with a session (loopback only, with a token)."""
    read_only: bool = False
    """Whether requests that change the store are refused."""
    static_folder: Path = STATIC_FOLDER
    """The built web app."""


_MODULES = {"create_app": "app", "serve": "run"}


def __getattr__(name: str) -> Any:
    """Import on first use: the background's process lives in this package and needs no web framework."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
