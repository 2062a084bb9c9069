"""`/api/sessions/{id}/replay`: a session shown again, event by event, with the pauses it had."""

from __future__ import annotations

from typing import Annotated

import msgspec
from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from turnlog.model.codec import encode
from turnlog.replay import replay, timed
from turnlog.server.context import ContextOf, write
from turnlog.server.frames import not_modified
from turnlog.server.openapi import responds_with
from turnlog.server.parameters.messages import ReplayQuery
from turnlog.server.responses import ReplayPage

router = APIRouter(prefix="/sessions/{session_id}", default_response_class=Response, tags=["sessions"])


@router.get("/replay", responses=responds_with(ReplayPage))
def get_replay(
    request: Request, context: ContextOf, session_id: str, query: Annotated[ReplayQuery, Query()]
) -> Response:
    """What a screen is told when the session is shown again; large contents are previews."""
    # Before the store is read: what changes in between makes the tag too old, which only costs an answer.
    etag = context.etag()
    if known := not_modified(request.headers, etag):
        return known
    passage = context.store.passage(
        session_id, after=query.after, before=query.before, around=query.around, limit=query.limit
    )
    shown = replay(passage.events, response_metadata=True, interrupted=passage.interrupted)
    # A pause is one since what was before, which may be on another page.
    items = [
        {"delay": delay, "event": msgspec.Raw(encode(event))}
        for delay, event in timed(shown, query.speed, query.max_pause)
        if passage.first <= event.position < passage.end
    ]
    return write(request, {"items": items, "before": passage.before, "after": passage.after}, etag)
