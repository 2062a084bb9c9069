"""`/api/sessions/{id}/ui-messages`: a session as AI SDK's UI messages, for `useChat`."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from turnlog.chat.loading import load_ui_json
from turnlog.model import BlobRef
from turnlog.server.context import ContextOf
from turnlog.server.errors import judging
from turnlog.server.frames import json_response, not_modified
from turnlog.server.openapi import responds_with
from turnlog.server.parameters.messages import UIMessagesQuery
from turnlog.server.responses import UIMessagePage

router = APIRouter(prefix="/sessions/{session_id}", default_response_class=Response, tags=["sessions"])


@router.get("/ui-messages", responses=responds_with(UIMessagePage))
def get_ui_messages(
    request: Request, context: ContextOf, session_id: str, query: Annotated[UIMessagesQuery, Query()]
) -> Response:
    """A page of UI messages; files are named by their address here."""
    etag = context.etag()
    if known := not_modified(request.headers, etag):
        return known

    def blob_url(blob: BlobRef) -> str:
        return f"{request.base_url}api/blobs/{blob.sha256}"

    with judging("cursor"):
        page = load_ui_json(
            context.store,
            session_id,
            query.offset,
            query.limit,
            cursor=query.cursor,
            resolve_blobs=query.whole,
            version=query.version,
            include_reasoning=query.include_reasoning,
            merge_tool_results=query.merge_tool_results,
            merge_steps=query.merge_steps,
            blob_url=blob_url,
        )
    return json_response(page.to_json(), request.headers, etag)
