"""Every turn of every coding agent as one typed, lossless, part-level history.

`read_session(path)` reads one log, `open_store()` asks the store about all of them; what they answer is made of the
values of `turnlog.model`. Importing this package is cheap: a name is imported when it is first used, so that no web,
command-line, pricing or database package comes along.
"""

TYPE_CHECKING = False
"""Type checkers take it for true; importing it from `typing` would cost more than the rest of this module."""

if TYPE_CHECKING:
    from turnlog.errors import TurnlogError
    from turnlog.logs import (
        SessionHistory,
        discover,
        extract_tool_calls,
        parse_log_file,
        parse_log_stream,
        read_session,
    )
    from turnlog.store import open_store
    from turnlog.store.base import DiagnosticFilter, SessionFilter, Store, ToolCallFilter, UsageFilter

__version__ = "0.2.0"

__all__ = [
    "DiagnosticFilter",
    "SessionFilter",
    "SessionHistory",
    "Store",
    "ToolCallFilter",
    "TurnlogError",
    "UsageFilter",
    "__version__",
    "discover",
    "extract_tool_calls",
    "open_store",
    "parse_log_file",
    "parse_log_stream",
    "read_session",
]

_HOMES = {
    "turnlog.errors": ("TurnlogError",),
    "turnlog.logs": (
        "SessionHistory",
        "discover",
        "extract_tool_calls",
        "parse_log_file",
        "parse_log_stream",
        "read_session",
    ),
    "turnlog.store": ("open_store",),
    "turnlog.store.base": ("DiagnosticFilter", "SessionFilter", "Store", "ToolCallFilter", "UsageFilter"),
}
"""Where the public names are defined."""


def __getattr__(name: str) -> object:
    from importlib import import_module

    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(home), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
