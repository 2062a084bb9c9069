"""All subjects of a hub's people over one database."""

from __future__ import annotations

from collections.abc import Collection

from turnlog.hub.callers import Caller, Role
from turnlog.hub.people.audit import Audit
from turnlog.hub.people.budgets import TeamBudgets
from turnlog.hub.people.figures import Figures
from turnlog.hub.people.machines import Machines
from turnlog.hub.people.rules import Rulebook
from turnlog.hub.people.secrets import ALLOWED, Secrets
from turnlog.hub.people.sharing import Sharing
from turnlog.hub.people.teams import Identity, Teams, User
from turnlog.hub.people.trash import Trash
from turnlog.store.postgres.database import Database

PROXY: str = "proxy"
"""The provider of identities that a proxy names."""


class People:
    """Who is there, what they may do, and what they did."""

    def __init__(self, database: Database) -> None:
        """Use the connections of this database."""
        self.secrets = Secrets(database)
        self.teams = Teams(database, self.secrets)
        self.machines = Machines(database, self.secrets)
        self.sharing = Sharing(database, self.secrets)
        self.audit = Audit(database)
        self.figures = Figures(database)
        self.budgets = TeamBudgets(database, self.figures)
        self.rulebook = Rulebook(database)
        self.trash = Trash(database)

    def known_by_proxy(self, name: str, joins: Role | None) -> Caller | None:
        """The caller that a trusted proxy names, in the first of their teams."""
        user = self.known(Identity(provider=PROXY, subject=name, name=name), joins)
        return None if user is None else self.caller(user)

    def known(self, identity: Identity, joins: Role | None) -> User | None:
        """The person whom somebody trusted knows so; with `joins` somebody new becomes a member of the first team."""
        user = self.teams.known_by(identity)
        if user is None and joins is not None:
            user = self.teams.join(identity, joins)
        return user

    def caller(self, user: User, team: int | None = None) -> Caller | None:
        """A person in a team, or in their first one; None if they are in none."""
        teams = self.teams.teams_of(user.id)
        found = next((each for each in teams if team is None or each[0].id == str(team)), None)
        if found is None:
            return None
        scopes = frozenset(ALLOWED[found[1]])
        return Caller(team=found[0].id, user=user.id, role=found[1], scopes=scopes, kind="browser")

    def without_access(self, team: int, callers: Collection[Caller]) -> set[Caller]:
        """Those of these callers of a team who have left it, or whose token, browser or link has ended."""
        valid = self.secrets.valid([each.secret for each in callers if each.secret is not None])
        members = self.teams.names(team, left=False)
        return {
            each
            for each in callers
            if (each.secret is not None and each.secret not in valid) or (not each.is_link and each.user not in members)
        }
