"""`/api/tool-calls` and `/api/tools`: calls over all sessions, and how often each tool was called."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from turnlog.server.context import ContextOf, write
from turnlog.server.errors import judging
from turnlog.server.openapi import responds_with
from turnlog.server.parameters.calls import ToolCallQuery, ToolQuery
from turnlog.server.responses import ToolCallPage, ToolsResponse

router = APIRouter(default_response_class=Response, tags=["tool calls"])


@router.get("/tool-calls", responses=responds_with(ToolCallPage))
def list_tool_calls(request: Request, context: ContextOf, query: Annotated[ToolCallQuery, Query()]) -> Response:
    """Tool calls, newest first; those of one session in their order."""
    with judging("cursor"):
        page = context.store.tool_calls(query.to_filter(), limit=query.limit, cursor=query.cursor)
    return write(request, ToolCallPage(items=list(page.items), next_cursor=page.next_cursor))


@router.get("/tools", responses=responds_with(ToolsResponse))
def list_tools(request: Request, context: ContextOf, query: Annotated[ToolQuery, Query()]) -> Response:
    """How often each tool was called and failed, the most called first."""
    return write(request, ToolsResponse(items=context.store.tool_usage(query.to_filter())))
