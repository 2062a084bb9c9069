"""Reading logs without a store: one session from its file, messages from a stream, what logs there are.

`read_session` merges in memory (`merger`) what a store merges in tables, by the same functions. A store in memory and
a normal pass over the log would be one engine instead of two. It was measured with a log of 100 MB (12,217 messages;
CPython 3.11, least of three runs): 4.7 s of CPU and 285 MB in `merger`, 7.1 s (1.51 times) and 263 MB with a store in
memory, 5.9 s (1.26 times) and 247 MB with one that archives nothing. A log of 18 kB took 5.5 ms here and 20.9 ms there,
since a schema has to be made, and a line of a stream 0.28 ms here and 0.53 ms there. Scripts read many small logs, and
`parse_log_stream` yields at every line, so the merger stays.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from turnlog.agents import HEAD_SIZE, agents, agents_here, find_sources
from turnlog.agents.base import Agent, Source, SourceKind
from turnlog.arguments import checked
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


@checked
def discover(roots: str | Path | Iterable[str | Path] | None = None) -> list[Source]:
    """Every log of every agent on this machine, and the files next to them, with project and session (R-S20).

    A log is opened only if its path does not name its session. If nothing names the session, `session_id` is None; if
    the agent does not keep its logs by project, `project` is None.

    Args:
        roots: A home of an agent (as `~/.claude`), or several, to look in instead of the agents' own; one that is
            missing has none.
    """
    named = [roots] if isinstance(roots, str | Path) else roots
    homes = None if named is None else [Path(root) for root in named]
    return [
        _with_session(agent, source)
        for agent, source in find_sources(agents_here() if homes is None else agents(), homes)
    ]


_HISTORIES = (SourceKind.SESSION, SourceKind.SUBAGENT)


def _with_session(agent: Agent, source: Source) -> Source:
    """The source, of the first session that its own records name where its path names none."""
    if source.session_id is not None or source.kind not in _HISTORIES:
        return source
    try:
        with Path(source.path).open("rb") as file:
            data = file.readline() + file.read(HEAD_SIZE) if source.appendable else file.read()
        end = data.rfind(b"\n") + 1 if source.appendable else len(data)
        sessions = agent.fold(source).feed(data[:end], 0).sessions
    except Exception:  # It cannot be read, or a plugin's package fails: its path is known all the same.
        return source
    return msgspec.structs.replace(source, session_id=next(iter(sessions), None))
