"""A stored session in any format: `export_session`, and the names of the formats.

Secrets are taken out before anything is converted, where that is asked for. The command and the server are thin over
this. What a format needs is imported when it is written, so that help and the server's start do without.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from turnlog.exports.formats import Format
    from turnlog.redact import Masked
    from turnlog.store.base import Store


class ExportFormat(StrEnum):
    """What `turnlog export --as` writes, in the order of its help."""

    MARKDOWN = "markdown"
    HTML = "html"
    JSON = "json"
    JSONL = "jsonl"
    UIMESSAGES = "uimessages"
    CASSETTE = "cassette"
    ATIF = "atif"
    OTEL = "otel"
    ANTHROPIC = "anthropic"
    OPENAI_CHAT = "openai-chat"
    OPENROUTER = "openrouter"
    RESPONSES = "responses"
    GEMINI = "gemini"


REQUESTS: Final = (
    ExportFormat.ANTHROPIC,
    ExportFormat.OPENAI_CHAT,
    ExportFormat.OPENROUTER,
    ExportFormat.RESPONSES,
    ExportFormat.GEMINI,
)
"""The formats that are the body of a request to a model."""


class Export(NamedTuple):
    """The document, and what it cost."""

    format: Format
    data: bytes
    losses: Sequence[str]
    """What the format cannot hold: a line a kind."""
    repairs: Sequence[str]
    """What was changed so that a provider takes it: a line a kind."""
    masked: Sequence[Masked]
    files: Mapping[str, bytes]
    """What belongs beside the document, by its path relative to the document's folder."""


def export_session(
    store: Store,
    session_id: str,
    format_name: str,
    *,
    redact: bool = False,
    model: str | None = None,
    strict: bool = False,
    content: bool = False,
) -> Export:
    """A session in one of the formats.

    Args:
        store: Where it is.
        session_id: Its id.
        format_name: An `ExportFormat`, or its text; ValueError for any other.
        redact: Whether secrets are taken out first.
        model: The model that a request asks; by default the last that answered.
        strict: Raise instead of losing anything.
        content: Whether a trace (`otel`) contains what was said. It never contains secrets then.

    Raises:
        NotFoundError: The store has no such session.
        LossyConversionError: `strict`, and something would be lost.
        ConversionError: A request without a model.
    """
    from turnlog.errors import LossyConversionError
    from turnlog.exports.formats import FORMATS
    from turnlog.exports.source import ExportSource

    if format_name not in (names := [each.value for each in ExportFormat]):
        raise ValueError(f"there is no format {format_name!r}; there are {', '.join(names)}")
    chosen = FORMATS[ExportFormat(format_name)]
    source = ExportSource(store, session_id, redact=redact or content, content=content)
    made = chosen.write(source, model)
    if strict and made.losses:
        raise LossyConversionError(f"{format_name} cannot hold it: {'; '.join(made.losses)}", losses=tuple(made.losses))
    return Export(chosen, b"".join(made.pieces), made.losses, made.repairs, source.masked, made.files)
