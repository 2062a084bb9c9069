"""Ids of messages: the log's own where it has one, else made of what was said and in which turn.

An id begins with the thread that the message was first said in. So a fork's copy has the id of its original, however
the copy's lines were stamped anew, and what the same mock or local provider calls `msg_1` in two threads stays two.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

from turnlog.agents.codex.state import OpenMessage, State

_SHORT = 48
_EDGE = 32
"""Ends of a text that are compared; a key of both is longer than a short text."""


def named(thread: str, item_id: str) -> str:
    """The id of a message whose item has an id, or that begins with a call."""
    return f"{thread}:{item_id}"


def made_up(thread: str, turn_key: str, role: str, text: str, said: dict[str, int]) -> str:
    """The id of a message that has none: what was said in the turn, and how often it was said there before."""
    digest = blake2b(f"{turn_key}\0{role}\0{text}".encode(errors="replace"), digest_size=9).hexdigest()
    times = said[digest] = said.get(digest, 0) + 1
    return f"{thread}:{digest}" if times == 1 else f"{thread}:{digest}-{times}"


def next_turn_key(turn_key: str, prompt: str) -> str:
    """The key of a turn that has no id: all prompts so far."""
    return blake2b(f"{turn_key}\0{prompt}".encode(errors="replace"), digest_size=9).hexdigest()


def text_key(text: str) -> str:
    """What a text is found again by in the other stream: a short one itself, of a longer one its length and ends."""
    length = len(text)
    return text if length <= _SHORT else f"{length} {text[:_EDGE]} {text[-_EDGE:]}"


def length_in(key: str) -> int:
    """The length of the text that a key was made of."""
    return len(key) if len(key) <= _SHORT else int(key.partition(" ")[0])


_FROM_ITEM, _FROM_EVENT = "i", "e"
"""Who told a thing that the other stream has still to tell."""

_AGAIN = "\0"
"""Behind the key of what was told in the same words before, and waits for the other stream too."""

_ROOM = 1000
"""Numbers from one text to the next where calls may turn out to stand between them."""


def next_number(state: State, place: OpenMessage) -> int:
    """The number of an item's part that nobody has told of."""
    if not state.told_first:
        number = place.parts
        place.parts = number + 1
        return number
    number = place.newest + 1
    while number in place.twins.values():
        number += 1
    place.newest = number
    place.parts = max(place.parts, number + 1)
    return number


def number_of_item(state: State, place: OpenMessage, item_id: str | None, texts: Sequence[str]) -> int:
    """The number that the other stream gave to the same thing, else the next."""
    twins = place.twins
    number = None
    if twins:
        if item_id is not None:
            number = twins.pop(_FROM_EVENT + item_id, None)
        for text in texts:
            heard = _take(twins, _FROM_EVENT + text_key(text)) if text else None
            number = heard if number is None else number
    if number is not None:
        place.newest = max(place.newest, number)
        if number == place.section:
            place.section = -1
        return number
    number = next_number(state, place)
    if item_id is not None:
        twins[_FROM_ITEM + item_id] = number
    else:
        for text in texts:
            if text:
                _await(twins, _FROM_ITEM + text_key(text), number)
    return number


def is_told(place: OpenMessage, key: str) -> bool:
    """Whether the item with this id, or of this text, was read already and waited for the event that tells it."""
    return bool(place.twins) and _take(place.twins, _FROM_ITEM + key) is not None


def number_of_event(state: State, place: OpenMessage, key: str, *, is_section: bool) -> int:
    """The number of what only an event has told so far; sections of a thought that follow each other are one part."""
    if is_section and 0 <= place.section == place.parts - 1:
        number = place.section
    else:
        number = (place.parts // _ROOM + 1) * _ROOM if state.told_first else place.parts
        place.parts = number + 1
    if is_section:
        place.section = number
    _await(place.twins, _FROM_EVENT + key, number)
    return number


def settle_layout(state: State, place: OpenMessage, *, told_first: bool) -> None:
    """Number what was heard of a response before anything told in which order the log is."""
    if place.unnumbered:
        state.layout_open, state.told_first = False, told_first
        for key, is_section in place.unnumbered:
            number_of_event(state, place, key, is_section=is_section)
        place.unnumbered = []


def _await(twins: dict[str, int], key: str, number: int) -> None:
    while key in twins:
        key += _AGAIN
    twins[key] = number


def _take(twins: dict[str, int], key: str) -> int | None:
    """The number of the first that waits; those in the same words behind it move up."""
    number = twins.pop(key, None)
    while number is not None and (following := key + _AGAIN) in twins:
        twins[key] = twins.pop(following)
        key = following
    return number
