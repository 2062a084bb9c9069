"""Budgets of the team, of projects and of people."""

from __future__ import annotations

from typing import Annotated, Self

from fastapi import APIRouter, Request
from pydantic import AfterValidator, Field, model_validator
from starlette.responses import Response

from turnlog.hub.budgets import Budgets, BudgetScope
from turnlog.hub.callers import Caller
from turnlog.hub.routes.base import JSON, AdminOf, Body, HubOf, HubState, PersonOf
from turnlog.plain_text import refuse_controls
from turnlog.server.context import write
from turnlog.server.openapi import responds_with

router = APIRouter(default_response_class=Response, prefix="/hub/v1/budgets", tags=["figures"])


class BudgetBody(Body):
    """A budget; one of the same scope and subject gets this limit."""

    scope: BudgetScope
    subject: Annotated[str, AfterValidator(refuse_controls)] | None = Field(
        None, max_length=4096, description="Path of the project, or id of the person; left out for the team."
    )
    limit: Annotated[float, Field(ge=0.01, le=1e9, strict=True)] = Field(description="US dollars a month.")

    @model_validator(mode="after")
    def _names_what_it_is_for(self) -> Self:
        if (self.scope == "team") is bool(self.subject):
            raise ValueError("a project or a person needs a subject, the team has none")
        return self


@router.get("", responses=responds_with(Budgets))
def get_budgets(request: Request, hub: HubOf, caller: PersonOf) -> Response:
    """Budgets with what the running month has cost: all for admins; those that concern them, for others."""
    return _answer(request, hub, caller)


@router.post("", responses=responds_with(Budgets), dependencies=JSON)
def set_budget(request: Request, hub: HubOf, caller: AdminOf, body: BudgetBody) -> Response:
    """Make a budget, or change its limit. `note` warns of a project of which the caller sees nothing."""
    made = hub.people.budgets.set(caller.team_key, body.scope, body.subject or "", body.limit)
    hub.note(caller, "set a budget", made, detail=body.model_dump_json())
    note = None
    if body.scope == "project":
        smallest = hub.people.teams.team(caller.team_key).smallest_group
        said = hub.people.budgets.unseen(caller.team_key, caller.user, smallest, body.subject or "")
        note = said and f"of what you see, {said}"
    return _answer(request, hub, caller, note)


@router.delete("/{budget_id}", status_code=204, responses=responds_with(None))
def drop_budget(hub: HubOf, caller: AdminOf, budget_id: str) -> Response:
    """Have no such budget any more."""
    hub.people.budgets.drop(caller.team_key, budget_id)
    hub.note(caller, "drop a budget", budget_id)
    return Response(status_code=204)


def _answer(request: Request, hub: HubState, caller: Caller, note: str | None = None) -> Response:
    team, people = caller.team_key, hub.people
    smallest = people.teams.team(team).smallest_group
    if "admin" in caller.scopes:
        found = people.budgets.for_admin(team, smallest)
    else:
        found = people.budgets.for_member(team, caller.user, smallest)
    return write(request, Budgets(found, note))
