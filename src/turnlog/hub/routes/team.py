"""The team, its members, and invitations."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Request
from pydantic import Field
from starlette.exceptions import HTTPException
from starlette.responses import Response

from turnlog.hub.bodies import Members, NewLink, Pushers, TokenItem, Tokens
from turnlog.hub.callers import Role
from turnlog.hub.people.teams import FIRST_TEAM, Member, Team
from turnlog.hub.routes.base import (
    JSON,
    AdminOf,
    Body,
    CallerOf,
    HubOf,
    Label,
    Name,
    PersonOf,
    UserOf,
    refuse_more,
    token_of,
)
from turnlog.server.context import write
from turnlog.server.openapi import responds_with

router = APIRouter(default_response_class=Response, prefix="/hub/v1", tags=["team"])


class TeamChange(Body):
    """What changes of the team; what is left out stays."""

    name: Name | None = None
    smallest_group: Annotated[int, Field(ge=1, le=1000, strict=True)] | None = None


class NewTeam(Body):
    """Another team."""

    name: Name


class RoleBody(Body):
    """What a member becomes."""

    role: Role


class NewInvitation(Body):
    """What the guest becomes, and for whom it is meant."""

    role: Role = "member"
    note: Label = ""


@router.get("/team", responses=responds_with(Team))
def get_team(request: Request, hub: HubOf, caller: PersonOf) -> Response:
    """The caller's team."""
    return write(request, hub.people.teams.team(caller.team_key))


@router.patch("/team", responses=responds_with(Team), dependencies=JSON)
def change_team(request: Request, hub: HubOf, caller: AdminOf, body: TeamChange) -> Response:
    """Rename the team, or change from how many people on groups are shown in its figures: that, only an owner may."""
    if body.smallest_group is not None and caller.role != "owner":
        raise HTTPException(403, "only an owner may change how small a group may be")
    changed = hub.people.teams.change(caller.team_key, name=body.name, smallest_group=body.smallest_group)
    hub.note(caller, "change team", caller.team, detail=body.model_dump_json(exclude_none=True))
    return write(request, changed)


@router.post("/teams", responses=responds_with(Team), dependencies=JSON)
def begin_team(request: Request, hub: HubOf, caller: UserOf, body: NewTeam) -> Response:
    """Begin another team, whose owner the caller is; only owners of the first team may."""
    if caller.role != "owner" or caller.team_key != FIRST_TEAM:
        raise HTTPException(403, "only an owner of the first team may begin another one")
    begun = hub.people.teams.begin(body.name, caller.user)
    hub.note(caller, "begin team", begun.id, detail=begun.name)
    return write(request, begun)


@router.get("/people", responses=responds_with(Pushers))
def list_people(request: Request, hub: HubOf, caller: CallerOf) -> Response:
    """Whose sessions the caller sees, with their machines: what lists can be narrowed down to."""
    return write(request, Pushers(hub.people.sharing.pushers(caller.team_key, caller.user)))


@router.get("/members", responses=responds_with(Members))
def list_members(request: Request, hub: HubOf, caller: PersonOf) -> Response:
    """Who is in the team."""
    return write(request, Members(hub.people.teams.members(caller.team_key)))


@router.patch("/members/{user_id}", responses=responds_with(Member), dependencies=JSON)
def change_role(request: Request, hub: HubOf, caller: AdminOf, user_id: str, body: RoleBody) -> Response:
    """Make a member something else. The last owner stays one."""
    refuse_more(caller, body.role)
    changed = hub.people.teams.change_role(caller.team_key, user_id, body.role, caller.role)
    hub.note(caller, "change role", user_id, detail=body.role)
    return write(request, changed)


@router.delete("/members/{user_id}", status_code=204, responses=responds_with(None))
def remove_member(hub: HubOf, caller: UserOf, user_id: str) -> Response:
    """End a membership at once: an admin that of others, everybody their own. The last owner stays."""
    if user_id != caller.user and "admin" not in caller.scopes:
        raise HTTPException(403, "this token does not allow to admin")
    hub.people.teams.remove(caller.team_key, user_id, "owner" if user_id == caller.user else caller.role)
    hub.note(caller, "remove member", user_id)
    return Response(status_code=204)


@router.get("/invitations", responses=responds_with(Tokens))
def list_invitations(request: Request, hub: HubOf, caller: AdminOf) -> Response:
    """The invitations that are open."""
    found = hub.people.secrets.all_of(caller.team_key, ["invitation"])
    return write(request, Tokens([TokenItem.of(each) for each in found]))


@router.post("/invitations", responses=responds_with(NewLink), dependencies=JSON)
def invite(request: Request, hub: HubOf, caller: AdminOf, body: NewInvitation) -> Response:
    """A link that makes one person a member, within a week."""
    refuse_more(caller, body.role)
    code, secret = hub.people.teams.invite(
        caller.team_key, body.role, caller.user, caller.role, body.note, made_by=token_of(caller)
    )
    hub.note(caller, "invite", secret.id, detail=body.role)
    response = write(request, NewLink(hub.address(request, f"/join#code={code}"), secret.id, secret.expires_at))
    response.headers["Cache-Control"] = "no-store"
    return response


@router.delete("/invitations/{invitation_id}", status_code=204, responses=responds_with(None))
def revoke_invitation(hub: HubOf, caller: AdminOf, invitation_id: str) -> Response:
    """Revoke an invitation."""
    found = {each.id for each in hub.people.secrets.all_of(caller.team_key, ["invitation"])}
    if invitation_id not in found or hub.people.secrets.end(caller.team_key, invitation_id) is None:
        raise HTTPException(404, "there is no such invitation")
    hub.note(caller, "take invitation back", invitation_id)
    return Response(status_code=204)
