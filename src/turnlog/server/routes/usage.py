"""`/api/usage`: tokens and cost by day, model, project, session, agent or subagent."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from turnlog.server.context import ContextOf, write
from turnlog.server.openapi import responds_with
from turnlog.server.parameters.usage import UsageQuery
from turnlog.store.usage_report import UsageReport, to_csv

router = APIRouter(default_response_class=Response, tags=["usage"])

_AS_CSV = {"text/csv": {"schema": {"type": "string"}}}


@router.get("/usage", responses=responds_with(UsageReport, besides=_AS_CSV))
def get_usage(request: Request, context: ContextOf, query: Annotated[UsageQuery, Query()]) -> Response:
    """Usage by something and in all; days are UTC."""
    report = context.store.usage(query.by, query.to_filter())
    if query.format == "csv" or (query.format is None and _wants_csv(request)):
        return _csv(report)
    return write(request, report)


def _wants_csv(request: Request) -> bool:
    """Whether the request asks for CSV by name, and does not take JSON just as well."""
    accepted = request.headers.get("accept", "").lower()
    return "text/csv" in accepted and "json" not in accepted


def _csv(report: UsageReport) -> Response:
    headers = {"Content-Disposition": f'attachment; filename="usage-by-{report.by}.csv"', "Vary": "Accept"}
    return Response(to_csv(report), headers=headers, media_type="text/csv")
