"""Machines, and how one joins: it shows a code, and its person says yes to that code in a browser (RFC 8628)."""

from __future__ import annotations

import secrets
from datetime import datetime
from itertools import count
from typing import Final, Literal, TypeAlias

import msgspec

from turnlog.hub.people.secrets import PREFIXES, Secrets, digest
from turnlog.hub.people.tables import HubTransaction, Row, Tables, announce, moment, now
from turnlog.store.feed.progress import FEED
from turnlog.store.postgres.database import Database

CODE_SECONDS: Final = 900
POLL_SECONDS: Final = 2

_LETTERS: Final = "BCDFGHJKLMNPQRSTVWXZ"
"""Of codes that people read and type: no vowel, so no word; no letter that looks like a number."""

_CODE_LENGTH: Final = 8

Refusal: TypeAlias = Literal["authorization_pending", "slow_down", "expired_token", "access_denied"]


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """A machine that pushes sessions."""

    id: str
    user: str
    name: str
    platform: str
    created_at: datetime
    seen_at: datetime | None


LONGEST_NAME: Final = 200


class DeviceCode(msgspec.Struct, frozen=True):
    """The answer to a machine that wants to join."""

    device_code: str
    user_code: str
    verification_uri: str
    interval: int
    expires_in: int


class Enrolment(msgspec.Struct, frozen=True):
    """A machine that wants to join."""

    machine: str
    platform: str


class Joined(msgspec.Struct, frozen=True):
    """The answer to a machine that has joined."""

    access_token: str
    team: str
    user: str
    machine: str
    user_name: str
    machine_name: str


class _PendingEnrolment(msgspec.Struct):
    """What is kept of a machine that wants to join."""

    machine: str
    platform: str
    code: str
    denied: bool = False


