"""The HTTP API and the web app: views over a store, for the browsers of one machine. Docs: docs/reference/http-api.md.

`create_app` gives an ASGI application to mount or test; `serve` runs it, keeps the store up to date and opens the
browser. Pydantic describes what comes in, msgspec writes what goes out; neither leaves this package.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from turnlog.server.app import create_app
    from turnlog.server.run import serve
    from turnlog.server.settings import Settings

__all__ = ["Settings", "create_app", "serve"]

_MODULES = {"Settings": "settings", "create_app": "app", "serve": "run"}


def __getattr__(name: str) -> Any:
    """Import on first use: the background's process lives in this package and needs no web framework."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
