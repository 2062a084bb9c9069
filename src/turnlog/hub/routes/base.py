"""What the hub's routes share: the hub, the caller, and bodies of requests."""

from __future__ import annotations

from math import ceil
from typing import Annotated, NamedTuple

from fastapi import Depends, Request
from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException

from turnlog.hub.access import CLIENT
from turnlog.hub.callers import Caller, Role, caller_of, require_scope
from turnlog.hub.openid import OpenId
from turnlog.hub.people.audit import TEAM
from turnlog.hub.people.registry import People
from turnlog.hub.people.secrets import ALLOWED
from turnlog.hub.rates import RequestRates
from turnlog.hub.retention import RetentionKeeper
from turnlog.hub.settings import HubSettings
from turnlog.plain_text import refuse_controls
from turnlog.server.routes.sessions import takes_json


class HubState(NamedTuple):
    """What an application of a hub is made of."""

    settings: HubSettings
    people: People
    failures: RequestRates
    """Wrong secrets, by address."""
    openid: OpenId | None
    retention: RetentionKeeper

    def address(self, request: Request, path: str) -> str:
        """Where a browser finds a page of the hub."""
        base = self.settings.url or str(request.base_url)
        return f"{base.rstrip('/')}{path}"

    def note(self, caller: Caller, action: str, subject: str, *, owner: str = TEAM, detail: str | None = None) -> None:
        """Note in the audit log what a caller did."""
        self.people.audit.note(caller.team_key, caller.user, action, subject, owner=owner, detail=detail)


async def _hub(request: Request) -> HubState:
    return request.app.state.hub


async def _caller(request: Request) -> Caller:
    return caller_of(request)


async def _person(request: Request) -> Caller:
    caller = caller_of(request)
    if caller.is_link:
        raise HTTPException(403, "this link shows one session, and nothing else")
    return caller


async def _admin(request: Request) -> Caller:
    return require_scope(request, "admin")


async def _browser_or_admin(request: Request) -> Caller:
    """A person, not a machine: a stolen machine must not make tokens."""
    caller = await _person(request)
    if caller.machine is not None:
        raise HTTPException(403, "a machine may not do this")
    return caller


def token_of(caller: Caller) -> str | None:
    """Id of the token that asks; None for a person in a browser. What is made with a token ends with it."""
    return caller.secret if caller.kind == "token" else None


def refuse_more(caller: Caller, role: Role) -> None:
    """Raise a 403 where a token would make an owner or admin, who stays when it ends, or give more than it allows."""
    if caller.kind != "browser" and role in ("owner", "admin"):
        raise HTTPException(403, "only a person who is signed in with a browser makes owners and admins")
    if not ALLOWED[role] <= caller.scopes:
        raise HTTPException(403, "a token may not give more than it allows itself")


HubOf = Annotated[HubState, Depends(_hub)]
CallerOf = Annotated[Caller, Depends(_caller)]
PersonOf = Annotated[Caller, Depends(_person)]
UserOf = Annotated[Caller, Depends(_browser_or_admin)]
AdminOf = Annotated[Caller, Depends(_admin)]

JSON = [Depends(takes_json)]

Label = Annotated[str, Field(max_length=200), AfterValidator(refuse_controls)]
"""What somebody writes about something, in a line; may be empty."""

Name = Annotated[Label, Field(min_length=1)]


class Body(BaseModel):
    """What a client sends."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def refuse_guesses(request: Request, hub: HubState) -> None:
    """Raise a 429 for an address that has tried too many wrong secrets; call it for each wrong one."""
    wait = hub.failures.take(request.scope[CLIENT])
    if wait:
        seconds = ceil(wait)
        raise HTTPException(429, f"too many wrong codes: wait {seconds} seconds", {"Retry-After": str(seconds)})
