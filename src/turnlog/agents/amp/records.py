"""The shapes of Amp's threads (`docs/formats/amp.md`), and how they are decoded."""

from __future__ import annotations

import msgspec
from msgspec import UNSET, Raw, UnsetType

from turnlog.agents.decoding import Count
from turnlog.agents.jsonl import JsonLines


class _Wire(msgspec.Struct, rename="camel", gc=False):
    pass


class TreeRepository(_Wire, gc=False):
    """The repository of a folder."""

    ref: str | None = None
    sha: str | None = None


class Tree(_Wire, gc=False):
    """A folder in which a thread began."""

    uri: str | None = None
    repository: TreeRepository | None = None


class Platform(_Wire, gc=False):
    """The program that wrote a thread."""

    client: str | None = None
    client_version: str | None = None


class Initial(_Wire, gc=False):
    """Where a thread began."""

    trees: list[Tree] | None = None
    platform: Platform | None = None


class Environment(_Wire, gc=False):
    """The surroundings of a thread."""

    initial: Initial | None = None


class Thread(_Wire, gc=False):
    """A thread. Every field has a default, because a damaged file may lack any."""

    id: str | None = None
    created: float | None = None
    title: str | None = None
    agent_mode: str | None = None
    messages: list[Raw] | None = None
    env: Environment | None = None


class MessageState(_Wire, gc=False):
    """How an answer ended."""

    type: str | None = None
    stop_reason: str | None = None


class MessageUsage(_Wire, gc=False):
    """Tokens of a model call."""

    model: str | None = None
    input_tokens: Count | None = None
    output_tokens: Count | None = None
    cache_creation_input_tokens: Count | None = None
    cache_read_input_tokens: Count | None = None
    timestamp: str | None = None


class MessageMeta(_Wire, gc=False):
    """Facts about a message."""

    sent_at: float | None = None


class ThreadMessage(_Wire, gc=False):
    """A message of a thread."""

    role: str = ""
    message_id: int | str | None = None
    created_at: str | None = None
    content: list[Raw] | None = None
    state: MessageState | None = None
    usage: MessageUsage | None = None
    meta: MessageMeta | None = None


class CallRun(_Wire, gc=False):
    """What became of a call."""

    status: str | None = None
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET


class ImageSource(_Wire, gc=False):
    """Where a picture is."""

    type: str | None = None
    media_type: str | None = None
    data: str | None = None
    url: str | None = None
    path: str | None = None


class ThreadBlock(_Wire, gc=False):
    """A piece of a message."""

    type: str = ""
    start_time: float | None = None
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    data: str | None = None
    id: str | None = None
    name: str | None = None
    input: Raw | UnsetType = UNSET
    tool_use_id: str | None = msgspec.field(name="toolUseID", default=None)
    anthropic_id: str | None = msgspec.field(name="tool_use_id", default=None)
    """The name of `toolUseID` in the oldest threads."""
    run: CallRun | None = None
    content: Raw | UnsetType = UNSET
    is_error: bool | None = msgspec.field(name="is_error", default=None)
    source: ImageSource | None = None


THREADS = JsonLines(Thread, first_keys=("v", "id"), plausible=lambda thread: True)
"""Reads a thread out of JSON."""

MESSAGES = JsonLines(ThreadMessage, first_keys=("role",), plausible=lambda message: bool(message.role))
"""Reads a message out of JSON."""
