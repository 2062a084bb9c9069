"""Users, teams and who is what in them."""

from __future__ import annotations

import secrets
from datetime import datetime
from typing import Final

import msgspec

from turnlog.errors import ConflictError, NotFoundError, TurnlogError
from turnlog.hub.callers import ROLES, Role
from turnlog.hub.people.audit import HUB, note_in
from turnlog.hub.people.secrets import Secret, Secrets
from turnlog.hub.people.tables import HubTransaction, Row, Tables, announce, moment, now
from turnlog.plain_text import one_line
from turnlog.store.postgres.database import Database

INVITATION_SECONDS: Final = 7 * 24 * 3600

FIRST_TEAM: Final = 1


class NotAllowedError(TurnlogError):
    """The caller's role does not allow this."""


class User(msgspec.Struct, frozen=True):
    """A person."""

    id: str
    name: str
    email: str | None


class Team(msgspec.Struct, frozen=True):
    """A team."""

    id: str
    name: str
    smallest_group: int
    """Rows of team figures that are made of fewer people are added up into one."""


class Member(msgspec.Struct, frozen=True):
    """A person in a team."""

    user: User
    role: Role
    joined_at: datetime


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """A person as somebody else knows them."""

    provider: str
    subject: str
    name: str
    email: str | None = None


