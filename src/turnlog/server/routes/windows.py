"""`/api/sessions/{id}/window`: a piece of a session as the store keeps it; and the records behind its events."""

from __future__ import annotations

from typing import Annotated

import msgspec
from fastapi import APIRouter, Path, Query, Request
from starlette.responses import Response

from turnlog.model import HistoryEvent
from turnlog.model.codec import encode
from turnlog.server.context import ContextOf, write
from turnlog.server.frames import not_modified, window_response
from turnlog.server.openapi import responds_with
from turnlog.server.parameters.base import LARGEST_POSITION
from turnlog.server.parameters.messages import WindowQuery
from turnlog.server.responses import EventRecords, RecordText, WindowPage
from turnlog.store.base import Store

router = APIRouter(prefix="/sessions/{session_id}", default_response_class=Response, tags=["sessions"])


@router.get("/window", responses=responds_with(WindowPage))
def get_window(
    request: Request, context: ContextOf, session_id: str, query: Annotated[WindowQuery, Query()]
) -> Response:
    """Messages with their places, and the events between them."""
    # Before the store is read: what changes in between makes the tag too old, which only costs a response.
    etag = context.etag()
    if known := not_modified(request.headers, etag):
        return known
    window = context.store.window(
        session_id, after=query.after, before=query.before, around=query.around, limit=query.limit
    )
    return window_response(window, request.headers, etag)


@router.get("/events/{position}", responses=responds_with(EventRecords))
def get_events(
    request: Request, context: ContextOf, session_id: str, position: Annotated[int, Path(ge=0, le=LARGEST_POSITION)]
) -> Response:
    """The events at one position, and what the log says of them."""
    events = context.store.events(session_id, position=position)
    return write(request, {"items": [_with_records(context.store, event) for event in events]})


def _with_records(store: Store, event: HistoryEvent) -> dict[str, msgspec.Raw | list[RecordText]]:
    """An `EventRecord`, with the event as the model writes it."""
    return {
        "event": msgspec.Raw(encode(event)),
        "records": [
            RecordText.of_bytes(place, store.record(place.source, place.offset, place.length))
            for place in event.records
            if place.offset is not None and place.length is not None
        ],
    }
