"""What the hub answers about people, besides what `hub.people` answers itself."""

from __future__ import annotations

from datetime import datetime

import msgspec

from turnlog.hub.callers import Role, Scope
from turnlog.hub.people.audit import AuditEntry
from turnlog.hub.people.machines import Machine
from turnlog.hub.people.rules import Rules
from turnlog.hub.people.secrets import Kind, Secret
from turnlog.hub.people.sharing import Pusher
from turnlog.hub.people.teams import Member, Team, User
from turnlog.hub.people.trash import TrashedSession


class TeamRole(msgspec.Struct, frozen=True):
    """A team that the caller is in, and as what."""

    team: Team
    role: Role


class Me(msgspec.Struct, frozen=True, kw_only=True):
    """Who makes the request."""

    user: User | None
    """None for whoever reads with a link."""
    team: Team
    role: Role
    scopes: list[Scope]
    machine: str | None
    """Id of the machine that asks."""
    teams: list[TeamRole]
    session: str | None = None
    """The session that a link shows."""
    machine_name: str | None = None


class SignInChoices(msgspec.Struct, frozen=True):
    """How somebody can sign in."""

    openid: str | None
    """The provider's name; None if there is none."""


class Members(msgspec.Struct, frozen=True):
    """Who is in the team."""

    items: list[Member]


class Pushers(msgspec.Struct, frozen=True):
    """People of whom the caller sees sessions."""

    items: list[Pusher]


class TrashedSessions(msgspec.Struct, frozen=True):
    """What somebody has in the trash."""

    items: list[TrashedSession]


class TeamRules(msgspec.Struct, frozen=True):
    """The rules of the team."""

    rules: Rules
    agreed: bool
    """Whether the caller has agreed to the visibility of new sessions; without that, theirs are private."""


class TokenItem(msgspec.Struct, frozen=True, kw_only=True):
    """A token, an invitation or a browser, without its secret."""

    id: str
    kind: Kind
    user: str | None
    name: str
    scopes: list[str]
    role: Role | None
    machine: str | None
    created_at: datetime
    expires_at: datetime | None
    used_at: datetime | None

    @classmethod
    def of(cls, secret: Secret) -> TokenItem:
        """What is shown of a secret."""
        return cls(
            id=secret.id,
            kind=secret.kind,
            user=secret.user_id,
            name=secret.name,
            scopes=sorted(secret.scopes),
            role=secret.role,
            machine=secret.machine,
            created_at=secret.created_at,
            expires_at=secret.expires_at,
            used_at=secret.used_at,
        )


class Tokens(msgspec.Struct, frozen=True):
    """Tokens, invitations or browsers."""

    items: list[TokenItem]


class NewToken(msgspec.Struct, frozen=True):
    """A token, shown this once."""

    token: str
    item: TokenItem


class NewLink(msgspec.Struct, frozen=True):
    """A link with a secret, shown this once."""

    address: str
    id: str
    expires_at: datetime | None


class MachineList(msgspec.Struct, frozen=True):
    """Machines."""

    items: list[Machine]


class OpenedLink(msgspec.Struct, frozen=True):
    """The session that a link shows."""

    session: str


class AuditPage(msgspec.Struct, frozen=True):
    """Entries of the audit log, and the names of what is in them.

    These are people, machines, tokens, invitations, and sessions that the caller may read: their titles, or else ids.
    """

    items: list[AuditEntry]
    names: dict[str, str]
    """Id -> name."""
