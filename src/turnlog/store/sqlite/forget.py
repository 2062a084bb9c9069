"""Forgetting a session: deletes its rows, its archived bytes and its words in the search file. A tombstone remains.

Messages that another session shares stay with that session and are reported. The search file is cleaned before the rows
are deleted, because FTS5 can delete postings only with their text. Whoever is killed between these steps leaves a mark
(`store.forgetting_mark`), and the next who opens the store ends what was begun.
"""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Collection, Generator, Iterable
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Final

from turnlog.errors import NotFoundError, StoreBusyError
from turnlog.store import connection as connections
from turnlog.store.archive import Archive
from turnlog.store.connection import write_transaction
from turnlog.store.external_content import make_whole
from turnlog.store.forgetting_mark import ForgettingMark, Unfinished, locked_mark
from turnlog.store.frames import drop_bodies
from turnlog.store.keys import Names, family, find_key, session_key
from turnlog.store.reconcile import lineage
from turnlog.store.reconcile.titles import leaves_of, retitle
from turnlog.store.search.base import search_path
from turnlog.store.search.indexer import Indexer
from turnlog.store.sources import hooks_folder, imports_folder
from turnlog.store.sqlite.copies import find_copies, settle_copies
from turnlog.store.values import Forgetting
from turnlog.store.writing.call_totals import drop_totals
from turnlog.store.writing.sessions import SessionRows, UsageRows

UNUSED_PROJECT: Final = (
    "NOT EXISTS (SELECT 1 FROM sessions s WHERE s.project_key = projects.key)"
    " AND NOT EXISTS (SELECT 1 FROM sessions s WHERE s.folder_key = projects.key)"
    " AND key NOT IN (SELECT f.repository_key FROM projects f WHERE f.repository_key IS NOT NULL"
    " AND EXISTS (SELECT 1 FROM sessions s WHERE s.folder_key = f.key))"
)
"""Of a row of `projects`: no session has it, nor a folder of it."""


def plan_forgetting(connection: sqlite3.Connection, session_id: str, user: str = "") -> Forgetting:
    """What would be deleted, as `forget` does it. Raises NotFoundError for a session that is not stored."""
    return _plan(connection, concerned(connection, session_id, user), user)


def _plan(connection: sqlite3.Connection, keys: list[int], user: str, begun: Unfinished | None = None) -> Forgetting:
    marks = ",".join("?" * len(keys))
    shared = connection.execute(
        f"SELECT s.agent || ':' || s.external_id, count(*) FROM memberships m JOIN memberships o"
        f" ON o.message_key = m.message_key AND o.session_key NOT IN ({marks}) JOIN sessions s ON s.key = o.session_key"
        f" WHERE m.session_key IN ({marks}) GROUP BY 1",
        (*keys, *keys),
    )
    ids = tuple(sorted({*lineage.session_ids(connection, set(keys)), *(begun.session_ids if begun else ())}))
    sources = _own_sources(connection, keys, user, begun) | _lists_with(connection, ids, user)
    size = connection.execute(
        f"SELECT coalesce(sum(length), 0) FROM archive WHERE source_key IN ({','.join('?' * len(sources))})",
        tuple(sources),
    ).fetchone()[0]
    return Forgetting(
        session_ids=ids,
        messages=len(_own_messages(connection, keys)),
        files=tuple(sorted(sources.values())),
        archived_bytes=size,
        shared=dict(shared.fetchall()),
    )


def forget_for_good(store_path: Path, session_id: str) -> Forgetting:
    """Delete a session from the store and the search file, so that its text is no longer in the bytes of either.

    A large search file is overwritten by a process that may still be at work (`store.search.overwriting`).

    Raises NotFoundError for a session that is not stored, and StoreBusyError if another process reads for so long that
    the bytes cannot be overwritten.
    """
    with locked_mark(store_path, connections.BUSY_TIMEOUT_SECONDS) as mark:
        if (unfinished := mark.read()) is not None:
            _end(store_path, unfinished, mark)
        with _forgetting_connection(store_path) as connection:
            session_key(connection, session_id)
            mark.write(Unfinished(session_id, []))
            forgotten = _forget_everywhere(store_path, connection, Unfinished(session_id, []), mark)
            (is_read,) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[:1]
            mark.clear()
    if is_read:
        raise StoreBusyError(f"{session_id} is forgotten, but {store_path} is being read: its bytes go when that ends")
    return forgotten


def end_forgetting(store_path: Path) -> None:
    """Forget the rest of a session where a process was killed over it; nothing if another one is at work on it."""
    try:
        with locked_mark(store_path, 0) as mark:
            if (unfinished := mark.read()) is not None:
                _end(store_path, unfinished, mark)
            else:  # what cannot be read is of a step that was not begun
                mark.clear()
    except StoreBusyError as error:
        # Imported here because hardly any command logs. Whoever opens the store next tries again.
        import logging

        logging.getLogger(__name__).debug("not ended: %s", error)


