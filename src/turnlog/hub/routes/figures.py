"""What the team used, and the audit log."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request
from pydantic import Field
from starlette.responses import Response

from turnlog.hub.bodies import AuditPage
from turnlog.hub.callers import Caller
from turnlog.hub.people.audit import TEAM
from turnlog.hub.people.figures import FiguresBy, TeamUsage, to_csv
from turnlog.hub.routes.base import AdminOf, HubOf, HubState, PersonOf
from turnlog.server.context import write
from turnlog.server.openapi import responds_with
from turnlog.server.routes.parameters import QueryParameters, UtcMoment

router = APIRouter(default_response_class=Response, prefix="/hub/v1", tags=["figures"])


class FiguresQuery(QueryParameters):
    """By what, and of which days."""

    by: FiguresBy = "project"
    since: UtcMoment | None = Field(None, description="From the day of this time on, in UTC.")
    until: UtcMoment | None = Field(None, description="Before this time; of a day that has begun, in UTC, all of it.")
    format: Literal["json", "csv"] = "json"


class AuditQuery(QueryParameters):
    """Which entries."""

    actor: str | None = Field(None, description="Id of who did it.")
    action: str | None = None
    subject: str | None = Field(None, description="Id of what it was done to, such as a session.")
    since: UtcMoment | None = None
    before: UtcMoment | None = Field(None, description="Only entries before this time.")
    limit: Annotated[int, Field(ge=1, le=500)] = 100


@router.get("/usage", responses=responds_with(TeamUsage, besides={"text/csv": {"schema": {"type": "string"}}}))
def get_usage(request: Request, hub: HubOf, caller: AdminOf, query: Annotated[FiguresQuery, Query()]) -> Response:
    """What the team used, also in private sessions: sums of groups that are large enough."""
    smallest = hub.people.teams.team(caller.team_key).smallest_group
    found = hub.people.figures.usage(caller.team_key, query.by, smallest, query.since, query.until)
    hub.note(caller, "team usage", query.by)
    if query.format == "csv":
        headers = {"Content-Disposition": f'attachment; filename="team-usage-by-{query.by}.csv"'}
        return Response(to_csv(found), headers=headers, media_type="text/csv")
    return write(request, found)


@router.get("/audit", responses=responds_with(AuditPage))
def get_own_audit(request: Request, hub: HubOf, caller: PersonOf, query: Annotated[AuditQuery, Query()]) -> Response:
    """Who read the caller's sessions, and what was done to what is theirs; the last first."""
    return _page(request, hub, caller, caller.user, query)


@router.get("/audit/team", responses=responds_with(AuditPage))
def get_team_audit(request: Request, hub: HubOf, caller: AdminOf, query: Annotated[AuditQuery, Query()]) -> Response:
    """What was done to the team; the last first. Who read whose sessions is not in it."""
    return _page(request, hub, caller, TEAM, query)


def _page(request: Request, hub: HubState, caller: Caller, owner: str, query: AuditQuery) -> Response:
    items = hub.people.audit.of_owner(caller.team_key, owner, **query.model_dump())
    ids = {id for item in items for id in (item.actor, item.subject, *(item.detail or "").split())}
    people = hub.people
    found = people.secrets.names(caller.team_key) | people.machines.names(caller.team_key)
    found |= people.teams.names(caller.team_key)
    names = {id: name for id, name in found.items() if id in ids and name}
    subjects = {item.subject for item in items if ":" in item.subject}
    return write(request, AuditPage(items, names | people.sharing.titles(caller.team_key, caller.user, subjects)))
