"""Secrets: what proves who somebody is. Each is shown once, and only its SHA-256 is kept."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Collection
from datetime import datetime
from typing import Final, Literal, TypeAlias

import msgspec

from turnlog.hub.callers import LINK, Caller, CallerKind, Role, Scope
from turnlog.hub.people.tables import HubTransaction, Row, Tables, announce, moment, now

Kind: TypeAlias = Literal["personal", "machine", "browser", "invitation", "link", "device", "attempt"]

PREFIXES: Final[dict[Kind, str]] = {
    "personal": "tlp_",
    "machine": "tlm_",
    "browser": "tlb_",
    "invitation": "tli_",
    "link": "tll_",
    "device": "tld_",
    "attempt": "tla_",
}
"""How a secret begins, so that people and scanners recognise one."""

ALLOWED: Final[dict[Role, frozenset[Scope]]] = {
    "owner": frozenset({"push", "read", "admin"}),
    "admin": frozenset({"push", "read", "admin"}),
    "member": frozenset({"push", "read"}),
    "viewer": frozenset({"read"}),
}
"""What a role allows; a token allows no more than its person's role does."""

_COLUMNS: Final = (
    "s.id, s.kind, s.team_key, s.user_id, s.machine, s.session_id, s.role, s.scopes, s.name, s.data, s.created_at,"
    " s.expires_at, s.used_at"
)
_VALID: Final = "s.ended_at IS NULL AND (s.expires_at IS NULL OR s.expires_at > $2)"


