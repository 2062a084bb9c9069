"""Which piece of a session, and how it is shown."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from turnlog.server.parameters.base import ListPage, Position, QueryParameters, SessionPosition, WindowSize


class EventsQuery(QueryParameters):
    """From where on changes are told."""

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
    """How bytes are wanted."""

    as_: Literal["text"] | None = Field(None, alias="as", description="`text`: as plain text in UTF-8.")
