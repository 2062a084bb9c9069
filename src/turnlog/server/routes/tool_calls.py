"""`/api/tool-calls`, `/api/tools`, `/api/files`: calls over all sessions, by tool and by file."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

import msgspec
from fastapi import Query, Request
from pydantic import Field
from starlette.responses import Response

from turnlog.model.codec import encode
from turnlog.server.context import ContextOf, write
from turnlog.server.errors import judging
from turnlog.server.openapi import responds_with
from turnlog.server.responses import (
    FileHistoryResponse,
    FileUseItem,
    FoundSession,
    ToolCallPage,
    ToolsResponse,
    TouchedFiles,
)
from turnlog.server.routes.parameters import ListPage, LongPage, Moment, QueryParameters, explain_nothing
from turnlog.server.routes.router import api_router
from turnlog.store.base import FileFilter, Store, ToolCallFilter
from turnlog.store.rows import CHANGING_KINDS
from turnlog.store.values import FileTouch, FileUse


class _ToolCallFilters(QueryParameters):
    tool: str | None = None
    kind: str | None = None
    state: str | None = None
    failed: bool | None = None
    since: Moment | None = None
    until: Moment | None = None
    project: str | None = None
    session: str | None = None
    path: str | None = Field(None, description="The file that the call read or wrote.")
    agent: str | None = None
    call: str | None = Field(None, description="The id that the agent gave the call.")
    message: str | None = Field(None, description="Id of the message that made the call.")

    def to_filter(self) -> ToolCallFilter:
        """The same for the store."""
        return ToolCallFilter(**self.model_dump(include=set(ToolCallFilter._fields)))


class ToolCallQuery(_ToolCallFilters):
    """Which tool calls."""

    limit: ListPage = 50
    cursor: str | None = None


class ToolQuery(_ToolCallFilters):
    """Which calls to count."""


class FileQuery(QueryParameters):
    """Whose history."""

    path: str = Field(min_length=1, description="The file: its path, or the end of one (`src/shop.py`).")
    changed: bool = Field(False, description="Whether calls that only read are left out.")
    limit: ListPage = 50
    cursor: str | None = None


class TouchedFilesQuery(QueryParameters):
    """Which files."""

    text: str | None = Field(None, description="What the path contains, in any case.")
    project: str | None = Field(None, description="Path of the project, or its name.")
    agent: str | None = None
    changed: bool | None = Field(None, description="`true`: only files that some call changed.")
    limit: LongPage = 100

    def to_filter(self) -> FileFilter:
        """The same for the store."""
        return FileFilter(**self.model_dump(exclude={"limit"}))


router = api_router()


@router.get("/tool-calls", tags=["tool calls"], responses=responds_with(ToolCallPage))
def list_tool_calls(request: Request, context: ContextOf, query: Annotated[ToolCallQuery, Query()]) -> Response:
    """Tool calls, newest first; those of one session in their order."""
    with judging("cursor"):
        page = context.store.tool_calls(query.to_filter(), limit=query.limit, cursor=query.cursor)
    if not page.items and not query.cursor:
        explain_nothing(context, query)
    return write(request, ToolCallPage(items=list(page.items), next_cursor=page.next_cursor))


@router.get("/tools", tags=["tool calls"], responses=responds_with(ToolsResponse))
def list_tools(request: Request, context: ContextOf, query: Annotated[ToolQuery, Query()]) -> Response:
    """How often each tool was called and failed, the most called first."""
    tools = context.store.tool_usage(query.to_filter())
    if not tools:
        explain_nothing(context, query)
    return write(request, ToolsResponse(items=tools))


MOST_FILES = 5000
"""Files of one session that are listed."""


@router.get("/files", tags=["files"], responses=responds_with(FileHistoryResponse))
def get_file(request: Request, context: ContextOf, query: Annotated[FileQuery, Query()]) -> Response:
    """The sessions that touched a file, and what they did to it."""
    with judging("cursor"):
        history = context.store.file_history(query.path, changed=query.changed, limit=query.limit, cursor=query.cursor)
    body = {
        "path": query.path,
        "sessions": [_use(context.store, use) for use in history.uses],
        "items": _touches(context.store, history.touches.items),
        "next_cursor": history.touches.next_cursor,
    }
    return write(request, body)


@router.get("/files/touched", tags=["files"], responses=responds_with(TouchedFiles))
def list_files(request: Request, context: ContextOf, query: Annotated[TouchedFilesQuery, Query()]) -> Response:
    """Files that were read or changed, the last touched first."""
    files = context.store.touched_files(query.to_filter(), limit=query.limit)
    if not files:
        explain_nothing(context, query)
    return write(request, TouchedFiles(items=files))


@router.get("/sessions/{session_id}/files", tags=["files"], responses=responds_with(TouchedFiles))
def list_session_files(request: Request, context: ContextOf, session_id: str) -> Response:
    """Files that one session read or changed, the last touched first."""
    files = context.store.touched_files(FileFilter(session=session_id), limit=MOST_FILES)
    return write(request, TouchedFiles(items=files))


def _use(store: Store, use: FileUse) -> FileUseItem:
    session = store.session(use.session_id)
    found = FoundSession.of(session, project=session.project.path if session.project else None)
    return FileUseItem.of(use, session=found, kinds=list(use.kinds))


def _touches(store: Store, touches: Iterable[FileTouch]) -> list[dict[str, object]]:
    """As `FileTouchItem` says, with parts as the model writes them."""
    return [
        {"path": touch.path, "call": touch.call, "index": touch.part, "part": _part(store, touch)} for touch in touches
    ]


def _part(store: Store, touch: FileTouch) -> msgspec.Raw | None:
    if touch.call.kind not in CHANGING_KINDS:
        return None
    message = store.message(touch.call.message_id, session_id=touch.call.session_id, resolve_blobs=False)
    return msgspec.Raw(encode(message.parts[touch.part])) if touch.part < len(message.parts) else None
