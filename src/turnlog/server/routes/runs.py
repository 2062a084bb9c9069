"""`/api/runs`: what was started through turnlog, and how it went."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from turnlog.server.context import ContextOf, write
from turnlog.server.errors import judging
from turnlog.server.openapi import responds_with
from turnlog.server.parameters.runs import RunQuery
from turnlog.server.responses import RunPage, RunResponse

router = APIRouter(default_response_class=Response, tags=["runs"])


@router.get("/runs", responses=responds_with(RunPage))
def list_runs(request: Request, context: ContextOf, query: Annotated[RunQuery, Query()]) -> Response:
    """Runs, the newest first."""
    with judging("cursor"):
        page = context.store.runs(query.to_filter(), limit=query.limit, cursor=query.cursor)
    items = [RunResponse.of_run(run) for run in page.items]
    return write(request, RunPage(items=items, next_cursor=page.next_cursor, total=page.total or 0))


@router.get("/runs/{run_id}", responses=responds_with(RunResponse))
def get_run(request: Request, context: ContextOf, run_id: str) -> Response:
    """One run, by its id or a beginning that no other run's id has."""
    return write(request, RunResponse.of_run(context.store.run(run_id)))