def _end(store_path: Path, unfinished: Unfinished, mark: ForgettingMark) -> None:
    with _forgetting_connection(store_path) as connection:
        with suppress(NotFoundError):  # before it had a tombstone, another process has deleted it
            _forget_everywhere(store_path, connection, unfinished, mark)
        _delete_copies(path for path in unfinished.copies if _is_copy(store_path, Path(path)))
        # Whoever reads the store keeps the bytes until that ends, and this command waits for nobody.
        connection.execute("PRAGMA busy_timeout = 0")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        mark.clear()


@contextmanager
def _forgetting_connection(store_path: Path) -> Generator[sqlite3.Connection]:
    with closing(connections.connect(store_path)) as connection:
        # Deleted rows would otherwise stay readable in free pages of the file.
        connection.execute("PRAGMA secure_delete = ON")
        yield connection


def _forget_everywhere(
    store_path: Path, connection: sqlite3.Connection, begun: Unfinished, mark: ForgettingMark
) -> Forgetting:
    with Indexer(store_path, search_path(store_path)) as indexer:
        with write_transaction(connection):
            begun = _buried(connection, begun)
            mark.write(begun)
        # A rebuild in between has deleted the rows of what has a tombstone, and given their keys to other sessions.
        with write_transaction(connection):
            found = {session_id: find_key(connection, session_id) for session_id in begun.session_ids}
            keys = [key for key in found.values() if key is not None]
            # All sessions at once: messages that two of them share must not move from one to the other.
            is_complete = indexer.forget(*keys)
            if len(keys) < len(found):
                is_complete = False
                indexer.reset(overwrite=True)
            forgotten = _forget_sessions(connection, keys, begun=begun)
            copies = [path for path in forgotten.files if _is_copy(store_path, Path(path))]
            mark.write(begun._replace(copies=copies))
        if not is_complete:
            indexer.catch_up()
    _delete_copies(copies)
    return forgotten


def _buried(connection: sqlite3.Connection, begun: Unfinished) -> Unfinished:
    """Leave tombstones, so that from now on nobody else writes or indexes anything of the sessions; return what goes.

    Raises NotFoundError if the session is not stored and was not buried before.
    """
    if begun.session_ids and find_key(connection, begun.session_id) is None:
        return begun
    keys = concerned(connection, begun.session_id)
    ids = lineage.session_ids(connection, set(keys))
    _bury(connection, ids, _now())
    sources = {*begun.sources, *_own_sources(connection, keys, "").values()}
    return begun._replace(session_ids=sorted({*begun.session_ids, *ids}), sources=sorted(sources))


def _is_copy(store_path: Path, path: Path) -> bool:
    """Whether a file is turnlog's own."""
    return path.parent == imports_folder(store_path) or path.parent.parent == hooks_folder(store_path)


def _delete_copies(paths: Iterable[str]) -> None:
    for path in map(Path, paths):
        # The path of rows may be longer than that of a file can be, and is none.
        if os.path.lexists(path):
            path.unlink(missing_ok=True)


def forget(
    connection: sqlite3.Connection, session_id: str, user: str = "", kept_projects: Iterable[int] = ()
) -> Forgetting:
    """Delete the session's rows and bytes and leave a tombstone. The caller owns the transaction.

    Args:
        connection: Of the store.
        session_id: The session.
        user: Where several people have the store, the one whose session it is: nothing of anybody else is deleted,
            whatever their rows name. Their files have the user's id in front (`hub.sync.admission.placed`).
        kept_projects: Keys of projects that stay though no session may have them: sessions that come next do.
    """
    return _forget_sessions(connection, concerned(connection, session_id, user), user, kept_projects)


