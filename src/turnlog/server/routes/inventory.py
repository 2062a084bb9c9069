"""`/api/projects`, `/api/agents`, `/api/models`, `/api/diagnostics`: what there is, and what could not be read."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from turnlog import agents
from turnlog.errors import TurnlogError
from turnlog.server.context import ContextOf, write
from turnlog.server.errors import judging
from turnlog.server.openapi import responds_with
from turnlog.server.parameters.inventory import DiagnosticQuery
from turnlog.server.responses import (
    AgentColour,
    AgentItem,
    AgentsResponse,
    DiagnosticPage,
    ModelsResponse,
    ProjectsResponse,
)
from turnlog.store.usage_report import AgentSummary

router = APIRouter(default_response_class=Response, tags=["inventory"])


@router.get("/projects", responses=responds_with(ProjectsResponse))
def list_projects(request: Request, context: ContextOf) -> Response:
    """All projects, the last used first."""
    return write(request, ProjectsResponse(items=context.store.projects()))


@router.get("/agents", responses=responds_with(AgentsResponse))
def list_agents(request: Request, context: ContextOf) -> Response:
    """All agents of which there is anything, by name."""
    return write(request, AgentsResponse(items=[_agent_item(found) for found in context.store.agents()]))


def _agent_item(stored: AgentSummary) -> AgentItem:
    """What the store holds of an agent, with the name and colour that the agent's description says."""
    try:
        agent = agents.agent(stored.agent)
    except TurnlogError:  # its package is not installed any more
        return AgentItem.of(stored, display_name=stored.agent, colour=None)
    colour = None if agent.colour is None else AgentColour.of(agent.colour)
    return AgentItem.of(stored, display_name=agent.display_name, colour=colour)


@router.get("/models", responses=responds_with(ModelsResponse))
def list_models(request: Request, context: ContextOf) -> Response:
    """All models, the most called first."""
    return write(request, ModelsResponse(items=context.store.models()))


@router.get("/diagnostics", responses=responds_with(DiagnosticPage))
def list_diagnostics(request: Request, context: ContextOf, query: Annotated[DiagnosticQuery, Query()]) -> Response:
    """What could not be read, by path and place."""
    with judging("cursor"):
        page = context.store.diagnostics(query.to_filter(), limit=query.limit, cursor=query.cursor)
    return write(request, DiagnosticPage(items=list(page.items), next_cursor=page.next_cursor, total=page.total or 0))
