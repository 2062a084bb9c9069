"""What is remembered of a stream of `codex exec --json`, and where a thing that it tells of stands."""

from __future__ import annotations

import msgspec

from turnlog.agents.printed import Printed, PrintedMessage
from turnlog.agents.printed_fold import StreamState
from turnlog.agents.reading import keep_newest

_ITEMS = 256


class OpenItem(msgspec.Struct, array_like=True):
    """An item that may go on."""

    message: PrintedMessage
    part_id: str
    call_id: str


class HeldLine(msgspec.Struct, array_like=True):
    """A line whose session only the next one tells."""

    json: str
    position: int
    length: int
    model: str | None = None
    folder: str | None = None


class ExecState(StreamState):
    """What a fold of a stream remembers."""

    open: str | None = None
    """The message that is being printed."""
    messages: dict[str, PrintedMessage] = {}
    items: dict[str, OpenItem] = {}
    plan: str | None = None
    """The newest plan, by its checksum."""
    failure: str | None = None
    """What the newest error said: the end of the turn says it again."""
    settings: HeldLine | None = None
    """The first line of a run up to 0.43, until the prompt has come."""
    model: str | None = None
    """The model that the settings name."""


def opened(
    state: ExecState, printed: Printed, identity: str, *, starts_anew: bool = False, call_id: str | None = None
) -> OpenItem:
    """Where an item stands: known already, else in the message that is being printed, or in a new one.

    `call_id` is that of a call which the stream names itself; the ids of items are numbers of the run.
    """
    known = state.items.get(identity) if identity else None
    if known is not None:
        return known
    message = current(state)
    if message is None or starts_anew:
        message = printed.begin_answer(state.model)
        state.open = message.id
        state.messages = {message.id: message}
    run = message.id.rpartition(":")[2]
    part_id = message.next_part()
    own_id = f"exec-{run}:{identity or message.parts}"
    found = OpenItem(msgspec.structs.replace(message), part_id, call_id or own_id)
    keep_newest(state.items, identity, found, _ITEMS)
    return found


def current(state: ExecState) -> PrintedMessage | None:
    """The message that is being printed."""
    return state.messages.get(state.open) if state.open is not None else None


def message_of(state: ExecState, item: OpenItem) -> PrintedMessage:
    """The message of an item; the one being printed is the same object for all its items."""
    return state.messages.get(item.message.id, item.message)


def forget_run(state: ExecState) -> None:
    """Another run begins, whose items are numbered anew."""
    state.open, state.messages, state.items, state.plan = None, {}, {}, None
