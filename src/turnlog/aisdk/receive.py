"""UI messages -> canonical history: our own as they were, everybody else's as far as they can be believed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from turnlog.aisdk.codec import encode
from turnlog.aisdk.foreign import ForeignReader
from turnlog.aisdk.losses import Loss
from turnlog.aisdk.parts import UIMessage
from turnlog.aisdk.restore import MismatchError, restore_messages
from turnlog.model import Message


class Received(NamedTuple):
    """Canonical messages, and what of the UI messages they do not hold."""

    messages: list[Message]
    losses: list[Loss]


def from_ui_messages(messages: Iterable[UIMessage], *, trusted: bool = False) -> Received:
    """The canonical messages that UI messages tell of, one for each model call.

    Args:
        messages: As `parse_ui_messages` gives them.
        trusted: Whether they come from a place of our own (a file of `to_ui_messages`), so that what
            `metadata.turnlog` says of them is believed. Of a browser nothing is.
    """
    losses: list[Loss] = []
    reader = ForeignReader(losses)
    found: list[Message] = []
    for number, message in enumerate(messages):
        restored = _restore(message, number, losses) if trusted else None
        found += reader.read(message, number) if restored is None else restored
    return Received(found, losses)


def _restore(message: UIMessage, number: int, losses: list[Loss]) -> list[Message] | None:
    """The messages that it was made of; None where it was not made by us, or changed since."""
    try:
        return restore_messages(encode(message))
    except MismatchError as error:
        losses.append(Loss(feature="metadata", path=f"$[{number}]", reason=str(error)))
        return None
