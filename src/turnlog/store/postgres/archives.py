"""Bytes of log files that machines push: nothing of a forgotten session is kept of them.

Its own files are not taken, nor others that name it: a list of prompts of many sessions, and a file whose path says no
session and of which none is here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from turnlog.store import zstd
from turnlog.store.archive import Archive
from turnlog.store.feed.owners import agents_own_id
from turnlog.store.feed.tables import in_chunks
from turnlog.store.feed.taking import Insert, take_archived
from turnlog.store.feed.values import ArchivedBytes

if TYPE_CHECKING:
    from turnlog.store.connection import Connection


def take_sent(connection: Connection, archived: Sequence[ArchivedBytes], insert: Insert) -> None:
    """As `take_archived`, without what was forgotten. The caller owns the transaction."""
    paths = sorted({each.path for each in archived})
    gone = set[str]()
    for chunk in in_chunks(paths):
        query = (
            "SELECT path FROM sources WHERE path IN (SELECT value FROM json_each(?))"
            " AND session_id IN (SELECT session_id FROM tombstones)"
        )
        gone |= {path for (path,) in connection.execute(query, (chunk,)).fetchall()}
    take_archived(connection, [each for each in archived if each.path not in gone], insert)
    for chunk in in_chunks(paths):
        _drop_naming(connection, chunk)


def _drop_naming(connection: Connection, paths: str) -> None:
    """Drop the bytes of those of these files that name a session which their person has forgotten."""
    query = (
        "SELECT key, path FROM sources s WHERE path IN (SELECT value FROM json_each(?)) AND session_id IS NULL"
        " AND (kind = 'sidecar' OR NOT EXISTS (SELECT 1 FROM memberships m WHERE m.source_key = s.key))"
    )
    archive, names = Archive(connection), dict[str, list[bytes]]()
    for key, path in connection.execute(query, (paths,)).fetchall():
        user = path.partition("/")[0]
        if user not in names:
            names[user] = _forgotten_by(connection, user)
        if names[user]:
            # Not what the archive says is there: a list whose bytes were dropped counts as empty.
            frames = connection.execute(
                "SELECT data FROM archive WHERE source_key = ? ORDER BY generation, start", (key,)
            ).fetchall()
            data = b"".join([zstd.decompress(frame) for (frame,) in frames])
            if names_any(data, names[user]):
                archive.drop(key)


def names_any(data: bytes, names: Sequence[bytes]) -> bool:
    """Whether one of these ids is in a text, and not only in the middle of another one."""
    return any(
        name in data and re.search(rb"(?<!%b)%b(?!%b)" % (_OF_NAMES, re.escape(name), _OF_NAMES), data) is not None
        for name in names
    )


_OF_NAMES: Final = rb"[\w\x80-\xff-]"


def _forgotten_by(connection: Connection, user: str) -> list[bytes]:
    """The agents' ids of the sessions that a person has forgotten: what others name theirs is no reason."""
    rows = connection.execute(
        "SELECT t.session_id FROM tombstones t WHERE substr(t.session_id, 1, ?) = ? OR EXISTS"
        " (SELECT 1 FROM session_owners o WHERE o.session_id = t.session_id AND o.owner_user = ?)",
        (len(user) + 1, f"{user}/", user),
    ).fetchall()
    return forms_of(session_id.partition(":")[2] for (session_id,) in rows)


def forms_of(external_ids: Iterable[str]) -> list[bytes]:
    """How the agent's logs write the ids of these sessions: other characters than ASCII may be escaped in JSON."""
    names = {agents_own_id(each) for each in external_ids} - {""}
    return sorted({form.encode(errors="replace") for name in names for form in (name, json.dumps(name)[1:-1])})
