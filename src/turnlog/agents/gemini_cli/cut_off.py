"""Calls of an answer that stand in a record of their own: Escape while they run puts a notice between it and them.

Such a record has neither words nor tokens. The answer before it has both and no calls; the calls are its own.
"""

from __future__ import annotations

from turnlog.agents.gemini_cli.logged import Logged, Said, joined_checksum, words_checksum
from turnlog.agents.gemini_cli.reading import Reading
from turnlog.agents.gemini_cli.state import OpenAnswer

_NOTES = frozenset({"info", "warning", "error"})


def note_cut_off(reading: Reading, logged: Logged, said: Said) -> int | None:
    """Make a record of calls an alias of their answer; returns the checksum of both, None when it is anything else."""
    state, record = reading.state, logged.record
    answer = state.open_answer
    if record.type in _NOTES:
        return None
    state.open_answer = None
    if record.type != "gemini":
        return None
    if record.tokens is not None:
        if not said.calls:
            state.open_answer = OpenAnswer(logged.key, words_checksum(said.text))
        return None
    if answer is None or not said.calls or said.text or record.thoughts:
        return None
    state.aliases[logged.key] = answer.key
    return joined_checksum(answer.words, said)
