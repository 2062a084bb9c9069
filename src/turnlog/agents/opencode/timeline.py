"""What the messages of a session tell of each other: order, turns, steps, what a compaction kept, what was reverted.

A pure function of all of a session's rows, whichever form they had. Messages that are gone are among them, so that
numbers do not change when a row goes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from turnlog.agents.opencode.ids import message_position
from turnlog.agents.opencode.rows import Place, Row, object_of, time_of
from turnlog.model import Origin

SHELL_NOTE = "The following tool was executed by the user"
"""What OpenCode writes for the user, where the user ran a command with `!`."""

_TURN = (Origin.PROMPT, Origin.SHELL, Origin.SUBAGENT_PROMPT)


class Listed(NamedTuple):
    """A message as far as the others need to know it."""

    key: str
    info: Row
    parts: Sequence[Row]
    deleted: bool = False

    @property
    def created(self) -> int:
        """When it was made (Unix milliseconds): copies in forks keep it."""
        return time_of(self.info, "created")

    @property
    def entered(self) -> int:
        """When it came into the conversation: later than it was made, where it had to wait."""
        return max(self.created, time_of(self.info, "entered"))

    @property
    def order(self) -> tuple[int, str]:
        """OpenCode's own order of messages."""
        return self.entered, self.key


class Copy(NamedTuple):
    """That a message is a fork's copy: of which message of which session."""

    message: str
    session: str


def segments(parts: Sequence[Row]) -> list[tuple[int, int]]:
    """The model calls in a message, as ranges of its parts: one, but where early versions kept a whole turn in one."""
    ends: list[int] = []
    finished = False
    for index, part in enumerate(parts):
        kind = part.get("type")
        if kind == "step-start" and finished:
            ends.append(index)
        finished = kind == "step-finish" or (finished and kind != "step-start")
    bounds = [0, *ends, len(parts)]
    return list(pairwise(bounds))


def segment_id(message_id: str, number: int) -> str:
    """The id of the message that a model call becomes; `number` counts from 0."""
    return message_id if number == 0 else f"{message_id}.{number + 1}"


def place_messages(
    messages: Iterable[Listed], *, is_subagent: bool, copies: Mapping[str, Copy]
) -> list[tuple[Listed, Place]]:
    """Every message with its place, in order."""
    ordered = sorted(messages, key=lambda message: message.order)
    final = {message.key: copies[message.key].message if message.key in copies else message.key for message in ordered}
    last_answer = max(
        (index for index, message in enumerate(ordered) if message.info.get("role") == "assistant"), default=-1
    )
    placed: list[tuple[Listed, Place]] = []
    turns: dict[str, int] = {}
    steps: dict[int, int] = {}
    turn, parent = 0, None
    for index, message in enumerate(ordered):
        origin, step = origin_of(message.info, message.parts, is_subagent=is_subagent), None
        if origin in _TURN:
            turn += 1
        turns[message.key] = turn
        at = turns.get(str(message.info.get("parentID")), turn)
        calls = 1
        if message.info.get("role") == "assistant":
            calls = len(segments(message.parts))
            step = steps.get(at, 0) + 1
            steps[at] = step + calls - 1
        copy = copies.get(message.key)
        place = Place(
            position=message_position(message.entered, message.key),
            turn=at or None,
            step=step,
            parent=parent,
            origin=origin,
            over=index < last_answer,
            **_compaction(message, ordered[:index], final),
            copy_of=copy.message if copy else None,
            copied_from=copy.session if copy else None,
        )
        placed.append((message, place))
        parent = segment_id(final[message.key], calls - 1)
    return placed


def origin_of(info: Row, parts: Sequence[Row], *, is_subagent: bool) -> Origin | None:
    """Where a message that no model wrote came from; None for an answer."""
    if info.get("role") != "user":
        return None
    kinds = [part for part in parts if part.get("type") != "compaction"]
    if len(kinds) < len(parts):
        return Origin.COMPACTION
    if kinds and all(part.get("synthetic") is True for part in kinds):
        return Origin.SHELL if kinds[0].get("text") == SHELL_NOTE else Origin.HARNESS
    return Origin.SUBAGENT_PROMPT if is_subagent else Origin.PROMPT


class Reverted(NamedTuple):
    """A session that the user has reverted and not gone on from."""

    leaf: str
    """The last message that counts; "" when none does."""
    position: int
    """Where what does not count begins."""


def reverted(revert: object, placed: Sequence[tuple[Listed, Place]]) -> Reverted | None:
    """What `revert` of a session means; None when it is not reverted."""
    if not isinstance(revert, dict):
        return None
    facts = object_of(revert)  # pyright: ignore[reportUnknownArgumentType]  # JSON of any shape
    for message, place in placed:
        if message.key == facts.get("messageID"):
            last = segment_id(place.copy_of or message.key, len(segments(message.parts)) - 1)
            return Reverted(last if facts.get("partID") else place.parent or "", place.position)
    return None


def _compaction(message: Listed, before: Sequence[Listed], final: Mapping[str, str]) -> dict[str, Any]:
    """Of the summary that an ended compaction wrote: what it replaced, and what the request for it keeps."""
    info = message.info
    if info.get("compacted") is True:
        automatic = message.parts[0].get("auto") is True
        return {"compacts": message_position(message.entered, message.key), "automatic": automatic}
    if info.get("summary") is not True or not info.get("finish") or info.get("error"):
        return {}
    request = next((earlier for earlier in reversed(before) if earlier.key == info.get("parentID")), None)
    asked = [part for part in (request.parts if request else ()) if part.get("type") == "compaction"]
    if request is None or not asked:
        return {}
    keys = [earlier.key for earlier in before if earlier.order < request.order]
    tail = asked[0].get("tail_start_id")
    return {
        "compacts": message_position(request.created, request.key),
        "automatic": asked[0].get("auto") is True,
        "kept": tuple(final[key] for key in keys[keys.index(tail) :]) if tail in keys else (),
    }
