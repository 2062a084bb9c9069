"""The log files of a session that a store has from machines: those of which it has every byte, one for each place.

Two machines of a person may have a file at the same place of their agent's home, and of some files only the rows are
here: a machine sends the bytes of those at the level `full`, after the rows.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from turnlog.agents.base import Source
from turnlog.errors import StoreError
from turnlog.store.archive import Archive
from turnlog.store.sqlite.restore import place_of, restore_source, row_agent, sources_of_session

if TYPE_CHECKING:
    import sqlite3

BELOW_FULL: Final = "pushed below the level full"
NOT_YET: Final = "its bytes have not arrived on the hub yet"
OUTSIDE: Final = "is outside of the home of its agent, and has no place below another one"
LONGER: Final = "a longer copy on another machine was left out: "

_OF_WINDOWS: Final = re.compile(r"[^\\]*:[A-Za-z]:\\")
"""A path of a machine with Windows, behind its person and machine."""


class MissingLog(NamedTuple):
    """A log file that was not written, or of which only a shorter copy was."""

    path: str
    """Relative to the home of its agent."""
    reason: str


class SessionLogs(NamedTuple):
    """What there is of the log files of a session."""

    written: int
    """Files."""
    missing: tuple[MissingLog, ...]


class _Copy(NamedTuple):
    """What one machine has for a place: a file, or all rows of the sessions that a database there holds."""

    size: int
    sources: list[tuple[int, Source]]


def restore_logs(connection: sqlite3.Connection, session_id: str, to: Path) -> SessionLogs:
    """Write the log files of a session and its subagents below `to`, laid out as below the agent's home.

    Of several copies for one place, the longest that is here whole is written. Looking for files all of whose messages
    others have reads logs, and is not done.

    Raises NotFoundError if the session is not stored or has no files.
    """
    archive = Archive(connection)
    written, missing = set[Path](), list[MissingLog]()
    for place, copies in sorted(_places(connection, archive, session_id, missing).items()):
        copies.sort(key=lambda each: each.size, reverse=True)
        whole = next((each for each in copies if all(archive.is_whole(key) for key, _ in each.sources)), None)
        for key, source in () if whole is None else whole.sources:
            written |= {file.path for file in restore_source(archive, key, source, to, to)}
        longest = copies[0]
        if whole is None or longest.size > whole.size:
            reason = BELOW_FULL if any(_is_below_full(connection, *each) for each in longest.sources) else NOT_YET
            missing.append(MissingLog(place, reason if whole is None else f"{LONGER}{reason}"))
    return SessionLogs(len(written), tuple(missing))


def _places(
    connection: sqlite3.Connection, archive: Archive, session_id: str, missing: list[MissingLog]
) -> dict[str, list[_Copy]]:
    """Path relative to the agent's home -> what the machines have there; what is outside of the home is missing."""
    found: dict[tuple[str, str], list[tuple[int, Source]]] = {}
    for key, stored in sources_of_session(connection, session_id, copies=False):
        source = local_paths(stored)
        try:
            place = place_of(source).as_posix()
        except StoreError:
            missing.append(MissingLog(Path(os.path.relpath(source.path, source.root)).as_posix(), OUTSIDE))
            continue
        if row_agent(source) is not None:
            place = place.partition("#")[0]
        found.setdefault((place, source.root), []).append((key, source))
    places: dict[str, list[_Copy]] = {}
    for (place, _), sources in found.items():
        size = sum(generations[-1].size for key, _ in sources if (generations := archive.generations(key)))
        places.setdefault(place, []).append(_Copy(size, sources))
    return places


def local_paths(source: Source) -> Source:
    """The source with a path of this system's kind, whatever the system of its machine is."""
    if _OF_WINDOWS.match(source.root) is None:
        return source
    path, root = (text.replace("\\", "/") for text in (source.path, source.root))
    return msgspec.structs.replace(source, path=path, root=root)


def _is_below_full(connection: sqlite3.Connection, key: int, source: Source) -> bool:
    """Whether a machine has sent the row of a source at a level at which its bytes stay there."""
    level, has_hashes = connection.execute(
        "SELECT o.level, s.head_hash IS NOT NULL FROM sources s"
        " LEFT JOIN session_owners o ON o.session_id = s.session_id WHERE s.key = ?",
        (key,),
    ).fetchone()
    # At `redacted`, hashes of the bytes stay on the machine, too. Sources of rows have none anywhere.
    return not has_hashes if row_agent(source) is None else level not in (None, "full")
