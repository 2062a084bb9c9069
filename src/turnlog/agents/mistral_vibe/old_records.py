"""The lines of a log before 2.26: messages as a provider's API has them."""

from __future__ import annotations

from typing import Any, cast

import msgspec

from turnlog.agents.jsonl import JsonLines


class OldFunction(msgspec.Struct, gc=False):
    """What a call asks for."""

    name: str | None = None
    arguments: str | None = None


class OldCall(msgspec.Struct, gc=False):
    """A call of a tool."""

    id: str | None = None
    function: OldFunction | None = None


class OldMessage(msgspec.Struct, gc=False):
    """One line of a log."""

    role: str = ""
    content: str | None = None
    reasoning_content: str | None = None
    injected: bool | None = None
    tool_calls: list[OldCall] | None = None
    message_id: str | None = None
    name: str | None = None
    tool_call_id: str | None = None
    others: dict[str, Any] | None = msgspec.field(name="", default=None)
    """Metadata: the fields that are not listed here."""


_CompleteMessage = cast(
    "type[OldMessage]",
    msgspec.defstruct("_CompleteMessage", (), bases=(OldMessage,), gc=False, forbid_unknown_fields=True),
)

ROLES = frozenset({"system", "user", "assistant", "tool"})
"""The roles that are known."""

LINES = JsonLines(
    OldMessage, first_keys=("role",), plausible=lambda message: message.role in ROLES, complete=_CompleteMessage
)
"""Reads messages out of lines."""
