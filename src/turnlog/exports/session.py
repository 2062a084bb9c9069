"""One session of a store as one document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from turnlog.errors import LossyConversionError
from turnlog.exports.formats import FORMATS, Format
from turnlog.exports.source import Source
from turnlog.store.base import Store

if TYPE_CHECKING:
    from turnlog.redact import Masked


class Export(NamedTuple):
    """The document, and what it cost."""

    format: Format
    data: bytes
    losses: Sequence[str]
    """What the format cannot hold: a line a kind."""
    repairs: Sequence[str]
    """What was changed so that a provider takes it: a line a kind."""
    masked: Sequence[Masked]


def export_session(
    store: Store,
    session_id: str,
    format_name: str,
    *,
    redact: bool = False,
    model: str | None = None,
    strict: bool = False,
) -> Export:
    """A session in one of `FORMATS`.

    Args:
        store: Where it is.
        session_id: Its id.
        format_name: As in `FORMATS`; KeyError for any other.
        redact: Whether secrets are taken out first.
        model: The model that a request asks; by default the last that answered.
        strict: Raise instead of losing anything.

    Raises:
        NotFoundError: The store has no such session.
        LossyConversionError: `strict`, and something would be lost.
        ConversionError: A request without a model.
    """
    chosen = FORMATS[format_name]
    source = Source(store, session_id, redact=redact)
    made = chosen.write(source, model)
    if strict and made.losses:
        raise LossyConversionError(f"{format_name} cannot hold it: {'; '.join(made.losses)}", losses=tuple(made.losses))
    return Export(chosen, b"".join(made.pieces), made.losses, made.repairs, source.masked)
