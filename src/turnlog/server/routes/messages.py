"""`/api/messages`: one message with everything that is known of it, and the records it was made from."""

from __future__ import annotations

from typing import Annotated

import msgspec
from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from turnlog.model.codec import encode
from turnlog.server.answers.messages import MessageAnswer, RawRecord, RawRecords
from turnlog.server.context import ContextOf, write
from turnlog.server.openapi import answers_with
from turnlog.server.parameters.messages import PlacedQuery

router = APIRouter(prefix="/messages", default_response_class=Response, tags=["messages"])

# An agent may put a slash into a message's id; the longer address stands first, so that `/raw` is not part of it.


@router.get("/{message_id:path}/raw", responses=answers_with(RawRecords))
def get_records(
    request: Request, context: ContextOf, message_id: str, query: Annotated[PlacedQuery, Query()]
) -> Response:
    """The records of a message, as the agent wrote them."""
    records = context.store.records(message_id, session_id=query.session)
    return write(request, RawRecords(items=[RawRecord.of_bytes(*record) for record in records]))


@router.get("/{message_id:path}", responses=answers_with(MessageAnswer))
def get_message(
    request: Request, context: ContextOf, message_id: str, query: Annotated[PlacedQuery, Query()]
) -> Response:
    """A message with structured results; large contents stay previews with a blob."""
    message = context.store.message(message_id, session_id=query.session, structured=True, resolve_blobs=False)
    memberships = context.store.memberships(message_id)
    # The model's own encoder keeps what this version does not know.
    answer = {"message": msgspec.Raw(encode(message)), "memberships": memberships}
    return write(request, answer)