def _forget_sessions(
    connection: sqlite3.Connection,
    keys: list[int],
    user: str = "",
    kept_projects: Iterable[int] = (),
    begun: Unfinished | None = None,
) -> Forgetting:
    """Forget the sessions with these keys, and those that were `begun`, of which there may be no rows any more."""
    settle_copies(connection, keys)
    plan = _plan(connection, keys, user, begun)
    marks = ",".join("?" * len(keys))
    others = [
        row[0]
        for row in connection.execute(
            f"SELECT DISTINCT o.session_key FROM memberships m JOIN memberships o ON o.message_key = m.message_key"
            f" WHERE m.session_key IN ({marks}) AND o.session_key NOT IN ({marks})",
            (*keys, *keys),
        )
    ]
    messages, sources = _own_messages(connection, keys), _own_sources(connection, keys, user, begun)
    staying = _messages_of(connection, keys) - {*messages}
    # Read before their file is deleted: sessions that it named get another title below.
    titled = leaves_of(connection, sources)
    # Bodies that stay in other sessions may contain places in the archive of these files instead of the texts.
    make_whole(connection, sources, messages)
    connection.executemany("DELETE FROM sources WHERE key = ?", [(key,) for key in sources])
    _name_parents(connection, messages)
    drop_bodies(connection, messages)
    connection.execute("DELETE FROM messages WHERE key IN (SELECT value FROM json_each(?))", (json.dumps(messages),))
    connection.execute(
        "DELETE FROM leaf_titles WHERE record_id IN"
        f" (SELECT active_leaf FROM sessions WHERE key IN ({marks})"
        f" UNION ALL SELECT agent || ':' || external_id FROM sessions WHERE key IN ({marks}))",
        keys + keys,
    )
    drop_totals(connection, marks, keys)
    connection.execute(f"DELETE FROM sessions WHERE key IN ({marks})", keys)
    retitle(connection, titled)
    # The inner query reads the index of blobs and not their bytes.
    connection.execute(
        "DELETE FROM blobs"
        " WHERE sha256 IN (SELECT sha256 FROM blobs WHERE sha256 NOT IN (SELECT sha256 FROM blob_uses))"
    )
    connection.execute(
        f"DELETE FROM projects WHERE key NOT IN (SELECT value FROM json_each(?)) AND {UNUSED_PROJECT}",
        (json.dumps([*kept_projects]),),
    )
    owned = " AND session_id IN (SELECT session_id FROM session_owners WHERE owner_user = ?)" if user else ""
    whose = (user,) if user else ()
    now = _now()
    # Codex's `history.jsonl` and Gemini CLI's `logs.json` contain what was typed in every session.
    for key in _lists_with(connection, plan.session_ids, user):
        empty_source(connection, key, now)
    for forgotten in plan.session_ids:
        connection.execute("DELETE FROM links WHERE child_id = ? OR parent_id = ?", (forgotten, forgotten))
        connection.execute("DELETE FROM annotations WHERE session_id = ?", (forgotten,))
        connection.execute("DELETE FROM spills WHERE session_id = ?", (forgotten,))
        connection.execute("DELETE FROM source_sessions WHERE session_id = ?", (forgotten,))
        connection.execute("DELETE FROM runs WHERE session_id = ?", (forgotten,))
        connection.execute(f"DELETE FROM answers WHERE (session_id = ? OR log_id = ?){owned}", (forgotten,) * 2 + whose)
    _bury(connection, plan.session_ids, now)
    (number,) = connection.execute(
        "INSERT INTO changes (kind, at) VALUES ('forgotten', ?) RETURNING seq", (now,)
    ).fetchone()
    # A hub shows a message at the highest level of its sessions, which may be a lower one now: it is sent again.
    connection.execute(
        "UPDATE messages SET changed_seq = ? WHERE key IN (SELECT value FROM json_each(?))",
        (number, json.dumps(sorted(staying))),
    )
    _bill_elsewhere(connection, others)
    return plan


def _bury(connection: sqlite3.Connection, session_ids: Iterable[str], now: int) -> None:
    """Leave tombstones: the agent's log is usually still there, and the next sync would archive it again."""
    connection.executemany(
        "INSERT OR REPLACE INTO tombstones (session_id, forgotten_at) VALUES (?, ?)",
        [(session_id, now) for session_id in session_ids],
    )


def _now() -> int:
    return int(time.time() * 1000)


def concerned(connection: sqlite3.Connection, session_id: str, user: str = "") -> list[int]:
    """Keys of what goes with a session: itself, its subagents, and chats that it answered, which contain the same text.

    Those of one user, where several people have the store.
    """
    keys = family(connection, session_key(connection, session_id))
    answered = connection.execute("SELECT DISTINCT session_id FROM answers WHERE log_id = ?", (session_id,)).fetchall()
    chats = [find_key(connection, chat_id) for (chat_id,) in answered]
    keys += [key for key in chats if key is not None and key not in keys]
    if not user:
        return keys
    rows = connection.execute(
        "SELECT session_key FROM session_owners WHERE owner_user = ?"
        " AND session_key IN (SELECT value FROM json_each(?))",
        (user, json.dumps(keys)),
    )
    own = {key for (key,) in rows}
    return [key for key in keys if key in own]


def _name_parents(connection: sqlite3.Connection, message_keys: Collection[int]) -> None:
    """Store the parents' ids of places that refer to these messages by key, because the messages will be deleted."""
    # The places of those that are deleted, too, go with them.
    next_keys = json.dumps(sorted({key + 1 for key in message_keys} - {*message_keys}))
    for table in ("memberships", "superseded"):
        connection.execute(
            f"UPDATE {table} SET parent_id ="
            f" (SELECT m.external_id FROM messages m WHERE m.key = {table}.message_key - 1)"
            " WHERE message_key IN (SELECT value FROM json_each(?)) AND parent_id = ''",
            (next_keys,),
        )


