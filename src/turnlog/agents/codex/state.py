"""What a fold of a Codex rollout remembers between two reads: the current step, and recent messages and calls.

It also decides which message and which part a record belongs to.

Every collection is bounded, those of one turn by that turn. Entries are dropped by the order of records alone, so the
same bytes always leave the same state, however they were divided into reads. What was dropped here is still in the
store.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

import msgspec

from turnlog.agents.codex.records import CodexUsage
from turnlog.agents.decoding import keep_newest, state_codec

_MOST_MESSAGES = 24

_MOST_CALLS = 128

_MOST_TURNS = 64

_MOST_PROMPTS = 8

_MOST_CHILDREN = 63

_STORED_NAMES = {
    "created_at": "created",
    "last_written_at": "last",
    "texts_first": "told_first",
    "layout_unknown": "layout_open",
    "assistant_message": "answer",
    "assistant_text_key": "answer_key",
    "assistant_response": "answer_response",
    "current_message": "open",
    "text_counts": "said",
    "unmatched_prompts": "heard",
    "usage_recorded": "recorded",
    "reviewed_elsewhere": "reviewed_apart",
    "review_ended": "reviewed",
    "attached_images": "attached",
    "trigger_turn": "trigger",
    "begun_by_user": "by_person",
    "base_threads": "bases",
}
"""Fields that have another name in stored states. A state is stored with the source's cursor and must stay readable."""


class CopiedThread(msgspec.Struct, array_like=True):
    """A thread whose history is being copied."""

    id: str
    created_at: float | None
    """When it began, in Unix seconds."""
    version: str | None
    """Version of the Codex that began it."""