class Machines(Tables):
    """The table of machines."""

    def __init__(self, database: Database, secrets: Secrets) -> None:
        """Use the connections of this database, and these secrets."""
        super().__init__(database)
        self._secrets = secrets

    def all_of(self, team: int, *, user: str | None = None) -> list[Machine]:
        """The machines of a team, of one person or of all, by name."""
        with self._transaction() as transaction:
            rows = transaction.rows(
                "SELECT id, user_id, name, platform, created_at, seen_at FROM turnlog.machines"
                " WHERE team_key = $1 AND ended_at IS NULL AND ($2::text IS NULL OR user_id = $2) ORDER BY name, id",
                *(team, user),
            )
        return [_machine(row) for row in rows]

    def names(self, team: int) -> dict[str, str]:
        """Id -> name of the machines of a team, also of those that were ended."""
        with self._transaction() as transaction:
            rows = transaction.rows("SELECT id, name FROM turnlog.machines WHERE team_key = $1", team)
        return {row[0]: row[1] for row in rows}

    def name(self, team: int, id: str) -> str | None:
        """The name of a machine."""
        with self._transaction() as transaction:
            row = transaction.row("SELECT name FROM turnlog.machines WHERE team_key = $1 AND id = $2", team, id)
        return None if row is None else row[0]

    def end(self, team: int, id: str, *, user: str | None = None) -> bool:
        """Make a machine's tokens invalid; False if there is none of this id, or not of this person.

        How far its stores were taken is forgotten: if it joins again, it begins again.
        """
        with self._transaction() as transaction:
            ended = transaction.run(
                "UPDATE turnlog.machines SET ended_at = $3 WHERE team_key = $1 AND id = $2 AND ended_at IS NULL"
                " AND ($4::text IS NULL OR user_id = $4)",
                *(team, id, now(), user),
            )
            if ended:
                transaction.run(
                    "UPDATE turnlog.secrets SET ended_at = $3 WHERE team_key = $1 AND machine = $2"
                    " AND ended_at IS NULL",
                    *(team, id, now()),
                )
                transaction.run(
                    "DELETE FROM turnlog.settings WHERE team_key = $1 AND starts_with(name, $2)"
                    " AND right(value, length($3)) = $3",
                    *(team, FEED, f', "{id}"]'),
                )
                announce(transaction, team)
        return bool(ended)

    # -- joining

    def ask(self, machine: str, platform: str, page: str) -> DeviceCode:
        """Begin to join. `page` is the address where a person types the code."""
        code = "".join(secrets.choice(_LETTERS) for _ in range(_CODE_LENGTH))
        enrolment = _PendingEnrolment(machine, platform, code)
        # The code, which a person types, finds the row, as its secret does; it is worth nothing but a question.
        text, _ = self._secrets.make("device", data=msgspec.json.encode(enrolment).decode(), seconds=CODE_SECONDS)
        with self._transaction() as transaction:
            transaction.run("UPDATE turnlog.secrets SET name = $2 WHERE hash = $1", digest(text), digest(code).hex())
        shown = f"{code[:4]}-{code[4:]}"
        return DeviceCode(text, shown, page, POLL_SECONDS, CODE_SECONDS)

    def enrolment(self, code: str) -> Enrolment | None:
        """Which machine shows this code; None if none does."""
        with self._transaction() as transaction:
            row = transaction.row(f"SELECT s.data {_FROM_CODE}", _name(code), now())
        if row is None:
            return None
        found = msgspec.json.decode(row[0], type=_PendingEnrolment)
        return Enrolment(found.machine, found.platform)

    def answer(self, code: str, team: int, user: str, *, allow: bool) -> Enrolment | None:
        """Say yes or no to a code, once; None if no machine shows it."""
        with self._transaction() as transaction:
            row = transaction.row(f"SELECT s.id, s.data {_FROM_CODE} FOR UPDATE", _name(code), now())
            if row is None:
                return None
            enrolment = msgspec.json.decode(row[1], type=_PendingEnrolment)
            enrolment.denied = not allow
            transaction.run(
                "UPDATE turnlog.secrets SET team_key = $2, user_id = $3, data = $4, name = '' WHERE id = $1",
                *(row[0], team if allow else None, user if allow else None, msgspec.json.encode(enrolment).decode()),
            )
        return Enrolment(enrolment.machine, enrolment.platform)

    def poll(self, device_code: str) -> Joined | Refusal:
        """The token of a machine to which somebody said yes, once; or why there is none."""
        at = now()
        with self._transaction() as transaction:
            row = transaction.row(
                "SELECT id, team_key, user_id, data, expires_at, used_at FROM turnlog.secrets"
                " WHERE hash = $1 AND kind = 'device' AND ended_at IS NULL FOR UPDATE",
                digest(device_code),
            )
            if row is None:
                return "expired_token"
            id, team, user, data, expires_at, used_at = row
            enrolment = msgspec.json.decode(data, type=_PendingEnrolment)
            if expires_at <= at:
                return "expired_token"
            if enrolment.denied:
                transaction.run("UPDATE turnlog.secrets SET ended_at = $2 WHERE id = $1", id, at)
                return "access_denied"
            if team is None:
                transaction.run("UPDATE turnlog.secrets SET used_at = $2 WHERE id = $1", id, at)
                too_soon = used_at is not None and at - used_at < POLL_SECONDS * 500
                return "slow_down" if too_soon else "authorization_pending"
            transaction.run("UPDATE turnlog.secrets SET ended_at = $2 WHERE id = $1", id, at)
            machine = f"m-{secrets.token_hex(8)}"
            person = transaction.row("SELECT name FROM turnlog.users WHERE id = $1 FOR UPDATE", user)
            called = _free_name(transaction, team, user, enrolment.machine)
            transaction.run(
                "INSERT INTO turnlog.machines (team_key, id, user_id, name, platform, created_at)"
                " VALUES ($1, $2, $3, $4, $5, $6)",
                *(team, machine, user, called, enrolment.platform, at),
            )
            token, _ = self._secrets.make(
                "machine",
                team=team,
                user=user,
                machine=machine,
                scopes=("push", "read"),
                name=called,
                within=transaction,
            )
        return Joined(token, str(team), user, machine, person[0] if person else user, called)


def _free_name(transaction: HubTransaction, team: int, user: str, name: str) -> str:
    """The name, with a number if another machine of this person has it: by names, people tell sessions apart."""
    rows = transaction.rows(
        "SELECT name FROM turnlog.machines WHERE team_key = $1 AND user_id = $2 AND ended_at IS NULL", team, user
    )
    taken = {row[0] for row in rows}
    names = (f"{name[: LONGEST_NAME - len(ending)]}{ending}" for ending in (f" ({number})" for number in count(2)))
    return name if name not in taken else next(each for each in names if each not in taken)


_FROM_CODE: Final = (
    "FROM turnlog.secrets s WHERE s.kind = 'device' AND s.name = $1 AND s.ended_at IS NULL AND s.expires_at > $2"
)


def _name(code: str) -> str:
    """What is kept of a code, however it was typed."""
    letters = "".join(letter for letter in code.upper() if letter.isalpha())
    return digest(letters).hex()


def is_secret(text: str) -> bool:
    """Whether a text looks like one of the hub's secrets."""
    return text.startswith(tuple(PREFIXES.values()))


def _machine(row: Row) -> Machine:
    created = moment(row[4])
    assert created is not None
    return Machine(id=row[0], user=row[1], name=row[2], platform=row[3], created_at=created, seen_at=moment(row[5]))
