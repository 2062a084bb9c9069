"""Which message and which part a record belongs to: ids of messages, and numbers of the parts of a response.

The id of a message is the log's own where it has one, else made of its text and turn. It begins with the thread that
wrote the message first. So the copy in a fork has the id of its original, although its lines have new times, and two
messages that a local provider calls `msg_1` in two threads stay two.

Both streams of a rollout have the texts and the reasoning of a response. The record that comes second finds the number
of the first by the id of the item, or by the text where there is none. Parts are in the order of the items. Up to 0.6x
the events of all texts of a response come before any of its items: there the numbers of texts leave room for the calls
that stand between them.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

from turnlog.agents.codex.state import CodexPendingMessage, CodexState

_SHORT_TEXT = 48
"""Characters up to which a text is its own key."""
_COMPARED_CHARACTERS = 32
"""Characters at either end of a longer text in its key, which so is longer than any short text."""


def id_in_thread(thread: str, item_id: str) -> str:
    """The id of a message whose first item has an id, or is a call."""
    return f"{thread}:{item_id}"


def derived_id(thread: str, turn_key: str, role: str, text: str, text_counts: dict[str, int]) -> str:
    """The id of a message that has none in the log: made of its text and turn, and of how often the turn has the text.

    `text_counts` counts the texts of the turn, and is updated.
    """
    digest = blake2b(f"{turn_key}\0{role}\0{text}".encode(errors="replace"), digest_size=9).hexdigest()
    times = text_counts[digest] = text_counts.get(digest, 0) + 1
    return f"{thread}:{digest}" if times == 1 else f"{thread}:{digest}-{times}"


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


_FROM_ITEM, _FROM_EVENT = "i", "e"
"""Which stream has a part that the other stream does not have yet: the first character of keys in `unmatched`."""

_REPEATED = "\0"
"""Added to the key of a text that equals another one which also waits for the other stream."""

_NUMBERS_BETWEEN_TEXTS = 1000
"""Numbers from one text to the next, where calls may stand between them."""


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


def number_of_item(state: CodexState, place: CodexPendingMessage, item_id: str | None, texts: Sequence[str]) -> int:
    """The number of an item's part: that of the event with the same part, else the next."""
    unmatched = place.unmatched
    number = None
    if unmatched:
        if item_id is not None:
            number = unmatched.pop(_FROM_EVENT + item_id, None)
        for text in texts:
            # Every section of a reasoning item has an event of its own: all of them are matched now.
            from_event = _take_pending(unmatched, _FROM_EVENT + text_key(text)) if text else None
            number = from_event if number is None else number
    if number is not None:
        place.newest_part = max(place.newest_part, number)
        if number == place.open_section:
            place.open_section = -1
        return number
    number = next_number(state, place)
    if item_id is not None:
        unmatched[_FROM_ITEM + item_id] = number
    else:
        for text in texts:
            if text:
                _add_pending(unmatched, _FROM_ITEM + text_key(text), number)
    return number


def was_read(place: CodexPendingMessage, key: str) -> bool:
    """Whether the item with this id or text key was read before its event. It is matched with the event then."""
    return bool(place.unmatched) and _take_pending(place.unmatched, _FROM_ITEM + key) is not None


def number_of_event(state: CodexState, place: CodexPendingMessage, key: str, *, is_section: bool) -> int:
    """The number of a part that only an event has so far. Sections of reasoning that follow each other are one part."""
    if is_section and 0 <= place.open_section == place.parts - 1:
        number = place.open_section
    else:
        number = (
            (place.parts // _NUMBERS_BETWEEN_TEXTS + 1) * _NUMBERS_BETWEEN_TEXTS if state.texts_first else place.parts
        )
        place.parts = number + 1
    if is_section:
        place.open_section = number
    _add_pending(place.unmatched, _FROM_EVENT + key, number)
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
