"""`/api/usage`, `/api/insights`, `/api/agents`, `/api/models`, `/api/diagnostics`, `/api/status`: summaries."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Literal

from fastapi import Query, Request
from pydantic import Field
from starlette.responses import Response

from turnlog import __version__, agents
from turnlog.errors import TurnlogError
from turnlog.server.context import ContextOf, write
from turnlog.server.errors import judging
from turnlog.server.openapi import responds_with
from turnlog.server.responses import (
    AgentColour,
    AgentItem,
    AgentsResponse,
    DiagnosticPage,
    ModelsResponse,
    SearchProgress,
    StatusResponse,
)
from turnlog.server.routes.parameters import LongPage, Moment, QueryParameters, explain_nothing, to_zone
from turnlog.server.routes.router import api_router
from turnlog.settings import load_settings
from turnlog.store.base import DiagnosticFilter, InsightFilter, UsageFilter
from turnlog.store.budgets import spent_budgets
from turnlog.store.choices import UsageBy
from turnlog.store.insights import LONGEST_LIST, Insights, Section
from turnlog.store.insights import to_csv as section_to_csv
from turnlog.store.usage_comparison import UsageComparison, compare_usage
from turnlog.store.usage_report import AgentSummary, UsageReport, to_csv


class UsageQuery(QueryParameters):
    """Whose usage, by what."""

    by: UsageBy = "day"
    then_by: UsageBy | None = Field(None, description="Divides each row again.")
    zone: str = Field("UTC", description="Time zone of hours, days, weeks and months: `Europe/Berlin`.")
    since: Moment | None = None
    until: Moment | None = None
    agent: str | None = None
    project: str | None = None
    model: str | None = None
    session: str | None = None
    user: str | None = None
    team: str | None = None
    task: str | None = None
    machine: str | None = None
    active: bool = Field(False, description="Add how long sessions were active to days, weeks and months.")
    format: Literal["json", "csv"] | None = Field(None, description="Without it, what `Accept` asks for.")

    def to_filter(self) -> UsageFilter:
        """The same for the store."""
        return UsageFilter(**self.model_dump(exclude={"by", "then_by", "zone", "active", "format"}))


class ComparisonQuery(QueryParameters):
    """Which period is compared with the one before it, and of what."""

    zone: str = Field("UTC", description="Time zone of the days, weeks and months that are compared.")
    since: Moment
    until: Moment
    agent: str | None = None
    project: str | None = None
    model: str | None = None
    user: str | None = None
    machine: str | None = None

    def to_filter(self) -> UsageFilter:
        """The same for the store."""
        return UsageFilter(**self.model_dump(exclude={"zone"}))


class InsightQuery(QueryParameters):
    """Of what, and in which zone."""

    zone: str = Field("UTC", description="Time zone of hours, days and weeks: `Europe/Berlin`.")
    since: Moment | None = None
    until: Moment | None = None
    agent: str | None = None
    project: str | None = None
    section: Section | None = Field(None, description="The one section to write as CSV.")

    def to_filter(self) -> InsightFilter:
        """The same for the store."""
        return InsightFilter(**self.model_dump(exclude={"zone", "section"}))


class DiagnosticQuery(QueryParameters):
    """Which diagnostics."""

    agent: str | None = None
    session: str | None = None
    path: str | None = None
    severity: Literal["error", "note"] | None = None
    limit: LongPage = 100
    cursor: str | None = None

    def to_filter(self) -> DiagnosticFilter:
        """The same for the store."""
        return DiagnosticFilter(**self.model_dump(exclude={"limit", "cursor"}))


_AS_CSV = {"text/csv": {"schema": {"type": "string"}}}


router = api_router()


@router.get("/usage", tags=["usage"], responses=responds_with(UsageReport, besides=_AS_CSV))
def get_usage(request: Request, context: ContextOf, query: Annotated[UsageQuery, Query()]) -> Response:
    """Usage by something and in all; days are those of `zone`."""
    with judging("zone"):
        zone = to_zone(query.zone)
    with judging("then_by"):
        report = context.store.usage(query.by, query.to_filter(), then_by=query.then_by, zone=zone, active=query.active)
    if not report.rows:
        explain_nothing(context, query)
    # A hub has budgets of its own; the settings are those of whoever runs it.
    if not context.is_hub:
        report = replace(report, budgets=spent_budgets(context.store, load_settings().budgets.limits(), zone))
    if query.format == "csv" or (query.format is None and _wants_csv(request)):
        return _csv(report)
    return write(request, report)


@router.get("/usage/comparison", tags=["usage"], responses=responds_with(UsageComparison))
def get_usage_comparison(request: Request, context: ContextOf, query: Annotated[ComparisonQuery, Query()]) -> Response:
    """A period beside the one before it: what changed, and why it cost more or less."""
    with judging("zone"):
        zone = to_zone(query.zone)
    with judging("since"):
        report = compare_usage(context.store, query.since, query.until, query.to_filter(), zone=zone)
    if not report.models:
        explain_nothing(context, query)
    return write(request, report)


@router.get("/insights", tags=["usage"], responses=responds_with(Insights, besides=_AS_CSV))
def get_insights(request: Request, context: ContextOf, query: Annotated[InsightQuery, Query()]) -> Response:
    """When the user works, what it costs where, and how tools and models behave; with `section`, that one as CSV."""
    with judging("zone"):
        zone = to_zone(query.zone)
    limit = LONGEST_LIST if query.section is None else None
    report = context.store.insights(query.to_filter(), zone=zone, limit=limit)
    if not report.activity:
        explain_nothing(context, query)
    if query.section is None:
        return write(request, report)
    headers = {"Content-Disposition": f'attachment; filename="{query.section}.csv"'}
    return Response(section_to_csv(report, query.section), headers=headers, media_type="text/csv")


def _wants_csv(request: Request) -> bool:
    """Whether the request asks for CSV by name, and does not take JSON just as well."""
    accepted = request.headers.get("accept", "").lower()
    return "text/csv" in accepted and "json" not in accepted


def _csv(report: UsageReport) -> Response:
    headers = {"Content-Disposition": f'attachment; filename="usage-by-{report.by}.csv"', "Vary": "Accept"}
    return Response(to_csv(report), headers=headers, media_type="text/csv")


@router.get("/agents", tags=["inventory"], responses=responds_with(AgentsResponse))
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


@router.get("/models", tags=["inventory"], responses=responds_with(ModelsResponse))
def list_models(request: Request, context: ContextOf) -> Response:
    """All models, the most called first."""
    return write(request, ModelsResponse(items=context.store.models()))


@router.get("/diagnostics", tags=["inventory"], responses=responds_with(DiagnosticPage))
def list_diagnostics(request: Request, context: ContextOf, query: Annotated[DiagnosticQuery, Query()]) -> Response:
    """What could not be read, by path and place."""
    with judging("cursor"):
        page = context.store.diagnostics(query.to_filter(), limit=query.limit, cursor=query.cursor)
    return write(request, DiagnosticPage(items=list(page.items), next_cursor=page.next_cursor, total=page.total or 0))


@router.get("/status", tags=["status"], responses=responds_with(StatusResponse))
def get_status(request: Request, context: ContextOf) -> Response:
    """Version, progress and freshness: cheap, made for asking every second."""
    sequence, counts = context.counts()
    body = StatusResponse(
        version=__version__,
        sample=context.settings.sample,
        prompts=context.prompts is not None,
        hub=context.is_hub,
        change_sequence=sequence,
        unwritable=context.unwritable(),
        sync=context.sync(),
        search=SearchProgress(unindexed=context.unindexed()),
        store=counts,
    )
    return write(request, body)