class CodexState(msgspec.Struct, omit_defaults=True, rename=_STORED_NAMES):
    """What is kept between two reads."""

    thread: str | None = None
    """External id of the file's own session, where the path does not have it."""
    lines: int = 0
    """Lines read so far."""
    named: bool = False
    """The file's own `session_meta` was read."""
    origin: str | None = None
    """Thread whose history is being copied; None in this thread's own records."""
    carried_lines: int = 0
    """The number of lines that were handed over from another session; they begin the log."""
    carried_message: str | None = None
    """Of these lines, the message that the newest one is of, by its id in that session."""
    is_imported: bool = False
    """The turn was copied from a session of another agent."""
    copied_threads: list[CopiedThread] = []
    """Threads whose own first lines are in the copy. A fork of a fork copies several."""
    base_threads: tuple[str, ...] = ()
    """Threads whose history this one continues without a copy of it."""
    created_at: float | None = None
    """When the thread began, in Unix seconds."""
    last_written_at: float | None = None
    """Time of the newest record, in Unix seconds, while a copy is read."""
    is_subagent: bool = False
    lacks_parent: bool = False
    """No record has named the parent of this subagent yet."""
    version: str | None = None
    """Version of the Codex that began the thread."""
    pairwise: bool = False
    """Layout: each call is written with its output, before the next call of the same response."""
    texts_first: bool = False
    """Layout: events with all texts of a response are logged before its items."""
    layout_unknown: bool = False
    """No record has shown yet whether `texts_first` holds: in a migrated log the version of a copy is missing."""
    model: str | None = None
    provider: str | None = None
    effort: str | None = None
    service_tier: str | None = None
    """The tier that requests ask for."""
    turn_id: str | None = None
    turn_key: str = ""
    """What ids that are made of texts contain of the turn (see `derived_id`)."""
    turn: int = 0
    step: int = 0
    titled: bool = False
    leaf: str | None = None
    """Id of the newest message."""
    assistant_message: str | None = None
    """Id of the newest assistant message."""
    assistant_text_key: str | None = None
    """Key of its last text (see `text_key`)."""
    assistant_response: str | None = None
    """The API's id of its response."""
    current_message: str | None = None
    """Id of the assistant message that the next item belongs to."""
    messages: dict[str, CodexPendingMessage] = {}
    calls: dict[str, CodexPendingCall] = {}
    text_counts: dict[str, int] = {}
    """How often each text without an id occurred in this turn, by its digest."""
    unmatched_prompts: dict[str, str] = {}
    """Stream and key of a prompt that only one of the two streams has -> its message."""
    prompts: dict[str, str] = {}
    """Id of a prompt -> key of its text: a compaction may keep the prompt under another id, or under none."""
    turns: list[str | None] = []
    """Id of the message before each turn: the target of a rollback."""
    inherits_totals: bool = False
    """The totals began with those of the thread that this one is a fork of."""
    totals: CodexUsage | None = None
    """The thread's running token totals."""
    usage_recorded: bool = False
    """A `token_usage_record` counted the newest response: a `token_count` only repeats it."""
    reviewing: bool = False
    """A review is going on."""
    reviewed_elsewhere: bool = False
    """Another thread makes the review: its records are in its own log, and events here only repeat them."""
    review_ended: bool = False
    """A review has just ended: an assistant message that is the next item is its findings."""
    attached_images: int = 0
    """Images that tools attached and whose messages were not read yet."""
    trigger_turn: bool = False
    """The next message between agents begins a turn."""
    rolled_back: bool = False
    begun_by_user: bool = False
    """A person, and no turn of another thread, began this turn of a subagent."""
    in_turn: bool = False
    """A turn has begun and no record has ended it yet."""
    children: list[str] = []
    """Threads that this one has started since its process began."""

    def remember_message(self, message_id: str, message: CodexPendingMessage) -> str | None:
        """Keep a message that may continue; return the id of the one that was dropped for it."""
        return keep_newest(self.messages, message_id, message, _MOST_MESSAGES)

    def remember_call(self, call_id: str, call: CodexPendingCall) -> None:
        """Keep a call until it can get no more results."""
        keep_newest(self.calls, call_id, call, _MOST_CALLS)

    def remember_unmatched_prompt(self, key: str, message_id: str) -> None:
        """Keep a prompt until the other stream has it too."""
        keep_newest(self.unmatched_prompts, key, message_id, _MOST_PROMPTS)

    def remember_prompt(self, message_id: str, key: str) -> None:
        """Keep a prompt until a compaction may keep it."""
        keep_newest(self.prompts, message_id, key, _MOST_TURNS)

    def remember_child(self, thread: str) -> None:
        """Keep a thread that will end when the process of this one ends."""
        if thread not in self.children:
            self.children = [*self.children[-_MOST_CHILDREN:], thread]

    def remember_turn(self, parent: str | None) -> None:
        """Keep the message before a turn."""
        self.turns.append(parent)
        if len(self.turns) > _MOST_TURNS:
            del self.turns[0]


class CodexPendingMessage(msgspec.Struct, array_like=True):
    """An assistant message that later records may continue: one response of the model, and its place."""

    position: int
    parent: str | None
    turn: int | None
    step: int | None
    copied: bool
    parts: int = 0
    """How many part numbers are given so far."""
    items: int = 0
    """How many items of the response were read; events are not counted."""
    has_usage: bool = False
    usage_first: bool = False
    """Its token counts came before its items, as up to about 0.4x."""
    has_output: bool = False
    """The output of one of its calls was read."""
    newest_part: int = -1
    """The highest part number that an item has."""
    open_section: int = -1
    """Number of the newest section of reasoning that only an event has, as long as the next event may add another."""
    unmatched: dict[str, int] = {}
    """Stream and item id, or stream and key of a text -> part number, until the other stream has the same."""
    unnumbered: list[tuple[str, bool]] = []
    """Keys of texts that events had while the layout was unknown, and whether each is a section of reasoning (see
    `CodexState.layout_unknown`)."""
    handed_over: bool = False
    sections: dict[int, str] = {}
    """Part number -> text of a section that follows another one, and that only an event has. It is a separate part,
    or a further section of the part before: the item says which, or that there is none when the response ends."""
    service_tier: str | None = None
    """The tier that its request asked for. Settings that change while it is under way are those of the next one."""