class Teams(Tables):
    """The tables of users, identities, teams and members."""

    def __init__(self, database: Database, secrets: Secrets) -> None:
        """Use the connections of this database, and these secrets."""
        super().__init__(database)
        self._secrets = secrets

    # -- people

    def user(self, id: str) -> User:
        """A person. Raises NotFoundError."""
        with self._transaction() as transaction:
            row = transaction.row("SELECT id, name, email FROM turnlog.users WHERE id = $1", id)
        if row is None:
            raise NotFoundError("there is no such person")
        return User(*row)

    def called(self, person: str) -> list[User]:
        """The person with this id, or the people with this name or address of mail: anybody may choose such a name."""
        with self._transaction() as transaction:
            rows = transaction.rows(
                "SELECT id, name, email FROM turnlog.users WHERE id = $1 OR name = $1 OR email = $1 ORDER BY id", person
            )
        found = [User(*row) for row in rows]
        return [user for user in found if user.id == person] or found

    def known_by(self, identity: Identity) -> User | None:
        """The person whom a provider knows by this subject, with the name that it gives now."""
        with self._transaction() as transaction:
            row = transaction.row(
                "UPDATE turnlog.users u SET name = $3, email = $4 FROM turnlog.identities i"
                " WHERE i.provider = $1 AND i.subject = $2 AND u.id = i.user_id RETURNING u.id, u.name, u.email",
                *(identity.provider, identity.subject, _plain_name(identity.name), _plain_email(identity)),
            )
        return None if row is None else User(*row)

    def link_identity(self, user: str, identity: Identity) -> None:
        """Let a person sign in as a provider knows them. Raises ConflictError if that is somebody else."""
        with self._transaction() as transaction:
            _link(transaction, user, identity)

    # -- teams

    def has_owner(self) -> bool:
        """Whether somebody owns the first team."""
        with self._transaction() as transaction:
            return _owners(transaction, FIRST_TEAM) > 0

    def team(self, key: int) -> Team:
        """A team. Raises NotFoundError."""
        with self._transaction() as transaction:
            row = transaction.row(
                "SELECT team_key::text, name, smallest_group FROM turnlog.teams WHERE team_key = $1", key
            )
        if row is None:
            raise NotFoundError("there is no such team")
        return _team(row)

    def teams_of(self, user: str) -> list[tuple[Team, Role]]:
        """The teams that a person is in, and as what."""
        with self._transaction() as transaction:
            rows = transaction.rows(
                "SELECT t.team_key::text, t.name, t.smallest_group, m.role FROM turnlog.members m"
                " JOIN turnlog.teams t ON t.team_key = m.team_key"
                " WHERE m.user_id = $1 AND m.left_at IS NULL ORDER BY t.team_key",
                user,
            )
        return [(_team(row[:3]), row[3]) for row in rows]

    def begin(self, name: str, owner: str) -> Team:
        """A new team with its first owner."""
        with self._transaction() as transaction:
            transaction.run("LOCK TABLE turnlog.teams IN SHARE ROW EXCLUSIVE MODE")
            row = transaction.row("SELECT max(team_key) + 1 FROM turnlog.teams")
            assert row is not None
            transaction.row("SELECT turnlog.begin_team($1::int)", row[0])
            transaction.run("UPDATE turnlog.teams SET name = $2 WHERE team_key = $1", row[0], name)
            _join(transaction, row[0], owner, "owner")
        return self.team(row[0])

    def change(self, key: int, *, name: str | None = None, smallest_group: int | None = None) -> Team:
        """Rename a team, or change the size from which groups are shown. What is None stays."""
        with self._transaction() as transaction:
            transaction.run(
                "UPDATE turnlog.teams SET name = coalesce($2, name), smallest_group = coalesce($3::int, smallest_group)"
                " WHERE team_key = $1",
                *(key, name, smallest_group),
            )
        return self.team(key)

    # -- members

    def members(self, team: int) -> list[Member]:
        """Who is in a team, by name."""
        with self._transaction() as transaction:
            rows = transaction.rows(
                "SELECT u.id, u.name, u.email, m.role, m.joined_at FROM turnlog.members m"
                " JOIN turnlog.users u ON u.id = m.user_id WHERE m.team_key = $1 AND m.left_at IS NULL"
                " ORDER BY lower(u.name), u.id",
                team,
            )
        return [_member(row) for row in rows]

    def names(self, team: int, *, left: bool = True) -> dict[str, str]:
        """Id -> name of everybody who is in a team, and of who was if `left`."""
        with self._transaction() as transaction:
            rows = transaction.rows(
                "SELECT u.id, u.name FROM turnlog.members m JOIN turnlog.users u ON u.id = m.user_id"
                " WHERE m.team_key = $1 AND ($2 <> 0 OR m.left_at IS NULL)",
                *(team, int(left)),
            )
        return {row[0]: row[1] for row in rows}

    def role_of(self, team: int, user: str) -> Role | None:
        """What a person is in a team; None for nobody of it."""
        with self._transaction() as transaction:
            return _role(transaction, team, user)

    def change_role(self, team: int, user: str, role: Role, by: Role) -> Member:
        """Make a member something else.

        Raises NotFoundError, NotAllowedError for a role above one's own, ConflictError for the last owner.
        """
        with self._transaction() as transaction:
            known = _locked_role(transaction, team, user)
            _refuse_above(by, known, role)
            if known == "owner" and role != "owner":
                _refuse_last_owner(transaction, team)
            transaction.run(
                "UPDATE turnlog.members SET role = $3 WHERE team_key = $1 AND user_id = $2", team, user, role
            )
        return next(each for each in self.members(team) if each.user.id == user)

    def remove(self, team: int, user: str, by: Role) -> None:
        """End a membership, with all tokens and machines; what was shown to the person is not any more.

        Raises NotFoundError, NotAllowedError for a role above one's own, ConflictError for the last owner.
        """
        with self._transaction() as transaction:
            known = _locked_role(transaction, team, user)
            _refuse_above(by, known, known)
            if known == "owner":
                _refuse_last_owner(transaction, team)
            at = now()
            transaction.run(
                "UPDATE turnlog.members SET left_at = $3 WHERE team_key = $1 AND user_id = $2", team, user, at
            )
            transaction.run(
                "UPDATE turnlog.secrets SET ended_at = $3 WHERE team_key = $1 AND user_id = $2 AND ended_at IS NULL",
                *(team, user, at),
            )
            transaction.run(
                "UPDATE turnlog.machines SET ended_at = $3 WHERE team_key = $1 AND user_id = $2 AND ended_at IS NULL",
                *(team, user, at),
            )
            transaction.run("DELETE FROM turnlog.session_readers WHERE team_key = $1 AND reader = $2", team, user)
            announce(transaction, team)

    def take_back(self, user: str, role: Role) -> int | None:
        """Make a person who was removed a member again, in the team that they left last; None if they left none.

        What is theirs is theirs again. Tokens, machines and browsers that ended with the membership stay ended.
        """
        with self._transaction() as transaction:
            row = transaction.row(
                "SELECT team_key FROM turnlog.members WHERE user_id = $1 AND left_at IS NOT NULL"
                " ORDER BY left_at DESC, team_key LIMIT 1",
                user,
            )
            if row is not None:
                _join(transaction, row[0], user, role)
                note_in(transaction, row[0], HUB, "join", user, detail=role)
        return None if row is None else row[0]

    def wake_listeners(self) -> None:
        """Wake whoever follows teams, in all processes."""
        with self._transaction() as transaction:
            announce(transaction, 0)

    # -- invitations

    def invite(
        self, team: int, role: Role, by: str, by_role: Role, note: str, *, made_by: str | None = None
    ) -> tuple[str, Secret]:
        """A secret that makes one person a member; `made_by` as for `Secrets.make`.

        Raises NotAllowedError for a role above one's own.
        """
        _refuse_above(by_role, role, role)
        return self._secrets.make(
            "invitation", team=team, user=by, role=role, name=note, seconds=INVITATION_SECONDS, made_by=made_by
        )

    def invite_first(self, seconds: float) -> str:
        """A secret that makes one person the owner of the first team."""
        text, _ = self._secrets.make("invitation", team=FIRST_TEAM, role="owner", seconds=seconds)
        return text

    def accept(self, secret: str, name: str, identity: Identity | None = None, user: str | None = None) -> User | None:
        """Make a person a member by an invitation, which ends with that; None if it is not valid.

        The person is `user`, else the one whom `identity` names, else a new one with this name.
        """
        with self._transaction() as transaction:
            invitation = self._secrets.use(secret, "invitation", transaction)
            if invitation is None or invitation.team_key is None or invitation.role is None:
                return None
            if invitation.user_id is not None and not _may_invite(transaction, invitation):
                return None
            found = user or _made(transaction, name, identity)
            if identity is not None:
                _link(transaction, found, identity)
            _join(transaction, invitation.team_key, found, invitation.role)
        return self.user(found)

    def join(self, identity: Identity, role: Role, team: int = FIRST_TEAM) -> User:
        """Make somebody new a member, or somebody who is known."""
        with self._transaction() as transaction:
            found = _made(transaction, identity.name, identity)
            _link(transaction, found, identity)
            _join(transaction, team, found, role)
        return self.user(found)


