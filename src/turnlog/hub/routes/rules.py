"""The rules of the team: what it takes, to whom new sessions are shown, and how long they are kept."""

from __future__ import annotations

from typing import Annotated

import msgspec
from fastapi import APIRouter, Query, Request
from pydantic import Field, StrictBool
from starlette.exceptions import HTTPException
from starlette.responses import Response

from turnlog.hub.bodies import TeamRules
from turnlog.hub.callers import Caller
from turnlog.hub.people.rules import HighestLevel, NewVisibility, Retention, changes_of
from turnlog.hub.routes.base import JSON, Body, HubOf, HubState, PersonOf, UserOf
from turnlog.server.context import write
from turnlog.server.openapi import responds_with
from turnlog.server.routes.parameters import QueryParameters

router = APIRouter(default_response_class=Response, prefix="/hub/v1/rules", tags=["team"])

Days = Annotated[int, Field(ge=1, le=36_500)]


class RulesBody(Body):
    """What changes of the rules; what is left out stays."""

    highest_level: HighestLevel | None = None
    visibility: NewVisibility | None = None
    retention_days: Annotated[Days, Field(strict=True)] | None = Field(
        None, description="Null: sessions are kept, however old they are."
    )


class AgreementBody(Body):
    """Whether new sessions of the caller may be shown as the rule says."""

    agrees: StrictBool


class RetentionQuery(QueryParameters):
    """A rule that might be."""

    days: Days


@router.get("", responses=responds_with(TeamRules))
def get_rules(request: Request, hub: HubOf, caller: PersonOf) -> Response:
    """The rules, and whether the caller has agreed to the visibility of new sessions."""
    return _answer(request, hub, caller)


@router.patch("", responses=responds_with(TeamRules), dependencies=JSON)
def change_rules(request: Request, hub: HubOf, caller: UserOf, body: RulesBody) -> Response:
    """Change rules; only an owner may. Sessions that are too old now are forgotten at once."""
    _require_owner(caller)
    given = body.model_dump(exclude_unset=True)
    hub.people.rulebook.change(
        caller.team_key,
        highest_level=body.highest_level,
        visibility=body.visibility,
        retention_days=body.retention_days if "retention_days" in given else msgspec.UNSET,
    )
    hub.note(caller, "change rules", caller.team, detail=changes_of(given))
    if body.retention_days is not None:
        hub.retention.wake()
    return _answer(request, hub, caller)


@router.get("/retention", responses=responds_with(Retention))
def plan_retention(request: Request, hub: HubOf, caller: UserOf, query: Annotated[RetentionQuery, Query()]) -> Response:
    """How much a rule of so many days would forget now, without forgetting it; only for owners."""
    _require_owner(caller)
    return write(request, hub.people.rulebook.outdated(caller.team_key, query.days))


@router.post("/agreement", responses=responds_with(TeamRules), dependencies=JSON)
def agree(request: Request, hub: HubOf, caller: UserOf, body: AgreementBody) -> Response:
    """Agree that new sessions of the caller are shown as the rule says, or do so no longer."""
    hub.people.rulebook.agree(caller.team_key, caller.user, agrees=body.agrees)
    hub.note(caller, "agree to rules" if body.agrees else "disagree with rules", caller.user, owner=caller.user)
    return _answer(request, hub, caller)


def _require_owner(caller: Caller) -> None:
    if caller.role != "owner" or "admin" not in caller.scopes:
        raise HTTPException(403, "only an owner makes the rules")


def _answer(request: Request, hub: HubState, caller: Caller) -> Response:
    rules = hub.people.rulebook.rules(caller.team_key)
    return write(request, TeamRules(rules, hub.people.rulebook.has_agreed(caller.team_key, caller.user)))