def _messages_of(connection: sqlite3.Connection, keys: list[int]) -> set[int]:
    """Keys of messages that these sessions contain or contained."""
    rows = connection.execute(
        "SELECT message_key FROM memberships WHERE session_key IN (SELECT value FROM json_each(?1))"
        " UNION SELECT message_key FROM superseded WHERE session_key IN (SELECT value FROM json_each(?1))",
        (json.dumps(keys),),
    )
    return {key for (key,) in rows}


def _own_messages(connection: sqlite3.Connection, keys: list[int]) -> list[int]:
    """Keys of messages that these sessions contain or contained, and no other session does."""
    marks = ",".join("?" * len(keys))
    rows = connection.execute(
        f"SELECT message_key FROM (SELECT message_key FROM memberships WHERE session_key IN ({marks})"
        f" UNION SELECT message_key FROM superseded WHERE session_key IN ({marks})) m WHERE NOT EXISTS"
        f" (SELECT 1 FROM memberships o WHERE o.message_key = m.message_key AND o.session_key NOT IN ({marks}))",
        (*keys, *keys, *keys),
    )
    return [key for (key,) in rows]


def _own_sources(
    connection: sqlite3.Connection, keys: list[int], user: str, begun: Unfinished | None = None
) -> dict[int, str]:
    """Key -> path of the files that only contain these sessions, or those that were begun; those of one user."""
    marks = ",".join("?" * len(keys))
    paths = json.dumps(begun.sources if begun else [])
    rows = connection.execute(
        "SELECT s.key, s.path FROM sources s WHERE s.key IN"
        f" (SELECT key FROM sources WHERE session_id IN ({marks})"
        f" UNION SELECT source_key FROM memberships WHERE session_key IN ({marks})"
        f" UNION SELECT source_key FROM streams WHERE session_key IN ({marks})"
        " UNION SELECT key FROM sources WHERE path IN (SELECT value FROM json_each(?)))"
        " AND NOT EXISTS (SELECT 1 FROM memberships m WHERE m.source_key = s.key"
        f" AND m.session_key NOT IN ({marks}))"
        f" AND NOT EXISTS (SELECT 1 FROM streams t WHERE t.source_key = s.key AND t.session_key NOT IN ({marks}))",
        (*lineage.session_ids(connection, set(keys)), *keys, *keys, paths, *keys, *keys),
    )
    found = dict(rows.fetchall()) | find_copies(connection, keys)
    return {key: path for key, path in found.items() if _is_of(path, user)}


def _is_of(path: str, user: str) -> bool:
    """Whether a file is that of a user; any is where one user has the store."""
    return not user or path.startswith(f"{user}/")


def _lists_with(connection: sqlite3.Connection, session_ids: Iterable[str], user: str) -> dict[int, str]:
    """Key -> path of archived files about many sessions (such as a prompt history) that mention one of these."""
    agents = {session_id.partition(":")[0] for session_id in session_ids}
    names = [session_id.partition(":")[2].encode() for session_id in session_ids]
    archive = Archive(connection)
    rows = connection.execute("SELECT key, path, agent FROM sources WHERE kind = 'sidecar' AND session_id IS NULL")
    return {
        key: path
        for key, path, agent in rows.fetchall()
        if agent in agents and _is_of(path, user)
        for data in [b"".join(archive.iter_all(key))]
        if any(name in data for name in names)
    }


def empty_source(connection: sqlite3.Connection, source_key: int, now: int) -> None:
    """Keep what a file says about other sessions, but delete its bytes. A later sync does not archive them either."""
    archive = Archive(connection)
    archive.drop(source_key)
    archive.begin(source_key, 0, 0, now)
    connection.execute(
        "UPDATE sources SET size = 0, mtime_ns = 0, generation = 0, cursor = 0, lines = 0, head_hash = NULL,"
        " tail_hash = NULL, state = NULL WHERE key = ?",
        (source_key,),
    )


def _bill_elsewhere(connection: sqlite3.Connection, others: list[int]) -> None:
    """Bill messages of the forgotten session to another one that contains them."""
    if not others:
        return
    marks = ",".join("?" * len(others))
    unbilled = connection.execute(
        f"SELECT m.key, min(o.session_key) FROM messages m JOIN memberships o ON o.message_key = m.key"
        f" WHERE m.billed_key IS NULL AND o.session_key IN ({marks}) GROUP BY m.key",
        others,
    ).fetchall()
    names = Names(connection)
    sessions = SessionRows(connection, names)
    usage = UsageRows(connection, names, sessions)
    for message_key, billed_key in unbilled:
        usage.bill(message_key, None, billed_key)
    usage.flush()
    sessions.flush()
