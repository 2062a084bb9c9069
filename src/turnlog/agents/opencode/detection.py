"""Detects OpenCode's databases, files of the JSON storage, exports and streams, and their version."""

from __future__ import annotations

import re
from pathlib import Path

from turnlog.agents.base import Detection, Source, SourceKind
from turnlog.agents.opencode.database import is_database, open_database, select, tables_of
from turnlog.agents.opencode.export import is_export
from turnlog.agents.opencode.rows import NAME
from turnlog.agents.opencode.sources import find_sources, sessions_in
from turnlog.agents.opencode.storage import session_files_at
from turnlog.agents.opencode.stream import detect_stream
from turnlog.errors import SourceError

_MESSAGES = re.compile(rb'"messages"\s*:\s*\[')
_CREATED = re.compile(rb'"time"\s*:\s*\{\s*"created"\s*:\s*(\d+)')
_SANITIZED = re.compile(rb'"(?:title|directory)"\s*:\s*"\[redacted:session-')
_VERSION = re.compile(rb'"version"\s*:\s*"([^"]+)"')
_STORAGE_FILE = re.compile(rb'\A\s*\{\s*"id"\s*:\s*"(ses|msg|prt)_?[0-9a-zA-Z]+"')
"""The beginning of a file of the JSON storage. `_STORAGE_FIELDS` are fields that only such files have."""
_STORAGE_FIELDS = {
    b"ses": (b'"directory"', b'"title"'),
    b"msg": (b'"sessionID"', b'"role"'),
    b"prt": (b'"messageID"', b'"type"'),
}
_MOST_LEVELS = 6
"""How many folders a file of the JSON storage is below the data folder, at most."""


def detect_file(path: Path, head: bytes) -> Detection:
    """See `Agent.detect`. A database is opened, because its first page need not have the names of its tables."""
    absolute = path.absolute()
    if is_database(head):
        return _detect_database(absolute)
    version = _VERSION.search(head)
    named = version[1].decode(errors="replace") if version else None
    if is_export(head):
        kind = SourceKind.STREAM if _is_sanitized(head) or _is_fork(head) else SourceKind.SESSION
        source = Source(agent=NAME, path=str(absolute), root=str(absolute.parent), kind=kind, appendable=False)
        return Detection(agent=NAME, version=named, source=source)
    # From above: below its own folder, the oldest storage looks like the newer one.
    for root in reversed(list(absolute.parents)[:_MOST_LEVELS]):
        files = session_files_at(absolute, root)
        if files is not None and files.file is not None:
            found = next((source for source in find_sources(root, []) if source.path == str(absolute)), None)
            return Detection(agent=NAME, version=named, source=found)
    stream = detect_stream(path, head)
    if stream is not None:
        return stream
    if _is_storage_file(head):
        reason = "a file out of the JSON storage: only where it lay, its session's file leads to the messages"
        return Detection(agent=NAME, version=named, reason=reason)
    return Detection(reason="neither a database, nor a session's file, nor an export")


def _is_sanitized(export: bytes) -> bool:
    """Whether an export comes from `opencode export --sanitize`, without texts, titles and folders."""
    return _SANITIZED.search(export) is not None


def _is_fork(export: bytes) -> bool:
    """Whether an export is that of a fork: its first message is older than the session.

    Such a message is a copy, and the export does not say of which. It is known by the fork's own id, where the rows
    of the session have the original's. So the rows of the session take precedence over the export.
    """
    messages = _MESSAGES.search(export)
    if messages is None:
        return False
    began = _CREATED.findall(export, 0, messages.start())
    first = _CREATED.search(export, messages.end())
    return bool(began) and first is not None and int(first[1]) < int(began[-1])


def _is_storage_file(head: bytes) -> bool:
    piece = _STORAGE_FILE.match(head)
    return piece is not None and all(sign in head for sign in _STORAGE_FIELDS[piece[1]])


def _detect_database(path: Path) -> Detection:
    try:
        with open_database(path) as connection:
            if not {"session", "message", "part"} <= tables_of(connection):
                return Detection(reason="a database without its tables")
            row = next(select(connection, "SELECT version FROM session ORDER BY time_updated DESC LIMIT 1"), None)
        sources = tuple(sessions_in(path, path.parent))
    except (OSError, SourceError) as error:
        return Detection(reason=str(error))
    return Detection(
        agent=NAME,
        version=str(row["version"]) if row else None,
        source=sources[0] if len(sources) == 1 else None,
        sources=sources,
        reason=None if sources else "a database without sessions",
    )
