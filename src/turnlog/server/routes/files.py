"""`/api/files`: which sessions touched a file and how, and which files there are; `/api/sessions/{id}/files`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

import msgspec
from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from turnlog.model.codec import encode
from turnlog.server.context import ContextOf, write
from turnlog.server.errors import judging
from turnlog.server.openapi import responds_with
from turnlog.server.parameters.calls import FileQuery, TouchedFilesQuery
from turnlog.server.responses import FileHistoryResponse, FileUseItem, FoundSession, TouchedFiles
from turnlog.store.base import FileFilter, Store
from turnlog.store.file_paths import CHANGING_KINDS
from turnlog.store.values import FileTouch, FileUse

MOST_FILES = 5000
"""Files of one session that are listed."""

router = APIRouter(default_response_class=Response, tags=["files"])


@router.get("/files", responses=responds_with(FileHistoryResponse))
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


@router.get("/files/touched", responses=responds_with(TouchedFiles))
def list_files(request: Request, context: ContextOf, query: Annotated[TouchedFilesQuery, Query()]) -> Response:
    """Files that were read or changed, the last touched first."""
    files = context.store.touched_files(query.to_filter(), limit=query.limit)
    return write(request, TouchedFiles(items=files))


@router.get("/sessions/{session_id}/files", responses=responds_with(TouchedFiles))
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
    return [{"path": touch.path, "call": touch.call, "part": _part(store, touch)} for touch in touches]


def _part(store: Store, touch: FileTouch) -> msgspec.Raw | None:
    if touch.call.kind not in CHANGING_KINDS:
        return None
    message = store.message(touch.call.message_id, session_id=touch.call.session_id, resolve_blobs=False)
    return msgspec.Raw(encode(message.parts[touch.part])) if touch.part < len(message.parts) else None
