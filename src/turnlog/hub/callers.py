"""Who makes a request of the hub, and what the request may do."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request

Role: TypeAlias = Literal["owner", "admin", "member", "viewer"]
"""What a person is in a team, from most to least. None of them opens the private sessions of others."""

ROLES: Final[tuple[Role, ...]] = ("owner", "admin", "member", "viewer")

Scope: TypeAlias = Literal["push", "read", "admin"]
"""What a token allows: to push sessions, to read, to change the team."""

SCOPES: Final[tuple[Scope, ...]] = ("push", "read", "admin")

Power: TypeAlias = Literal["push", "read", "admin", "browser"]
"""What somebody may do: scopes, and `browser` for a person who is signed in."""

CallerKind: TypeAlias = Literal["browser", "token", "machine", "link"]
"""How a caller is known. Who comes through a proxy, which says who it is, is a browser."""

CALLER: Final = "turnlog.caller"
"""Key of an ASGI scope, which the hub's middleware makes and no client: the `Caller`."""

LINK: Final = "link:"
"""Before the id of a link, where the caller is whoever has the link."""


class Caller(msgspec.Struct, frozen=True, kw_only=True):
    """A person, or a machine of a person, in one team."""

    team: str
    """Number of the team, in decimal digits."""
    user: str
    """Id of the person; `link:` and the id of a link for whoever reads with one."""
    role: Role
    machine: str | None = None
    """Id of the machine, for a token of one."""
    scopes: frozenset[str] = frozenset()
    kind: CallerKind = "token"
    secret: str | None = None
    """Id of the token, browser or link; None for who is named by a proxy."""

    @property
    def powers(self) -> frozenset[str]:
        """What the caller may do."""
        return self.scopes | {"browser"} if self.kind == "browser" else self.scopes

    @property
    def team_key(self) -> int:
        """The team in the tables."""
        return int(self.team)

    @property
    def is_link(self) -> bool:
        """Whether this is nobody of the team, but somebody with a link to one session."""
        return self.user.startswith(LINK)


def caller_of(request: Request) -> Caller:
    """The caller. Raises a 401 where nobody is known."""
    found: Caller | None = request.scope.get(CALLER)
    if found is None:
        raise HTTPException(401, "sign in, or send a token", {"WWW-Authenticate": "Bearer"})
    return found


def require_scope(request: Request, scope: Scope) -> Caller:
    """The caller, if its token allows this. Raises a 401 or a 403."""
    caller = caller_of(request)
    if scope not in caller.scopes:
        raise HTTPException(403, f"this token does not allow to {scope}")
    return caller
