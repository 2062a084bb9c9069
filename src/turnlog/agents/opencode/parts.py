"""OpenCode's parts -> parts of the model, and what they tell beside it."""

from __future__ import annotations

from typing import Literal, NamedTuple

from turnlog.agents.opencode.files import file_part
from turnlog.agents.opencode.ids import NAME
from turnlog.agents.opencode.kinds import PARTS
from turnlog.agents.opencode.providers import provider_of
from turnlog.agents.opencode.rows import Row, time_of
from turnlog.agents.opencode.tools import read_call
from turnlog.agents.reading import other_fields
from turnlog.model import DataPart, Part, ReasoningPart, TextPart, UnknownPart
from turnlog.model.codec import to_json

_MARKS = frozenset(kind for kind, becomes in PARTS.items() if becomes == "message")
_DATA = frozenset(kind for kind, becomes in PARTS.items() if becomes == "data")


_PLACES = frozenset({"id", "sessionID", "messageID"})
_FIELDS = _PLACES | {"type", "text", "synthetic", "ignored", "time", "metadata", "providerMetadata"}


class ReadPart(NamedTuple):
    """A part of the model; for a call, when its result arrived (Unix milliseconds) and the session it started."""

    part: Part
    ended: int | None = None
    child: str | None = None


def read_part(part: Row, part_id: str, model: str | None, *, over: bool) -> ReadPart | None:
    """What a part becomes; None for a mark whose facts are the message's."""
    kind = str(part.get("type"))
    if kind in _MARKS:
        return None
    if kind == "text":
        return ReadPart(_text(part, part_id, model, over=over))
    if kind == "reasoning":
        return ReadPart(_reasoning(part, part_id, model, over=over))
    if kind == "file":
        return ReadPart(file_part(part, part_id))
    if kind == "tool":
        return ReadPart(*read_call(part, part_id, model, over=over))
    if kind in _DATA:
        return ReadPart(DataPart(id=part_id, name=kind, data=to_json(_own(part))))
    return ReadPart(UnknownPart(id=part_id, kind=kind, data=to_json(_own(part))))


def _own(part: Row) -> Row:
    """A part without the ids that say where it belongs: copies and exports have others, a database has columns."""
    return {name: value for name, value in part.items() if name not in _PLACES}


def _text(part: Row, part_id: str, model: str | None, *, over: bool) -> TextPart:
    flags = {name: True for name in ("synthetic", "ignored") if part.get(name) is True} | other_fields(part, _FIELDS)
    return TextPart(
        id=part_id,
        text=_string(part.get("text")),
        state=_state(part, over=over),
        provider=provider_of(part.get("metadata"), model),
        metadata={NAME: flags} if flags else {},
    )


def _reasoning(part: Row, part_id: str, model: str | None, *, over: bool) -> ReasoningPart:
    start, end = time_of(part, "start"), time_of(part, "end")
    return ReasoningPart(
        id=part_id,
        text=_string(part.get("text")),
        state=_state(part, over=over),
        duration_ms=end - start if start and end >= start else None,
        provider=provider_of(part.get("metadata"), model),
        metadata={NAME: others} if (others := other_fields(part, _FIELDS)) else {},
    )


def _state(part: Row, *, over: bool) -> Literal["streaming", "done"]:
    """A part that has begun and not ended is still being written, unless the agent has gone on since."""
    is_open = time_of(part, "start") > 0 and not time_of(part, "end")
    return "streaming" if is_open and not over else "done"


def _string(value: object) -> str:
    return value if isinstance(value, str) else ""