class Secret(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a secret, without the secret."""

    id: str
    kind: Kind
    team_key: int | None
    user_id: str | None
    machine: str | None
    session_id: str | None
    role: Role | None
    scopes: frozenset[Scope]
    name: str
    data: str | None
    created_at: datetime
    expires_at: datetime | None
    used_at: datetime | None


class Secrets(Tables):
    """The table of secrets."""

    def make(
        self,
        kind: Kind,
        *,
        team: int | None = None,
        user: str | None = None,
        machine: str | None = None,
        session: str | None = None,
        role: Role | None = None,
        scopes: Collection[Scope] = (),
        name: str = "",
        data: str | None = None,
        seconds: float | None = None,
        made_by: str | None = None,
        within: HubTransaction | None = None,
    ) -> tuple[str, Secret]:
        """A new secret, valid for so many seconds, and what is kept of it.

        One that is made with a token, whose id is `made_by`, ends with it at the latest.
        """
        if within is None:
            with self._transaction() as transaction:
                return self.make(
                    kind,
                    team=team,
                    user=user,
                    machine=machine,
                    session=session,
                    role=role,
                    scopes=scopes,
                    name=name,
                    data=data,
                    seconds=seconds,
                    made_by=made_by,
                    within=transaction,
                )
        text = PREFIXES[kind] + secrets.token_urlsafe(32)
        at = now()
        ends = None if seconds is None else at + int(seconds * 1000)
        row = within.row(
            "INSERT INTO turnlog.secrets AS s (hash, id, kind, team_key, user_id, machine, session_id, role, scopes,"
            " name, data, created_at, expires_at, made_by) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12,"
            " least($13, (SELECT m.expires_at FROM turnlog.secrets m WHERE m.id = $14)), $14)"
            f" RETURNING {_COLUMNS}",
            *(digest(text), f"{kind}-{secrets.token_hex(8)}", kind, team, user, machine, session, role),
            *(" ".join(sorted(scopes)), name, data, at, ends, made_by),
        )
        assert row is not None
        return text, _secret(row)

    def find(self, text: str, kind: Kind) -> Secret | None:
        """What a secret is, if it is valid."""
        with self._transaction() as transaction:
            row = transaction.row(
                f"SELECT {_COLUMNS} FROM turnlog.secrets s WHERE s.hash = $1 AND {_VALID} AND s.kind = $3",
                *(digest(text), now(), kind),
            )
        return None if row is None else _secret(row)

    def redeem(self, text: str, kind: Kind) -> Secret | None:
        """As `use`, in a transaction of its own."""
        with self._transaction() as transaction:
            return self.use(text, kind, transaction)

    def use(self, text: str, kind: Kind, within: HubTransaction) -> Secret | None:
        """A secret that works once: what it is, for the first who asks."""
        row = within.row(
            f"UPDATE turnlog.secrets s SET used_at = $2, ended_at = $2 WHERE s.hash = $1 AND {_VALID} AND s.kind = $3"
            f" AND s.used_at IS NULL RETURNING {_COLUMNS}",
            *(digest(text), now(), kind),
        )
        return None if row is None else _secret(row)

    def caller(self, text: str, kinds: Collection[Kind]) -> Caller | None:
        """Who has a secret of these kinds: a member of a team who has not left, or somebody with a link."""
        at = now()
        with self._transaction() as transaction:
            row = transaction.row(
                "SELECT s.kind, s.id, s.team_key, s.user_id, s.machine, s.scopes, m.role, s.used_at"
                " FROM turnlog.secrets s"
                " LEFT JOIN turnlog.members m"
                " ON m.team_key = s.team_key AND m.user_id = s.user_id AND m.left_at IS NULL"
                f" WHERE s.hash = $1 AND {_VALID} AND s.kind = ANY($3)",
                *(digest(text), at, list(kinds)),
            )
            if row is None or row[2] is None:
                return None
            kind, id, team, user, machine, scopes, role, used_at = row
            if used_at is None or at - used_at > _USED_EVERY:
                transaction.run("UPDATE turnlog.secrets SET used_at = $2 WHERE id = $1", id, at)
                if machine is not None:
                    transaction.run(
                        "UPDATE turnlog.machines SET seen_at = $3 WHERE team_key = $1 AND id = $2", team, machine, at
                    )
        if kind == "link":
            reading = frozenset({"read"})
            return Caller(team=str(team), user=f"{LINK}{id}", role="viewer", scopes=reading, kind="link", secret=id)
        if role is None:
            return None
        allowed = ALLOWED[role]
        given = allowed if kind == "browser" else allowed & frozenset(scopes.split())
        return Caller(
            team=str(team), user=user, role=role, machine=machine, scopes=given, kind=_CALLERS[kind], secret=id
        )

    def all_of(self, team: int, kinds: Collection[Kind], *, user: str | None = None) -> list[Secret]:
        """The valid secrets of a team, of one person or of all, the newest first."""
        with self._transaction() as transaction:
            rows = transaction.rows(
                f"SELECT {_COLUMNS} FROM turnlog.secrets s WHERE s.team_key = $1 AND {_VALID} AND s.kind = ANY($3)"
                " AND ($4::text IS NULL OR s.user_id = $4) ORDER BY s.created_at DESC, s.id",
                *(team, now(), list(kinds), user),
            )
        return [_secret(row) for row in rows]

    def names(self, team: int) -> dict[str, str]:
        """Id -> name of the tokens and invitations of a team, also of those that were ended."""
        with self._transaction() as transaction:
            rows = transaction.rows(
                "SELECT id, name FROM turnlog.secrets WHERE team_key = $1 AND kind IN ('personal', 'invitation')", team
            )
        return {row[0]: row[1] for row in rows}

    def end(self, team: int, id: str, *, user: str | None = None) -> Secret | None:
        """Make a secret of a team invalid, with all that was made with it, and end streams that are read with them.

        None if there is none of this id, or not of this person.
        """
        with self._transaction() as transaction:
            row = transaction.row(
                f"UPDATE turnlog.secrets s SET ended_at = $2 WHERE s.team_key = $1 AND {_VALID} AND s.id = $3"
                f" AND ($4::text IS NULL OR s.user_id = $4) RETURNING {_COLUMNS}",
                *(team, now(), id, user),
            )
            if row is not None:
                transaction.run(_END_MADE, id, now())
                announce(transaction, team)
        return None if row is None else _secret(row)

    def valid(self, ids: Collection[str]) -> set[str]:
        """Those of these secrets with which somebody may still do something."""
        with self._transaction() as transaction:
            rows = transaction.rows(
                f"SELECT s.id FROM turnlog.secrets s WHERE s.id = ANY($1) AND {_VALID}", list(ids), now()
            )
        return {row[0] for row in rows}

    def end_browser(self, text: str) -> None:
        """Sign a browser out."""
        with self._transaction() as transaction:
            row = transaction.row(
                "UPDATE turnlog.secrets SET ended_at = $2 WHERE hash = $1 AND kind = 'browser' AND ended_at IS NULL"
                " RETURNING team_key",
                *(digest(text), now()),
            )
            if row is not None:
                announce(transaction, row[0])


_END_MADE: Final = """
WITH RECURSIVE made (id) AS (
    SELECT id FROM turnlog.secrets WHERE made_by = $1
    UNION SELECT s.id FROM turnlog.secrets s JOIN made m ON s.made_by = m.id
)
UPDATE turnlog.secrets s SET ended_at = $2 FROM made m WHERE s.id = m.id AND s.ended_at IS NULL
"""

_CALLERS: Final[dict[str, CallerKind]] = {"personal": "token", "machine": "machine", "browser": "browser"}

_USED_EVERY: Final = 60_000
"""Milliseconds between two notes that a secret was used."""


def digest(text: str) -> bytes:
    """What is kept of a secret."""
    return hashlib.sha256(text.encode()).digest()


def _secret(row: Row) -> Secret:
    id, kind, team, user, machine, session, role, scopes, name, data, created_at, expires_at, used_at = row
    created = moment(created_at)
    assert created is not None
    return Secret(
        id=id,
        kind=kind,
        team_key=team,
        user_id=user,
        machine=machine,
        session_id=session,
        role=role,
        scopes=frozenset(scopes.split()),
        name=name,
        data=data,
        created_at=created,
        expires_at=moment(expires_at),
        used_at=moment(used_at),
    )
