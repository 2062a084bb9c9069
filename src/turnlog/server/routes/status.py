"""`/api/status`: what the server is, how far the logs are read, how far search is behind."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from turnlog import __version__
from turnlog.server.context import ContextOf, write
from turnlog.server.openapi import responds_with
from turnlog.server.responses import SearchProgress, StatusResponse

router = APIRouter(default_response_class=Response, tags=["status"])


@router.get("/status", responses=responds_with(StatusResponse))
def get_status(request: Request, context: ContextOf) -> Response:
    """Version, progress and freshness: cheap, made for asking every second."""
    sequence, counts = context.counts()
    body = StatusResponse(
        version=__version__,
        sample=context.settings.sample,
        prompts=context.prompts is not None,
        change_sequence=sequence,
        sync=context.sync(),
        search=SearchProgress(pending=context.pending()),
        store=counts,
    )
    return write(request, body)
