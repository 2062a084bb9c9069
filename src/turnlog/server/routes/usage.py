"""`/api/usage`: tokens and cost by day, model, project, session or agent."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from turnlog.server.answers import UsageAnswer, UsageRow, UsageTotals
from turnlog.server.context import ContextOf, write
from turnlog.server.openapi import answers_with
from turnlog.server.parameters import UsageQuery

router = APIRouter(default_response_class=Response, tags=["usage"])


@router.get("/usage", responses=answers_with(UsageAnswer))
def get_usage(request: Request, context: ContextOf, query: Annotated[UsageQuery, Query()]) -> Response:
    """Usage by something and in all; days are UTC."""
    report = context.store.usage(query.by, query.to_filter())
    rows = [UsageRow.of(row, totals=UsageTotals.of_totals(row.totals)) for row in report.rows]
    return write(request, UsageAnswer(by=report.by, rows=rows, totals=UsageTotals.of_totals(report.totals)))