class CallOutcome(msgspec.Struct, array_like=True, omit_defaults=True):
    """How a call ended, from `item_completed` or an event that came before the call's output."""

    position: int
    length: int
    status: str | None = None
    exit_code: int | None = None
    duration_ms: int | None = None
    output: str | None = None
    """Kept until the turn ends, in case the output itself never comes."""


class CodexPendingCall(msgspec.Struct, array_like=True):
    """A call that may still get a result."""

    message_id: str
    name: str
    number: int
    has_output: bool = False
    running: bool = False
    """Its output said that it continues in the background."""
    aborted: bool = False
    outcome: CallOutcome | None = None
    started_at: float | None = None
    """When the call was logged, in Unix seconds; only of calls that run code."""
    ended_at: float | None = None
    """When its first output was logged, in Unix seconds; only of calls that run code."""


encode_state, decode_state = state_codec(CodexState)


# -- ids of messages
#
# The id of a message is the log's own where it has one, else made of its text and turn. It begins with the thread that
# wrote the message first, or with the turn if its id is a random UUID. So the copy in a fork has the id of its
# original, although its lines have new times, and two messages that a local provider calls `msg_1` in two threads stay
# two.


_SHORT_TEXT = 48
"""Characters up to which a text is its own key."""

_COMPARED_CHARACTERS = 32
"""Characters at either end of a longer text in its key, which so is longer than any short text."""


def id_in_thread(prefix: str, item_id: str) -> str:
    """The id of a message whose first item has an id, or is a call."""
    return f"{prefix}:{item_id}"


def derived_id(prefix: str, turn_key: str, role: str, text: str, text_counts: dict[str, int]) -> str:
    """The id of a message that has none in the log: made of its text and turn, and of how often the turn has the text.

    `text_counts` counts the texts of the turn, and is updated.
    """
    digest = blake2b(f"{turn_key}\0{role}\0{text}".encode(errors="replace"), digest_size=9).hexdigest()
    times = text_counts[digest] = text_counts.get(digest, 0) + 1
    return f"{prefix}:{digest}" if times == 1 else f"{prefix}:{digest}-{times}"


def next_turn_key(turn_key: str, prompt: str) -> str:
    """The key of a turn that has no id, made of all prompts so far."""
    return blake2b(f"{turn_key}\0{prompt}".encode(errors="replace"), digest_size=9).hexdigest()


def text_key(text: str) -> str:
    """The key of a text in both streams: a short text itself; of a longer one its length and its ends."""
    length = len(text)
    return text if length <= _SHORT_TEXT else f"{length} {text[:_COMPARED_CHARACTERS]} {text[-_COMPARED_CHARACTERS:]}"


def length_of_key(key: str) -> int:
    """The length of the text that a key was made of."""
    return len(key) if len(key) <= _SHORT_TEXT else int(key.partition(" ")[0])


# -- numbers of the parts of a response
#
# Both streams of a rollout have the texts and the reasoning of a response. The record that comes second finds the
# number of the first by the id of the item, or by the text where there is none. Parts are in the order of the items. Up
# to 0.6x the events of all texts of a response come before any of its items: there the numbers of texts leave room for
# the calls between them.


_FROM_ITEM, _FROM_EVENT = "i", "e"
"""Which stream has a part that the other stream does not have yet: the first character of keys in `unmatched`."""

_REPEATED = "\0"
"""Added to the key of a text that equals another one which also waits for the other stream."""

_NUMBERS_BETWEEN_TEXTS = 1000
"""Difference between the numbers of two consecutive texts, which leaves room for calls between them."""

_NUMBERS_BETWEEN_SECTIONS = 50
"""The same from one section of reasoning to the next: however many sections an item has, the text after it has the
number that it would have after one."""


