"""`/api/messages`: one message with everything that is known of it, and the records it was made from."""

from __future__ import annotations

from typing import Annotated

import msgspec
from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from turnlog.model.codec import encode
from turnlog.server.context import ContextOf, write
from turnlog.server.openapi import responds_with
from turnlog.server.parameters.messages import PlacedQuery
from turnlog.server.responses import MessageResponse, RecordsResponse, RecordText

router = APIRouter(prefix="/messages", default_response_class=Response, tags=["messages"])

# An agent may put a slash into a message's id; the longer address stands first, so that `/raw` is not part of it.


@router.get("/{message_id:path}/raw", responses=responds_with(RecordsResponse))
def get_records(
    request: Request, context: ContextOf, message_id: str, query: Annotated[PlacedQuery, Query()]
) -> Response:
    """The records of a message, as the agent wrote them."""
    records = context.store.records(message_id, session_id=query.session)
    return write(
        request, RecordsResponse(items=[RecordText.of_bytes(record.provenance, record.data) for record in records])
    )


@router.get("/{message_id:path}", responses=responds_with(MessageResponse))
def get_message(
    request: Request, context: ContextOf, message_id: str, query: Annotated[PlacedQuery, Query()]
) -> Response:
    """A message with structured results; large contents stay previews with a blob."""
    message = context.store.message(message_id, session_id=query.session, structured=True, resolve_blobs=False)
    memberships = context.store.memberships(message_id)
    # The model's own encoder keeps what this version does not know.
    body = {"message": msgspec.Raw(encode(message)), "memberships": memberships}
    return write(request, body)
