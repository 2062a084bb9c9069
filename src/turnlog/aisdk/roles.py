"""Which parts are usual in messages of a role. AI SDK accepts all of them everywhere, so this only warns (R-S12)."""

from __future__ import annotations

from typing import NamedTuple

from turnlog.aisdk.parts import UIMessage, UIRole

_USUAL: dict[UIRole, tuple[str, ...]] = {"system": ("text",), "user": ("text", "file")}
"""Assistants may say anything."""


class UnusualPart(NamedTuple):
    """A part that one would not expect in a message of this role."""

    path: str
    role: UIRole
    type: str


def unusual_parts(message: UIMessage) -> list[UnusualPart]:
    """The parts that are unusual for the message's role, in order."""
    usual = _USUAL.get(message.role)
    if usual is None:
        return []
    return [
        UnusualPart(f"$.parts[{index}]", message.role, part.type)
        for index, part in enumerate(message.parts)
        if part.type not in usual
    ]
