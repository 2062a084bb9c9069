"""What a fold of a Copilot CLI log remembers between two reads.

A file contains a session and its subagents, each with its own conversation. Every collection is bounded; what was
dropped here is still in the store.
"""

from __future__ import annotations

from datetime import datetime

import msgspec

from turnlog.agents.copilot_cli.records import CopilotUsage
from turnlog.agents.decoding import state_codec

MOST_USAGES = 64
"""Usages whose answers were not read yet."""

MOST_ASSETS = 16

MOST_CALLS = 512

MOST_UNNAMED = 512
"""Answers whose model no record has named yet."""

MAIN = ""
"""The key of the session's own conversation; a subagent's key is its `agentId`."""


class CopilotConversation(msgspec.Struct, omit_defaults=True):
    """The session itself, or one of its subagents."""

    leaf: str | None = None
    """Id of the newest message."""
    turn: int = 0
    step: int = 0
    titled: bool = False
    answer: str | None = None
    """Id of the newest answer, and the model call that gave it: its other chunks belong to the same message."""
    answer_call: str | None = None
    answer_position: int = 0
    answer_parts: int = 0
    model: str | None = None
    """The model in use, and the kind of the record that named it."""
    model_from: str = ""


class CopilotPendingCall(msgspec.Struct, array_like=True):
    """A call that has no result yet."""

    message: str
    position: int
    part: int
    name: str
    agent: str


class CopilotUnnamedAnswer(msgspec.Struct, array_like=True):
    """An answer whose model no record has named yet."""

    position: int
    agent: str
    output: int = 0
    """Its output tokens, as far as `CopilotState.outputs` has them."""
    before_change: bool = False
    """Another model was chosen after it."""


class CopilotPendingUsage(msgspec.Struct, array_like=True):
    """A usage whose answer is still to come, and the place of its record."""

    usage: CopilotUsage
    position: int
    length: int
    agent: str = MAIN
    record: str = ""
    """Its record's id, which a fork's copy has too."""


class CopilotState(msgspec.Struct, omit_defaults=True):
    """What is kept between two reads."""

    session: str | None = None
    """External id of the session, where the path does not have it."""
    started_at: datetime | None = None
    """When this session began. Earlier records are copies: the session is a fork."""
    lines: int = 0
    version: str | None = None
    cwd: str | None = None
    branch: str | None = None
    conversations: dict[str, CopilotConversation] = {}
    calls: dict[str, CopilotPendingCall] = {}
    unnamed: dict[str, CopilotUnnamedAnswer] = {}
    """By the id of the message."""
    usages: dict[str, CopilotPendingUsage] = {}
    """By the id of the model call."""
    has_usages: bool = False
    """The log has a usage for each model call, so totals only repeat them."""
    outputs: dict[str, int] = {}
    """Model -> output tokens that its answers have counted, in a log without usages."""
    used: dict[str, CopilotUsage] = {}
    """Model -> what the session had used of it at the end of the newest run, in such a log."""
    assets: dict[str, str] = {}
    """Id -> bytes in Base64, until the first record that refers to them, which directly follows."""
    compacting: list[str] | None = None
    """Messages since a compaction began, which stay in the context."""
    branched: bool = False
    """There was a compaction."""


encode_state, decode_state = state_codec(CopilotState)
