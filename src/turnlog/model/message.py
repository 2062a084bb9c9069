"""Messages, and their place in a session.

One assistant message is one step: one model call. A message is a value with a stable id. Its place in a session, its
turn, what became of it and whether it is billed there are its `Membership`, because forks and resumes share messages.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from itertools import chain, count
from typing import Any, Final, Literal

from turnlog.model.base import ProviderData, Value
from turnlog.model.parts import Part
from turnlog.model.usage import Cost, Usage

Role = Literal["system", "developer", "user", "assistant"]
"""`developer` is what the agent's own harness put in (reminders, caveats, injected context), whatever role it had."""

StopReason = Literal[
    "stop", "length", "tool_use", "error", "aborted", "refusal", "pause", "context_window", "content_filter"
]
"""Why the model stopped, in one vocabulary; the provider's own word is `Message.raw_stop_reason` (R-K5, R-K28)."""


class Origin(StrEnum):
    """Where a message that no model wrote came from.

    A turn starts at `PROMPT`, `COMMAND` and `SHELL`, in a subagent's session at `SUBAGENT_PROMPT`.
    """

    PROMPT = "prompt"
    COMMAND = "command"
    COMMAND_OUTPUT = "command_output"
    SHELL = "shell"
    SHELL_OUTPUT = "shell_output"
    HARNESS = "harness"
    NOTIFICATION = "notification"
    COMPACTION = "compaction"
    SUBAGENT_PROMPT = "subagent_prompt"


UNCALLED_ORIGINS = frozenset({Origin.HARNESS, Origin.NOTIFICATION})
"""Of answers that no model call of their session gave: what the agent wrote itself, and what another session found."""


MODEL_FROM: Final = "model_from"
"""In `Message.metadata`, under the agent's name: what names the model of an answer that does not name it itself."""

SESSION: Final = "session"
"""Value of `MODEL_FROM` for a model that only the facts of the session name."""


class MessageError(Value, frozen=True, kw_only=True):
    """A failed model call that the agent logged in the place of an answer."""

    text: str
    kind: str | None = None
    status: int | None = None
    """HTTP status, where the log has it."""


class Message(Value, frozen=True, kw_only=True):
    """A role and ordered parts, as its own records said it."""

    id: str
    role: Role
    parts: tuple[Part, ...] = ()
    origin: Origin | None = None
    created_at: datetime | None = None
    completed_at: datetime | None = None
    updated_at: datetime | None = None
    """When its record was last rewritten, in logs that rewrite records: of two readings the later one holds."""
    model: str | None = None
    """The model that answered; `requested_model` differs after a fallback."""
    requested_model: str | None = None
    response_id: str | None = None
    request_id: str | None = None
    stop_reason: StopReason | None = None
    raw_stop_reason: str | None = None
    usage: Usage | None = None
    cost: Cost | None = None
    """As the agent reported it. A priced cost is computed by the store and never part of the message."""
    error: MessageError | None = None
    provider: ProviderData | None = None
    metadata: dict[str, Any] = {}


def part_ids(message: Message) -> list[str]:
    """The id under which a store has each part, in their order: `<message id>.<name>`, as unique as the message's id.

    A part with its own id has that as its name, with or without the message's id before it. Other parts are `p0`,
    `p1`, … in their order, so that parts that a later record adds change none of these ids.
    """
    prefix = f"{message.id}."
    unnamed = count()
    wanted = [prefix + (part.id.removeprefix(prefix) if part.id else f"p{next(unnamed)}") for part in message.parts]
    if len(set(wanted)) == len(wanted):
        return wanted
    taken: set[str] = set()
    found: dict[int, str] = {}
    # Parts that have their own ids keep them: a program may have called one of them `p0`.
    for index in sorted(range(len(wanted)), key=lambda index: not message.parts[index].id):
        others = (f"{wanted[index]}~{number}" for number in count(1))
        found[index] = next(id for id in chain([wanted[index]], others) if id not in taken)
        taken.add(found[index])
    return [found[index] for index in range(len(wanted))]


def is_counted_call(message: Message) -> bool:
    """Whether a message counts as a call of the model in its session.

    A failed call counts only if it has tokens that its provider counted, and so charges for.
    """
    if message.role != "assistant" or message.origin in UNCALLED_ORIGINS:
        return False
    usage = message.usage
    return message.error is None or (usage is not None and usage.exactness != "estimated" and any(usage.buckets()))


def command_line(message: Message) -> str | None:
    """The command of a `COMMAND` or `SHELL` message as it was typed (`/compact keep the names`, `! ls`).

    It is in `metadata[agent]["command"]` as `name` and `arguments`; None if the agent's module found none.
    """
    for facts in message.metadata.values():
        match facts:
            case {"command": {"name": str(name), "arguments": str(arguments)}} if name:
                return f"{name} {arguments}".rstrip()
            case _:
                continue
    return None


class Fate(StrEnum):
    """What became of a message in one session. Nothing is deleted because the agent moved on."""

    ACTIVE = "active"
    COMPACTED = "compacted"
    REWOUND = "rewound"
    RETRACTED = "retracted"
    SUPERSEDED = "superseded"
    SIDECAR = "sidecar"


class Provenance(Value, frozen=True, kw_only=True):
    """The place of a record: file and byte range, or table and key."""

    source: str
    offset: int | None = None
    length: int | None = None
    key: str | None = None


class Membership(Value, frozen=True, kw_only=True):
    """The place of a message in one session."""

    session_id: str
    message_id: str
    position: int
    """Order within the session: grows with the order of the records (for a log file, a byte offset)."""
    parent_id: str | None = None
    """The message before it on its branch."""
    turn: int | None = None
    """1-based number of the turn; never changes with paging or later records (R-K12 ff.)."""
    step: int | None = None
    """1-based number of the model call within the turn; None for messages no model wrote."""
    fate: Fate = Fate.ACTIVE
    fate_cause: str | None = None
    """Id of the event or message that caused the fate."""
    is_billed: bool = True
    """Whether the message's usage is counted for this session; a copy in a fork does not pay again."""
    records: tuple[Provenance, ...] = ()
