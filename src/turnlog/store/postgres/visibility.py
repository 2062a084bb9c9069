"""Who sees which rows of a team: policies of PostgreSQL for the role as which the hub reads for somebody.

The queries of a store stay as they are. A transaction that reads for a viewer takes the role `turnlog_reader` and says
who the viewer is; without a viewer, that role sees nothing. The owner of the tables, who writes, is not bound: policies
that are forced on the owner would also forbid `COPY`.

Rows follow the session that they are of. Policies build on each other: a part is seen where its message is, a message
where a session is that contains it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import psycopg

from turnlog.errors import StoreError
from turnlog.store.postgres.dialect import SCHEMA

if TYPE_CHECKING:
    from psycopg import Connection

READER: Final = "turnlog_reader"

VIEWER: Final = "turnlog.viewer"

_WHO: Final = f"(SELECT current_setting('{VIEWER}', true))"

ALLOWED: Final = (
    f"(o.trashed_at IS NULL AND (o.owner_user = {_WHO} OR o.visibility = 'team' AND {_WHO} NOT LIKE 'link:%'"
    f" OR o.visibility IN ('people', 'link') AND EXISTS (SELECT 1 FROM {SCHEMA}.session_readers r"
    f" WHERE r.team_key = o.team_key AND r.session_id = o.session_id AND r.reader = {_WHO})))"
)
"""Whether the viewer sees the session of the row `o`."""


_ROW_BY_ROW: Final = " OFFSET 0"
"""Keeps PostgreSQL from reading all sessions of the team first, which it prefers where a plan is for any session.

