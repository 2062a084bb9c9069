"""Rows that cannot be read: each is reported and passed over, so that one of them ends nothing for others."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import msgspec

DAMAGE = (ValueError, TypeError, KeyError, AttributeError, RecursionError, msgspec.MsgspecError)
"""What reading a value raises that is not what its column should have."""

ValueT = TypeVar("ValueT")


def report(what: str, error: Exception) -> None:
    """Say which row is passed over, without a word of its content."""
    # Imported here because hardly any command logs.
    import logging

    logging.getLogger(__name__).warning("%s cannot be read, and is left out: %s", what, type(error).__name__)


def read_value(decode: Callable[[str], ValueT], text: str | None, otherwise: ValueT, what: str) -> ValueT:
    """A column's value, decoded; `otherwise` for NULL, or if it cannot be read.

    `what` says which column of which row it is.
    """
    if not text:
        return otherwise
    try:
        return decode(text)
    except DAMAGE as error:
        report(what, error)
        return otherwise
