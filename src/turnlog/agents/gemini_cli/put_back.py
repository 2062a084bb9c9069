"""A history that is written back under new ids: 0.61 does so when the user leaves a question about a call by Escape.

The records come one by one before the checkpoint that lists them, the first of them the context and the prompt behind
it in one (before 0.61 the context alone). Each is known by its words, in the order of the list; a compaction's copies
are `lists`' business. What `/chat resume` brings from another conversation comes the same way: what is new in it
follows the last that was known.
"""

from __future__ import annotations

from turnlog.agents.gemini_cli.logged import Logged, Said, is_context, text_checksum
from turnlog.agents.gemini_cli.reading import Reading


def note_put_back(reading: Reading, logged: Logged, said: Said) -> None:
    """Make a record that repeats what stands in the list an alias of it."""
    state = reading.state
    if is_context(logged):
        _begin(reading, logged, said)
    elif state.put_back and logged.record.tokens is None:
        index = _find(reading, (logged.record.type, said.checksum))
        if index is not None:
            _note_copy(reading, logged.key, index)
    else:
        state.put_back = 0


def _begin(reading: Reading, logged: Logged, said: Said) -> None:
    """The context comes again, and in the same message the prompts that stand behind it."""
    state = reading.state
    state.put_back = 0
    texts = [piece.part.text or "" for piece in said.pieces if piece.is_text]
    standing = [key for key in state.active if state.entries[key].is_message][: len(texts)]
    wanted = [text_checksum(text) for text in texts[1:]]
    if not standing:
        return
    if [state.entries[key].key for key in standing[1:]] != wanted:
        state.active, state.leaf, state.branched = [], None, True
    else:
        state.joined[logged.key] = standing
        _note_copy(reading, logged.key, state.active.index(standing[-1]))


def _note_copy(reading: Reading, key: str, index: int) -> None:
    """The record repeats what stands here in the list; what is new behind it follows this."""
    state = reading.state
    original = state.active[index]
    state.aliases[key], state.put_back = original, index + 1
    if state.entries[original].is_message:
        state.leaf, state.branched = original, True


def _find(reading: Reading, wanted: tuple[str | None, int]) -> int | None:
    state = reading.state
    for index in range(state.put_back, len(state.active)):
        key = state.active[index]
        if (key.partition(":")[0], state.entries[key].key) == wanted:
            return index
    return None