def _may_invite(transaction: HubTransaction, invitation: Secret) -> bool:
    """Whether who has invited is still in the team, and may still make somebody this."""
    assert invitation.team_key is not None
    assert invitation.user_id is not None
    assert invitation.role is not None
    by = _role(transaction, invitation.team_key, invitation.user_id)
    return by in ("owner", "admin") and ROLES.index(by) <= ROLES.index(invitation.role)


def _made(transaction: HubTransaction, name: str, identity: Identity | None) -> str:
    if identity is not None:
        row = transaction.row(
            "SELECT user_id FROM turnlog.identities WHERE provider = $1 AND subject = $2",
            *(identity.provider, identity.subject),
        )
        if row is not None:
            return row[0]
    id = f"u-{secrets.token_hex(8)}"
    transaction.run(
        "INSERT INTO turnlog.users (id, name, email, created_at) VALUES ($1, $2, $3, $4)",
        *(id, _plain_name(name), _plain_email(identity), now()),
    )
    return id


def _plain_name(name: str) -> str:
    """The name as a line of text: a provider, or a proxy, says what it likes."""
    return one_line(name, 200) or "?"


def _plain_email(identity: Identity | None) -> str | None:
    return None if identity is None or identity.email is None else one_line(identity.email, 320)


def _link(transaction: HubTransaction, user: str, identity: Identity) -> None:
    transaction.run(
        "INSERT INTO turnlog.identities (provider, subject, user_id) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
        *(identity.provider, identity.subject, user),
    )
    row = transaction.row(
        "SELECT user_id FROM turnlog.identities WHERE provider = $1 AND subject = $2",
        *(identity.provider, identity.subject),
    )
    if row is None or row[0] != user:
        raise ConflictError("somebody else signs in with this account")


def _join(transaction: HubTransaction, team: int, user: str, role: Role) -> None:
    """Make a person a member, or give back a membership that ended; who is one already keeps the higher role."""
    known = _role(transaction, team, user)
    if known is not None and ROLES.index(known) <= ROLES.index(role):
        return
    transaction.run(
        "INSERT INTO turnlog.members (team_key, user_id, role, joined_at) VALUES ($1, $2, $3, $4)"
        " ON CONFLICT (team_key, user_id) DO UPDATE SET role = excluded.role, left_at = NULL",
        *(team, user, role, now()),
    )


def _role(transaction: HubTransaction, team: int, user: str) -> Role | None:
    row = transaction.row(
        "SELECT role FROM turnlog.members WHERE team_key = $1 AND user_id = $2 AND left_at IS NULL", team, user
    )
    return None if row is None else row[0]


def _locked_role(transaction: HubTransaction, team: int, user: str) -> Role:
    # All owners are locked, so that two who leave at once are not both taken for one of two.
    transaction.rows(
        "SELECT user_id FROM turnlog.members WHERE team_key = $1 AND left_at IS NULL AND (role = 'owner'"
        " OR user_id = $2) ORDER BY user_id FOR UPDATE",
        *(team, user),
    )
    role = _role(transaction, team, user)
    if role is None:
        raise NotFoundError("nobody of this team has this id")
    return role


def _owners(transaction: HubTransaction, team: int) -> int:
    row = transaction.row(
        "SELECT count(*) FROM turnlog.members WHERE team_key = $1 AND role = 'owner' AND left_at IS NULL", team
    )
    return 0 if row is None else row[0]


def _refuse_last_owner(transaction: HubTransaction, team: int) -> None:
    if _owners(transaction, team) == 1:
        raise ConflictError("the last owner stays: make somebody else an owner first")


def _refuse_above(by: Role, *roles: Role) -> None:
    """Only owners change owners and make them."""
    if any(ROLES.index(role) < ROLES.index(by) for role in roles):
        raise NotAllowedError("only an owner makes owners, and changes them")


def _team(row: Row) -> Team:
    return Team(*row)


def _member(row: Row) -> Member:
    joined = moment(row[4])
    assert joined is not None
    return Member(User(*row[:3]), row[3], joined)