A window took 9 ms so, and takes 0.6.
"""


def _of_session(column: str, how: str = _ROW_BY_ROW) -> str:
    return (
        f"EXISTS (SELECT 1 FROM {SCHEMA}.session_owners o"
        f" WHERE o.team_key = t.team_key AND o.session_key = t.{column} AND {ALLOWED}{how})"
    )


def _of_session_id(column: str) -> str:
    return (
        f"EXISTS (SELECT 1 FROM {SCHEMA}.session_owners o"
        f" WHERE o.team_key = t.team_key AND o.session_id = t.{column} AND {ALLOWED}{_ROW_BY_ROW})"
    )


def _where(table: str, condition: str, how: str = "") -> str:
    """Where there is a row that the viewer sees in another table."""
    return f"EXISTS (SELECT 1 FROM {SCHEMA}.{table} x WHERE x.team_key = t.team_key AND {condition}{how})"


# The newest of a million rows are few: the members of all sessions would be read for them.
_OF_MESSAGE: Final = _where("memberships", "x.message_key = t.message_key", _ROW_BY_ROW)
_OF_SOURCE: Final = _where("sources", "x.key = t.source_key")
# A file may have nothing but events, as one that was cut off.
_OWN_SOURCE: Final = (
    f"EXISTS (SELECT 1 FROM {SCHEMA}.session_owners o WHERE o.team_key = t.team_key AND o.owner_user = {_WHO}"
    " AND o.session_key IN ("
    + " UNION ALL ".join(
        f"SELECT x.session_key FROM {SCHEMA}.{table} x WHERE x.team_key = t.team_key AND x.source_key = t.source_key"
        for table in ("memberships", "events")
    )
    + "))"
)
_OF_SESSION: Final = _of_session("session_key")

POLICIES: Final[Mapping[str, str]] = {
    "sessions": _of_session("key"),
    **dict.fromkeys(("memberships", "superseded", "events", "gone", "streams"), _OF_SESSION),
    # Sums read whole tables: all sessions once is cheaper there.
    **dict.fromkeys(("usage", "call_totals", "edit_totals"), _of_session("session_key", how="")),
    "changes": f"(t.session_key IS NULL OR {_OF_SESSION})",
    # Most are seen where they are billed. That is known without a look at their places, whatever is read of them.
    "messages": (
        f"({_of_session('billed_key', how='')} OR {_where('memberships', 'x.message_key = t.key', _ROW_BY_ROW)})"
    ),
    **dict.fromkeys(("parts", "more_paths", "blob_uses", "archived_texts"), _OF_MESSAGE),
    # Read whole, too; a message of several sessions is seen with any of them.
    "touches": f"({_of_session('session_key', how='')} OR t.session_key IS NULL AND {_OF_MESSAGE})",
    "blobs": _where("blob_uses", "x.sha256 = t.sha256"),
    **dict.fromkeys(("annotations", "spills", "runs"), _of_session_id("session_id")),
    "answers": f"({_of_session_id('session_id')} AND {_of_session_id('log_id')})",
    "links": f"({_of_session_id('child_id')} AND {_of_session_id('parent_id')})",
    "sources": (
        f"({_of_session_id('session_id')} OR "
        + " OR ".join(_where(table, "x.source_key = t.key") for table in ("streams", "memberships", "events"))
        + ")"
    ),
    **dict.fromkeys(("generations", "diagnostics", "leaf_titles", "source_sessions"), _OF_SOURCE),
    # A file of one session is seen with it. One of many, such as a database, has more than what is shared of it.
    "archive": f"({_where('sources', 'x.key = t.source_key AND x.session_id IS NOT NULL')} OR {_OWN_SOURCE})",
    "projects": f"({_where('sessions', 'x.project_key = t.key')} OR {_where('sessions', 'x.folder_key = t.key')})",
    # Owner 1 is nobody, of whom there is nothing to tell.
    "owners": f"(t.key = 1 OR {_where('sessions', 'x.owner_key = t.key')})",
    # Somebody else's sessions may name a task of the same id: its name goes with the sessions of whom it is.
    "tasks": f"""(t."user" = {_WHO} OR {_where("owners", 'x.task = t.id AND x."user" = t."user"')})""",
}
"""Table -> the condition under which a viewer sees its row `t`."""

OPEN: Final = frozenset({"counters", "settings", "frames", "models", "price_versions", "session_owners", "tombstones"})
"""Tables that a viewer reads whole. They hold numbers, names of models and ids; `frames` holds bodies, which are found
only by a key in a message that the viewer sees."""

HIDDEN: Final = frozenset(
    {
        "blob_claims",
        "blob_garbage",
        "blob_holders",
        "id_secrets",
        "message_digests",
        "session_copies",
        "session_digests",
    }
)
"""Tables that only writers read."""


def protect(connection: Connection, name: str) -> None:
    """Make the role and the policies, where they are not; `name` is that of the database, for errors.

    Raises StoreError if the database does not allow it.
    """
    script = _script()
    mark = f"visibility {hashlib.sha256(script.encode()).hexdigest()}"
    found = connection.execute(f"SELECT obj_description('{SCHEMA}'::regnamespace)".encode()).fetchone()
    if found is not None and found[0] == mark:
        return
    try:
        with connection.transaction():
            connection.execute(b"SELECT pg_advisory_xact_lock(7815257)")
            connection.execute(script.encode())
            connection.execute(f"COMMENT ON SCHEMA {SCHEMA} IS '{mark}'".encode())
    except psycopg.errors.InsufficientPrivilege as error:
        raise StoreError(
            f"{name} needs a role as which the hub reads. Run this as an administrator of the database, then start"
            f" again: CREATE ROLE {READER} NOLOGIN; GRANT {READER} TO the role of this hub"
        ) from error


def _script() -> str:
    tables = sorted({*POLICIES, *OPEN, "session_readers"})
    statements = [
        f"DO $$ BEGIN IF NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = '{READER}')"
        f" THEN CREATE ROLE {READER} NOLOGIN; END IF; END $$",
        # From version 16 on, who makes a role may not take it without this.
        f"DO $$ BEGIN IF NOT pg_has_role('{READER}', 'MEMBER')"
        f" THEN EXECUTE format('GRANT {READER} TO %I', current_user); END IF; END $$",
        f"GRANT USAGE ON SCHEMA {SCHEMA} TO {READER}",
        f"GRANT SELECT ON {', '.join(f'{SCHEMA}.{table}' for table in tables)} TO {READER}",
        f"CREATE INDEX IF NOT EXISTS sessions_by_folder ON {SCHEMA}.sessions (team_key, folder_key)",
    ]
    for table, condition in POLICIES.items():
        of_row = re.sub(r"\bt\.", f"{table}.", condition)
        statements += [
            f"ALTER TABLE {SCHEMA}.{table} ENABLE ROW LEVEL SECURITY",
            f"DROP POLICY IF EXISTS viewers ON {SCHEMA}.{table}",
            f"CREATE POLICY viewers ON {SCHEMA}.{table} FOR SELECT TO {READER} USING ({of_row})",
        ]
    return ";\n".join(statements)