def number_of_item(state: CodexState, place: CodexPendingMessage, item_id: str | None, texts: Sequence[str]) -> int:
    """The number of an item's part: that of the event with the same part, else the next."""
    numbers = _take_events(place.unmatched, item_id, texts)
    if numbers:
        _take_sections(state, place, numbers)
        place.newest_part = max(place.newest_part, numbers[0])
        return numbers[0]
    number = next_number(state, place)
    if item_id is not None:
        place.unmatched[_FROM_ITEM + item_id] = number
    else:
        for text in texts:
            if text:
                _add_pending(place.unmatched, _FROM_ITEM + text_key(text), number)
    return number


def _take_events(unmatched: dict[str, int], item_id: str | None, texts: Sequence[str]) -> list[int]:
    """The numbers of the events that have the same as an item: one, or one for each section of its reasoning."""
    if not unmatched:
        return []
    numbers = [unmatched.pop(_FROM_EVENT + item_id, None)] if item_id is not None else []
    numbers += [_take_pending(unmatched, _FROM_EVENT + text_key(text)) for text in texts if text]
    return [number for number in numbers if number is not None]


def _take_sections(state: CodexState, place: CodexPendingMessage, numbers: list[int]) -> None:
    """Give the sections with these numbers to one item. Its part has the first number; nothing has the others."""
    for number in numbers:
        place.sections.pop(number, None)
    if place.open_section in numbers:
        place.open_section = -1
    unused = numbers[1:]
    # In a migrated log one event has all sections of an item. The parts after it must have the same numbers here.
    while not state.texts_first and place.parts - 1 in unused:
        place.parts -= 1


def number_of_event(state: CodexState, place: CodexPendingMessage, key: str, *, is_section: bool) -> int:
    """The number of a part that only an event has so far.

    Events do not say whether sections of reasoning that follow each other are of one item, or of several in a row
    (0.63). So each has a number, and all but the first are in `CodexPendingMessage.sections`.
    """
    follows = is_section and 0 <= place.open_section == place.parts - 1
    if not state.texts_first:
        number = place.parts
    elif follows:
        number = place.open_section + _NUMBERS_BETWEEN_SECTIONS
    else:
        number = (place.parts // _NUMBERS_BETWEEN_TEXTS + 1) * _NUMBERS_BETWEEN_TEXTS
    place.parts = number + 1
    if is_section:
        place.open_section = number
    if follows:
        place.sections[number] = ""
    _add_pending(place.unmatched, _FROM_EVENT + key, number)
    return number


def was_read(place: CodexPendingMessage, key: str) -> bool:
    """Whether the item with this id or text key was read before its event. It is matched with the event then."""
    return bool(place.unmatched) and _take_pending(place.unmatched, _FROM_ITEM + key) is not None


def next_number(state: CodexState, place: CodexPendingMessage) -> int:
    """The number of a new part that no event has had."""
    if not state.texts_first:
        number = place.parts
        place.parts = number + 1
        return number
    number = place.newest_part + 1
    while number in place.unmatched.values():
        number += 1
    place.newest_part = number
    place.parts = max(place.parts, number + 1)
    return number


def resolve_layout(state: CodexState, place: CodexPendingMessage, *, texts_first: bool) -> None:
    """Settle the layout of a copy, and number the texts that events had while it was unknown."""
    if place.unnumbered:
        state.layout_unknown, state.texts_first = False, texts_first
        for key, is_section in place.unnumbered:
            number_of_event(state, place, key, is_section=is_section)
        place.unnumbered = []


def _add_pending(unmatched: dict[str, int], key: str, number: int) -> None:
    while key in unmatched:
        key += _REPEATED
    unmatched[key] = number


def _take_pending(unmatched: dict[str, int], key: str) -> int | None:
    """Remove the first part with a key and return its number. Parts with the same key after it move up."""
    number = unmatched.pop(key, None)
    while number is not None and (following := key + _REPEATED) in unmatched:
        unmatched[key] = unmatched.pop(following)
        key = following
    return number
