"""What a fold of a klaude-code log remembers between two reads: the lines that stand, and an answer in pieces.

Compactions, rewinds and retractions name lines by number, so every line that stands is remembered, without its text.
"""

from __future__ import annotations

import msgspec

from turnlog.agents.states import codec_of


class Line(msgspec.Struct, array_like=True):
    """A record that stands."""

    number: int
    """0-based, as klaude-code counts."""
    message: str | None = None
    """Id of the message it is."""
    position: int = 0
    said: int | None = None
    """Checksum of what a user said."""


class Open(msgspec.Struct, array_like=True):
    """An answer of 1.x that is still being told."""

    message: str
    response: str | None
    parts: int = 0
    has_thought: bool = False
    """The last part is a thought without a signature."""
    has_proof: bool = False
    """The last part is a signature whose thought is still to come."""


class State(msgspec.Struct):
    """All of it."""

    session: str | None = None
    lines: int = 0
    active: list[Line] = []
    checkpoints: dict[str, int] = {}
    """Number of a checkpoint of the old rewinds -> its line."""
    leaf: str | None = None
    turn: int = 0
    step: int = 0
    open: Open | None = None
    branched: bool = False
    titled: bool = False
    cost: float | None = None


encode_state, decode_state = codec_of(State)
