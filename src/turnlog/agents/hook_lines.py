"""The lines of a hooks' spool, as far as they are read, and what is remembered of them between two feeds."""

from __future__ import annotations

import msgspec
from msgspec import UNSET, Raw, UnsetType


class HookEvent(msgspec.Struct):
    """What agents give their hooks, as far as it is read. Each gives some of it."""

    session_id: str | None = None
    hook_event_name: str = ""
    cwd: str | None = None
    model: str | None = None
    agent_id: str | None = None
    prompt_id: str | None = None
    turn_id: str | None = None
    timestamp: str | None = None
    prompt: str | None = None
    message_id: str | None = None
    index: int = 0
    delta: str | None = None
    final: bool = False
    last_assistant_message: str | None = None
    tool_name: str | None = None
    tool_use_id: str | None = None
    tool_input: Raw | UnsetType = UNSET
    tool_response: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET
    is_interrupt: bool = False
    duration_ms: int | None = None
    notification_type: str | None = None


class HookLine(msgspec.Struct):
    """A line of a spool."""

    at: float = 0.0
    event: HookEvent | None = None


class HookState(msgspec.Struct):
    """What is remembered between two feeds."""

    lines: int = 0
    texts: dict[str, dict[int, str]] = {}
    """Message -> the pieces of its text that came so far, of the latest: hooks that run side by side do not keep
    their order, and may come twice."""
    answered: str = ""
    """The text that was shown last: what the agent says when it stops is often that once more."""
    calls: dict[str, str] = {}
    """Checksum of a call's tool and input -> its id, of the latest: some events of a call do not name it."""
    nameless: int = 0
    """Calls without an id that have begun."""
