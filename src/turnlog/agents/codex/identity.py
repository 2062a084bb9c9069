"""Ids of messages: the log's own where it has one, else made of what was said and in which turn.

An id begins with the thread that the message was first said in. So a fork's copy has the id of its original, however
the copy's lines were stamped anew, and what the same mock or local provider calls `msg_1` in two threads stays two.
"""

from __future__ import annotations

from hashlib import blake2b

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
