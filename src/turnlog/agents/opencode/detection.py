"""Whether a file is OpenCode's, and of which version: databases, files of the JSON storage, exports."""

from __future__ import annotations

import re
from pathlib import Path

from turnlog.agents.base import Detection, Source
from turnlog.agents.opencode.database import is_database, open_database, select, tables_of
from turnlog.agents.opencode.ids import NAME
from turnlog.agents.opencode.sources import find_sources, in_database
from turnlog.agents.opencode.storage import place_of
from turnlog.errors import SourceError

_EXPORT = re.compile(rb'\A\s*\{\s*"info"\s*:\s*\{\s*"id"\s*:\s*"ses')
_VERSION = re.compile(rb'"version"\s*:\s*"([^"]+)"')
_MOST_LEVELS = 6
"""How far above a file of the storage the data folder is."""


def detect_file(path: Path, head: bytes) -> Detection:
    """See `Agent.detect`. A database is opened to see its tables: its first page need not name them."""
    absolute = path.absolute()
    if is_database(head):
        return _detect_database(absolute)
    version = _VERSION.search(head)
    named = version[1].decode(errors="replace") if version else None
    if _EXPORT.match(head):
        source = Source(agent=NAME, path=str(absolute), root=str(absolute.parent), appendable=False)
        return Detection(agent=NAME, version=named, source=source)
    for root in list(absolute.parents)[:_MOST_LEVELS]:
        place = place_of(absolute, root)
        if place is not None and place.file is not None:
            found = next((source for source in find_sources(root, []) if source.path == str(absolute)), None)
            return Detection(agent=NAME, version=named, source=found)
    return Detection(reason="neither a database, nor a session's file, nor an export")


def _detect_database(path: Path) -> Detection:
    try:
        with open_database(path) as connection:
            if not {"session", "message", "part"} <= tables_of(connection):
                return Detection(reason="a database without its tables")
            row = next(select(connection, "SELECT version FROM session ORDER BY time_updated DESC LIMIT 1"), None)
    except (OSError, SourceError) as error:
        return Detection(reason=str(error))
    sources = [source for source in find_sources(path.parent, [path]) if in_database(source.path)]
    return Detection(
        agent=NAME,
        version=str(row["version"]) if row else None,
        source=sources[0] if len(sources) == 1 else None,
    )
