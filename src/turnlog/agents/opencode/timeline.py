"""The timeline of a session: the order of its messages, turns, steps, what a compaction kept, what was reverted.

It is a function of all rows of the session, in whichever form OpenCode had them. Messages that were removed are among
them, so that numbers do not change when a row disappears.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from turnlog.agents.opencode.rows import Row, TimelineEntry, message_position, object_of, time_of
from turnlog.model import Origin

SHELL_NOTE = "The following tool was executed by the user"
"""The prompt that OpenCode writes when the user runs a command with `!`."""

_TURN_ORIGINS = (Origin.PROMPT, Origin.SHELL, Origin.SUBAGENT_PROMPT)


class ListedMessage(NamedTuple):
    """A message as the timeline needs it."""

    key: str
    info: Row
    parts: Sequence[Row]
    deleted: bool = False

    @property
    def created(self) -> int:
        """When it was created (Unix milliseconds). A fork's copies keep this time."""
        return time_of(self.info, "created")

    @property
    def entered(self) -> int:
        """When it came into the conversation (Unix milliseconds): a prompt may have to wait for a step to end."""
        return max(self.created, time_of(self.info, "entered"))

    @property
    def order(self) -> tuple[int, str]:
        """OpenCode's own order of messages."""
        return self.entered, self.key


class MessageCopy(NamedTuple):
    """The original of a message that a fork copied: its id and that of its session."""

    message: str
    session: str


def step_ranges(parts: Sequence[Row]) -> list[tuple[int, int]]:
    """The steps in a message, as ranges of its parts: one, except where early versions kept a whole turn in one."""
    ends: list[int] = []
    finished = False
    for index, part in enumerate(parts):
        kind = part.get("type")
        if kind == "step-start" and finished:
            ends.append(index)
        finished = kind == "step-finish" or (finished and kind != "step-start")
    bounds = [0, *ends, len(parts)]
    return list(pairwise(bounds))


def step_message_id(message_id: str, number: int) -> str:
    """The id of the message that a step becomes; `number` counts from 0."""
    return message_id if number == 0 else f"{message_id}.{number + 1}"


def build_timeline(
    messages: Iterable[ListedMessage], *, is_subagent: bool, copies: Mapping[str, MessageCopy]
) -> list[tuple[ListedMessage, TimelineEntry]]:
    """Every message with its timeline entry, in order.

    Args:
        messages: All messages of the session, removed ones included.
        is_subagent: Whether the session is a subagent's.
        copies: By key, the originals of messages that a fork copied.
    """
    ordered = sorted(messages, key=lambda message: message.order)
    ids = {message.key: copies[message.key].message if message.key in copies else message.key for message in ordered}
    last_answer = max(
        (index for index, message in enumerate(ordered) if message.info.get("role") == "assistant"), default=-1
    )
    timeline: list[tuple[ListedMessage, TimelineEntry]] = []
    turns: dict[str, int] = {}
    steps: dict[int, int] = {}
    turn, parent = 0, None
    for index, message in enumerate(ordered):
        origin, step = origin_of(message.info, message.parts, is_subagent=is_subagent), None
        if origin in _TURN_ORIGINS:
            turn += 1
        turns[message.key] = turn
        # An answer belongs to the turn of the prompt that it names, which need not be the last one before it.
        own_turn = turns.get(str(message.info.get("parentID")), turn)
        count = 1
        if message.info.get("role") == "assistant":
            count = len(step_ranges(message.parts))
            step = steps.get(own_turn, 0) + 1
            steps[own_turn] = step + count - 1
        copy = copies.get(message.key)
        entry = TimelineEntry(
            position=message_position(message.entered, message.key),
            turn=own_turn or None,
            step=step,
            parent=parent,
            origin=origin,
            is_over=index < last_answer,
            **_compaction(message, ordered[:index], ids),
            copy_of=copy.message if copy else None,
            copied_from=copy.session if copy else None,
        )
        timeline.append((message, entry))
        parent = step_message_id(ids[message.key], count - 1)
    return timeline


def origin_of(info: Row, parts: Sequence[Row], *, is_subagent: bool) -> Origin | None:
    """The origin of a message that no model wrote; None for an answer."""
    if info.get("role") != "user":
        return None
    others = [part for part in parts if part.get("type") != "compaction"]
    if len(others) < len(parts):
        return Origin.COMPACTION
    if others and all(part.get("synthetic") is True for part in others):
        return Origin.SHELL if others[0].get("text") == SHELL_NOTE else Origin.HARNESS
    return Origin.SUBAGENT_PROMPT if is_subagent else Origin.PROMPT


class RevertPoint(NamedTuple):
    """Where a session was reverted to, which was not continued since."""

    leaf: str
    """Id of the last message that counts; "" when none does."""
    position: int
    """Position of the first message that does not count."""


def find_revert_point(revert: object, timeline: Sequence[tuple[ListedMessage, TimelineEntry]]) -> RevertPoint | None:
    """The revert point that the `revert` of a session names; None when the session is not reverted."""
    if not isinstance(revert, dict):
        return None
    facts = object_of(revert)  # pyright: ignore[reportUnknownArgumentType]  # JSON of any shape
    for message, entry in timeline:
        if message.key == facts.get("messageID"):
            last = step_message_id(entry.copy_of or message.key, len(step_ranges(message.parts)) - 1)
            return RevertPoint(last if facts.get("partID") else entry.parent or "", entry.position)
    return None


def _compaction(message: ListedMessage, before: Sequence[ListedMessage], ids: Mapping[str, str]) -> dict[str, Any]:
    """Of the summary of a finished compaction: what it replaced, and what it kept. Of any other message nothing.

    Args:
        message: The message.
        before: The messages before it, in order.
        ids: By key, the ids of messages in the model.
    """
    info = message.info
    if info.get("compacted") is True:
        # A row of `session_message` holds request and summary of a compaction at once.
        automatic = message.parts[0].get("auto") is True
        return {"compacts": message_position(message.entered, message.key), "automatic": automatic}
    if info.get("summary") is not True or not info.get("finish") or info.get("error"):
        return {}
    request = next((earlier for earlier in reversed(before) if earlier.key == info.get("parentID")), None)
    details = next((part for part in (request.parts if request else ()) if part.get("type") == "compaction"), None)
    if request is None or details is None:
        return {}
    keys = [earlier.key for earlier in before if earlier.order < request.order]
    tail = details.get("tail_start_id")
    return {
        "compacts": message_position(request.created, request.key),
        "automatic": details.get("auto") is True,
        "kept": tuple(ids[key] for key in keys[keys.index(tail) :]) if tail in keys else (),
    }
