"""Who may read a session, besides its owner, who decides it."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Request
from pydantic import Field, model_validator
from starlette.exceptions import HTTPException
from starlette.responses import Response

from turnlog.errors import NotFoundError
from turnlog.hub.bodies import NewLink
from turnlog.hub.callers import Caller
from turnlog.hub.people.sharing import SessionSharing
from turnlog.hub.readers import SharedSessions
from turnlog.hub.routes.base import JSON, Body, HubOf, HubState, PersonOf, UserOf, token_of
from turnlog.server.context import write
from turnlog.server.errors import InvalidParameterError
from turnlog.server.openapi import responds_with

router = APIRouter(default_response_class=Response, prefix="/hub/v1", tags=["sharing"])


class SharingBody(Body):
    """Who may read the session from now on. Links are made one by one."""

    visibility: Literal["private", "people", "team"]
    people: Annotated[frozenset[str], Field(max_length=1000)] = frozenset()
    """Ids of members; with the visibility `people`."""

    @model_validator(mode="after")
    def _names_people(self) -> SharingBody:
        if bool(self.people) != (self.visibility == "people"):
            raise ValueError("name people with the visibility people, and with no other")
        return self


class LinkBody(Body):
    """For how long a link works."""

    days: Annotated[int, Field(ge=1, le=365, strict=True)] | None = 7
    """Null: until it is revoked."""


@router.get("/shared", responses=responds_with(SharedSessions))
def list_shared(request: Request, hub: HubOf, caller: PersonOf) -> Response:
    """The sessions of the caller that others may read, and to whom new ones are shown."""
    team, user = caller.team_key, caller.user
    rules = hub.people.rulebook
    visibility = rules.rules(team).visibility
    is_shown = visibility == "team" and rules.has_agreed(team, user)
    return write(
        request,
        SharedSessions(items=hub.people.sharing.shared(team, user), new_sessions="team" if is_shown else "private"),
    )


@router.get("/sessions/{session_id}/sharing", responses=responds_with(SessionSharing))
def get_sharing(request: Request, hub: HubOf, caller: PersonOf, session_id: str) -> Response:
    """Whose the session is, and who may read it: the whole list for its owner, else the owner and the visibility."""
    found = _seen(hub, caller, session_id)
    if found.owner != caller.user:
        found = SessionSharing(
            owner=found.owner, machine=None, level=found.level, visibility=found.visibility, people=[], links=[]
        )
    return write(request, found)


@router.put("/sessions/{session_id}/sharing", responses=responds_with(SessionSharing), dependencies=JSON)
def share(request: Request, hub: HubOf, caller: UserOf, session_id: str, body: SharingBody) -> Response:
    """Decide who may read the session and its subagents; at once."""
    require_own(hub, caller, session_id)
    members = {each.user.id for each in hub.people.teams.members(caller.team_key)}
    if strangers := sorted(body.people - members):
        raise InvalidParameterError("people", f"nobody in the team has the id {strangers[0]}")
    hub.people.sharing.share(caller.team_key, session_id, body.visibility, body.people)
    hub.note(caller, "share", session_id, owner=caller.user, detail=" ".join([body.visibility, *sorted(body.people)]))
    return write(request, hub.people.sharing.sharing(caller.team_key, session_id))


@router.post("/sessions/{session_id}/links", responses=responds_with(NewLink), dependencies=JSON)
def make_link(request: Request, hub: HubOf, caller: UserOf, session_id: str, body: LinkBody) -> Response:
    """A link with which anybody reads the session and its subagents, without signing in."""
    require_own(hub, caller, session_id)
    seconds = None if body.days is None else body.days * 24 * 3600.0
    code, link = hub.people.sharing.make_link(
        caller.team_key, session_id, caller.user, seconds, made_by=token_of(caller)
    )
    hub.note(caller, "make link", session_id, owner=caller.user, detail=link.id)
    response = write(request, NewLink(hub.address(request, f"/shared#code={code}"), link.id, link.expires_at))
    response.headers["Cache-Control"] = "no-store"
    return response


@router.delete("/sessions/{session_id}/links/{link_id}", status_code=204, responses=responds_with(None))
def end_link(hub: HubOf, caller: UserOf, session_id: str, link_id: str) -> Response:
    """Revoke a link, at once."""
    require_own(hub, caller, session_id)
    if not hub.people.sharing.end_link(caller.team_key, session_id, link_id):
        raise HTTPException(404, "there is no such link")
    hub.note(caller, "take link back", session_id, owner=caller.user, detail=link_id)
    return Response(status_code=204)


def _seen(hub: HubState, caller: Caller, session_id: str) -> SessionSharing:
    """Who may read a session that the caller may read. Raises NotFoundError for any other."""
    if not hub.people.sharing.may_read(caller.team_key, caller.user, session_id):
        raise NotFoundError(f"there is no session {session_id}")
    return hub.people.sharing.sharing(caller.team_key, session_id)


def require_own(hub: HubState, caller: Caller, session_id: str) -> None:
    """Raise a 404 for a session that the caller does not see, a 403 for one that is another's."""
    if _seen(hub, caller, session_id).owner != caller.user:
        raise HTTPException(403, "only its owner shares or deletes a session")
    if "push" not in caller.scopes:
        raise HTTPException(403, "you may not change sessions here")
