"""What people did and read. Whose something is sees who read it; admins see what was done to the team."""

from __future__ import annotations

from datetime import datetime
from typing import Final

import msgspec

from turnlog.hub.people.tables import HubTransaction, Row, Tables, moment, now

_MINUTE: Final = 60_000

TEAM: Final = ""
"""The owner of what is the team's."""


HUB: Final = "hub"
"""Who does what no person asked for over HTTP."""


class AuditEntry(msgspec.Struct, frozen=True, kw_only=True):
    """Something that somebody did; reads of one minute are one entry."""

    actor: str
    """Id of a person, or of a link."""
    action: str
    subject: str
    """Id of the session, person, token … that it was done to."""
    owner: str
    """Id of the person whose that is; empty for the team."""
    detail: str | None
    times: int
    last_at: datetime


class Audit(Tables):
    """The table of the audit log."""

    def note(
        self, team: int, actor: str, action: str, subject: str, *, owner: str = TEAM, detail: str | None = None
    ) -> None:
        """Note what somebody did."""
        with self._transaction() as transaction:
            note_in(transaction, team, actor, action, subject, owner=owner, detail=detail)

    def of_owner(
        self,
        team: int,
        owner: str,
        *,
        actor: str | None = None,
        action: str | None = None,
        subject: str | None = None,
        since: datetime | None = None,
        before: datetime | None = None,
        limit: int = 100,
    ) -> list[AuditEntry]:
        """What was done to what is a person's, or the team's (`TEAM`), the last first; None matches everything."""
        first = None if since is None else int(since.timestamp() * 1000)
        until = None if before is None else int(before.timestamp() * 1000)
        with self._transaction() as transaction:
            rows = transaction.rows(
                "SELECT actor, action, subject, owner_user, detail, times, last_at FROM turnlog.audit"
                " WHERE team_key = $1 AND owner_user = $2 AND ($3::bigint IS NULL OR last_at < $3)"
                " AND ($5::bigint IS NULL OR last_at >= $5) AND ($6::text IS NULL OR actor = $6)"
                " AND ($7::text IS NULL OR action = $7) AND ($8::text IS NULL OR subject = $8)"
                " ORDER BY minute DESC, last_at DESC LIMIT $4",
                *(team, owner, until, limit, first, actor, action, subject),
            )
        return [_entry(row) for row in rows]


def note_in(
    transaction: HubTransaction,
    team: int,
    actor: str,
    action: str,
    subject: str,
    *,
    owner: str = TEAM,
    detail: str | None = None,
) -> None:
    """Note what somebody does in this transaction: with it, or not at all."""
    at = now()
    transaction.run(
        "INSERT INTO turnlog.audit AS a (team_key, minute, actor, action, subject, owner_user, detail, last_at)"
        " VALUES ($1, $2, $3, $4, $5, $6, $7, $8)"
        " ON CONFLICT (team_key, minute, actor, action, subject, owner_user)"
        " DO UPDATE SET times = a.times + 1, last_at = excluded.last_at, detail = excluded.detail",
        *(team, at // _MINUTE, actor, action, subject, owner, detail, at),
    )


def _entry(row: Row) -> AuditEntry:
    last = moment(row[6])
    assert last is not None
    return AuditEntry(
        actor=row[0], action=row[1], subject=row[2], owner=row[3], detail=row[4], times=row[5], last_at=last
    )
