"""What a session holds: windows, messages, their records, UI messages, replays, and the stream of its last turn."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec
from fastapi import Path, Query, Request
from pydantic import Field, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from turnlog.model import BlobRef, HistoryEvent
from turnlog.model.codec import encode
from turnlog.replay import replay, timed
from turnlog.server.context import ContextOf, json_response, window_response, write
from turnlog.server.errors import judging
from turnlog.server.live import LaggedError, LiveTopics
from turnlog.server.openapi import CHUNKS, responds_with
from turnlog.server.responses import (
    EventRecords,
    MessageResponse,
    RecordsResponse,
    RecordText,
    ReplayPage,
    UIMessagePage,
    WindowPage,
)
from turnlog.server.routes.parameters import (
    LARGEST_POSITION,
    ListPage,
    Position,
    QueryParameters,
    SessionPosition,
    WindowSize,
)
from turnlog.server.routes.router import api_router
from turnlog.store.base import Store
from turnlog.store.values import StoredPart

if TYPE_CHECKING:
    # The server answers before the vocabulary of chats is imported.
    from turnlog.aisdk.versions import Version
    from turnlog.chat.tail import Tail


class EventsQuery(QueryParameters):
    """The first change that is sent."""

    after: Position | None = Field(
        None, description="A `change_sequence`: what changed after it comes first. `Last-Event-ID` counts more."
    )


class WindowQuery(QueryParameters):
    """Which piece of a session. Positions are those of its rows."""

    after: SessionPosition | None = None
    before: SessionPosition | None = None
    around: SessionPosition | None = None
    limit: WindowSize = 40

    @field_validator("around")
    @classmethod
    def _stand_alone(cls, around: int | None, info: ValidationInfo) -> int | None:
        if info.data.get("after") is not None or info.data.get("before") is not None:
            raise PydanticCustomError("window", "cannot be combined with after or before")
        return around


class ReplayQuery(WindowQuery):
    """Which piece of a replay, and how fast."""

    speed: float = Field(1.0, gt=0, le=1e6, description="How many times as fast as it was.")
    max_pause: float = Field(3.0, ge=0, le=3600, description="Seconds that are waited at most.")


class UIMessagesQuery(QueryParameters):
    """Which piece of a session, and how it is shown."""

    offset: Position = 0
    limit: ListPage = 50
    cursor: str | None = Field(None, description="`next_cursor` of the page before, instead of an offset.")
    version: int = Field(7, ge=5, le=7, description="The AI SDK that reads it.")
    include_reasoning: bool = True
    merge_tool_results: bool = True
    merge_steps: bool = True
    step_starts: bool = Field(True, description="If false, no `step-start` parts: each model call is a UI message.")
    whole: bool = Field(False, description="Whether large contents are whole instead of previews.")

    @field_validator("cursor")
    @classmethod
    def _stand_alone(cls, cursor: str | None, info: ValidationInfo) -> str | None:
        if cursor is not None and info.data.get("offset"):
            raise PydanticCustomError("page", "cannot be combined with an offset")
        return cursor


class ChatStreamQuery(QueryParameters):
    """Who follows a session."""

    version: int = Field(7, ge=5, le=7, description="The AI SDK that reads it.")


class PlacedQuery(QueryParameters):
    """Whose placement of a message."""

    session: str | None = Field(None, description="Id of the session; else the one that pays for the message.")


class BytesQuery(QueryParameters):
    """How to answer with bytes."""

    as_: Literal["text"] | None = Field(None, alias="as", description="`text`: as plain text in UTF-8.")


router = api_router()


@router.get("/sessions/{session_id}/window", tags=["sessions"], responses=responds_with(WindowPage))
def get_window(
    request: Request, context: ContextOf, session_id: str, query: Annotated[WindowQuery, Query()]
) -> Response:
    """Messages with their places, and the events between them."""
    # Before the store is read: what changes in between makes the tag too old, which only costs a response.
    etag = context.etag()
    if known := context.not_modified(request.headers, etag, session_id):
        return known
    window = context.store.window(
        session_id, after=query.after, before=query.before, around=query.around, limit=query.limit
    )
    return window_response(window, request.headers, etag)


@router.get("/sessions/{session_id}/events/{position}", tags=["sessions"], responses=responds_with(EventRecords))
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


# An agent may put a slash into a message's id; the longer address comes first, so that `/raw` is not part of it.


@router.get("/messages/{message_id:path}/raw", tags=["messages"], responses=responds_with(RecordsResponse))
def get_records(
    request: Request, context: ContextOf, message_id: str, query: Annotated[PlacedQuery, Query()]
) -> Response:
    """The records of a message, as the agent wrote them."""
    records = context.store.records(message_id, session_id=query.session)
    return write(
        request, RecordsResponse(items=[RecordText.of_bytes(record.provenance, record.data) for record in records])
    )


@router.get("/messages/{message_id:path}", tags=["messages"], responses=responds_with(MessageResponse))
def get_message(
    request: Request, context: ContextOf, message_id: str, query: Annotated[PlacedQuery, Query()]
) -> Response:
    """A message with structured results; large contents stay previews with a blob."""
    message = context.store.message(message_id, session_id=query.session, structured=True, resolve_blobs=False)
    memberships = context.store.memberships(message_id)
    # The model's own encoder keeps what this version does not know.
    body = {"message": msgspec.Raw(encode(message)), "memberships": memberships}
    return write(request, body)


@router.get("/parts/{part_id:path}", tags=["messages"], responses=responds_with(StoredPart))
def get_part(request: Request, context: ContextOf, part_id: str, query: Annotated[PlacedQuery, Query()]) -> Response:
    """A part, whole: with large contents and structured results."""
    found = context.store.part(part_id, session_id=query.session)
    # The model's own encoder keeps what this version does not know.
    return write(request, {**msgspec.structs.asdict(found), "part": msgspec.Raw(encode(found.part))})


@router.get("/sessions/{session_id}/ui-messages", tags=["sessions"], responses=responds_with(UIMessagePage))
def get_ui_messages(
    request: Request, context: ContextOf, session_id: str, query: Annotated[UIMessagesQuery, Query()]
) -> Response:
    """A page of UI messages; files are named by their address here."""
    from turnlog.chat.loading import load_ui_json

    etag = context.etag()
    if known := context.not_modified(request.headers, etag, session_id):
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
            merge_steps=query.merge_steps and query.step_starts,
            step_starts=query.step_starts,
            blob_url=blob_url,
        )
    return json_response(page.to_json(), request.headers, etag)


@router.get("/sessions/{session_id}/replay", tags=["sessions"], responses=responds_with(ReplayPage))
def get_replay(
    request: Request, context: ContextOf, session_id: str, query: Annotated[ReplayQuery, Query()]
) -> Response:
    """The events of the session as it is shown again; large contents are previews."""
    # Before the store is read: what changes in between makes the tag too old, which only costs an answer.
    etag = context.etag()
    if known := context.not_modified(request.headers, etag, session_id):
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


LOOK_SECONDS = 5.0
"""Every change is sent; this is for turns that end without one."""


@router.get("/sessions/{session_id}/chat/stream", tags=["sessions"], responses=CHUNKS)
async def get_chat_stream(context: ContextOf, session_id: str, query: Annotated[ChatStreamQuery, Query()]) -> Response:
    """The last turn from its start until it ends, as AI SDK's chunks; 204 when it has ended."""
    from turnlog.aisdk.starlette import UIMessageStreamResponse
    from turnlog.chat.tail import open_tail

    tail = await open_tail(context.store, session_id)
    if tail is None:
        return Response(status_code=204)
    last_change = await run_in_threadpool(context.store.last_change)
    return UIMessageStreamResponse(_stream(context.live_topics, session_id, tail, query.version, last_change))


async def _stream(
    topics: LiveTopics, session_id: str, tail: Tail, version: Version, last_change: int
) -> AsyncGenerator[bytes]:
    with topics.watch(session_id, last_change) as reader:

        async def wait(_: float) -> bool:
            try:
                return not (await reader.read(LOOK_SECONDS)).is_over
            except LaggedError:  # What was missed is in the store.
                return True

        async with aclosing(tail.stream(version=version, wait=wait)) as stream:
            async for piece in stream:
                yield piece
