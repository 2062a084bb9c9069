"""The bodies of requests that the server decodes itself, strictly and into the model's own values.

Their sizes are bounded here, where a client can be told which field it is. `server.openapi` describes them.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, TypeAlias

import msgspec

from turnlog.hooks.send import LONGEST_TASK
from turnlog.model import Message, Ownership, ToolCallPart

Time: TypeAlias = Annotated[datetime, msgspec.Meta(tz=True)]
"""With its zone."""

Id: TypeAlias = Annotated[str, msgspec.Meta(min_length=1, max_length=512)]
"""What a program calls a session, a message or a call."""

Name: TypeAlias = Annotated[str, msgspec.Meta(max_length=1000)]


class RequestBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a client sends."""


class SessionBody(RequestBody, frozen=True, kw_only=True):
    """A session that a program writes. What is left out, or null, stays as it is."""

    external_id: Id
    """The program's own id of it. The session's is `<agent>:<external id>`."""
    agent: Annotated[str, msgspec.Meta(pattern="^[a-z0-9][a-z0-9._-]{0,63}$")] = "turnlog"
    """The program's name, in small letters; no agent whose logs turnlog reads."""
    title: Name | None = None
    """Without one, the beginning of the first prompt is the title."""
    summary: Annotated[str, msgspec.Meta(max_length=100_000)] | None = None
    """Goes into the metadata."""
    cwd: Annotated[str, msgspec.Meta(max_length=4096)] | None = None
    git_branch: Name | None = None
    git_commit: Name | None = None
    created_at: Time | None = None
    updated_at: Time | None = None
    ownership: Ownership | None = None
    metadata: dict[str, Any] = {}
    """Added to what is there."""


class MessagesBody(RequestBody, frozen=True, kw_only=True):
    """Messages of a session, in their order."""

    messages: Annotated[list[Message], msgspec.Meta(max_length=1000)] = []
    retracted: Annotated[list[Id], msgspec.Meta(max_length=1000)] = []
    """Ids of messages that leave the conversation; they stay, with the fate `retracted`."""


class ToolCallBody(RequestBody, frozen=True, kw_only=True):
    """A tool call, and the message that made it."""

    message_id: Id
    call: ToolCallPart


class TaskBody(RequestBody, frozen=True, kw_only=True):
    """A task to create."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=LONGEST_TASK)]
    id: Annotated[str, msgspec.Meta(min_length=1, max_length=LONGEST_TASK)] | None = None
    """What `ownership.task` of its sessions is; without one, a new one is made."""


class TaskNameBody(RequestBody, frozen=True, kw_only=True):
    """Another name of a task."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=LONGEST_TASK)]
