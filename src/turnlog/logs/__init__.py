"""Reading logs without a store: one session from its file, messages from a stream, what logs there are."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from turnlog.agents import agents, find_sources
from turnlog.agents.base import Source
from turnlog.logs.session import SessionHistory, extract_tool_calls, parse_log_file, read_session
from turnlog.logs.stream import parse_log_stream

__all__ = [
    "SessionHistory",
    "discover",
    "extract_tool_calls",
    "parse_log_file",
    "parse_log_stream",
    "read_session",
]


def discover(roots: str | Path | Iterable[str | Path] | None = None) -> list[Source]:
    """Every log of every agent on this machine, and what lies beside them (R-S20).

    Args:
        roots: A home of an agent (as `~/.claude`), or several, to look in instead of the agents' own; one that is
            missing has none.
    """
    named = [roots] if isinstance(roots, str | Path) else roots
    homes = None if named is None else [Path(root) for root in named]
    return [source for _, source in find_sources(agents(), homes)]
