"""The numbers of a response's parts, which both streams tell: whoever comes second finds the number of the first.

Texts and thoughts meet by the id of their item, without one by what the text is found again by. Parts stand in the
order of the items. Up to 0.6x a user interface was told all texts of a response before any of its items was logged:
there texts keep room between them for the calls that turn out to stand there.
"""

from __future__ import annotations

from collections.abc import Sequence

from turnlog.agents.codex import identity
from turnlog.agents.codex.state import OpenMessage, State

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
            heard = _take(twins, _FROM_EVENT + identity.text_key(text)) if text else None
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
                _await(twins, _FROM_ITEM + identity.text_key(text), number)
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
