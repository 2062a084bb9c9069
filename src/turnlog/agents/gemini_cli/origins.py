"""Where the texts of records come from: what a person typed, and what the CLI says in the person's place.

Records of type `user` hold both, and nothing but the words tells them apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from turnlog.agents.gemini_cli.logged import CONTEXT, Logged, Said
from turnlog.agents.gemini_cli.records import Record
from turnlog.agents.gemini_cli.sources import NAME
from turnlog.model import Origin

SPOKEN = frozenset({Origin.PROMPT, Origin.SHELL, Origin.SUBAGENT_PROMPT})
"""Origins that begin a turn."""

_ASKS_SUBAGENT = (
    "Your task is to do a deep investigation of the codebase to find all relevant files",
    "Your task is to answer the following question about Gemini CLI:\n<question>",
)
"""How what the CLI asks its own subagents begins (`codebase_investigator`, `cli_help`)."""

_SHELL = "I ran the following shell command:\n```sh\n"
_SUMMARY = "<state_snapshot>"
BEGINNINGS: dict[str, Origin] = {
    CONTEXT: Origin.HARNESS,
    "[Function Response:": Origin.HARNESS,
    _SUMMARY: Origin.COMPACTION,
    _SHELL: Origin.SHELL,
    "User has manually exited Plan Mode. Switching to ": Origin.HARNESS,
    "Plan approved. Switching to ": Origin.HARNESS,
    "- **Workspace Directories:**\n": Origin.HARNESS,
    "I'm currently working in the following directories:\n": Origin.HARNESS,
    "Here is the user's editor context as a JSON object.": Origin.HARNESS,
    "Here is a summary of changes in the user's editor context": Origin.HARNESS,
    "System: Potential loop detected.": Origin.HARNESS,
    "System: Please continue.": Origin.HARNESS,
}
"""How a text begins -> where it came from."""

RECEIVED = "Binary content received. Proceeding with analysis."
"""What the CLI answers itself when a tool has read sound or video, before it shows that to the model."""

PLACEHOLDER = "[The previous response was interrupted before it completed.]"
"""What 0.61 puts where an answer to results was cut off, when it writes the whole history anew."""

_HOOKED = re.compile(r"<hook_context>.*?</hook_context>\s*", re.DOTALL)
_COMMAND = re.compile(re.escape(_SHELL) + r"(.*?)\n```\n\nThis produced the following result:\n", re.DOTALL)


SYNTHETIC: dict[str, Any] = {NAME: {"synthetic": True}}
"""Metadata of a text that nobody typed, inside of a prompt."""


class Passage(NamedTuple):
    """A piece of a text."""

    text: str
    is_synthetic: bool
    """A hook added it."""


def passages_of(text: str) -> Iterator[Passage]:
    """What hooks put before a prompt, each by itself, and the rest."""
    start = 0
    while match := _HOOKED.match(text, start):
        yield Passage(match[0], True)
        start = match.end()
    if start < len(text) or not start:
        yield Passage(text[start:], False)


def words_of(text: str) -> str:
    """A text without what hooks put before it."""
    return "".join(passage.text for passage in passages_of(text) if not passage.is_synthetic)


def own_words(said: Said) -> str:
    """All that was said but for what hooks added."""
    return "".join(words_of(piece.part.text or "") for piece in said.pieces if piece.is_text)


def origin_of(logged: Logged, said: Said, *, is_subagent: bool, is_begun: bool) -> Origin | None:
    """Where a message came from; None for the model's.

    Args:
        logged: Where it stands.
        said: What it says.
        is_subagent: Whether the session is a subagent's, to which only the first message is a prompt.
        is_begun: Whether that message was there already.
    """
    record = logged.record
    if record.type == "gemini":
        return Origin.HARNESS if record.tokens is None and says_received(said) else None
    words = own_words(said)
    if said.responses or record.type != "user" or (said.text and not words):
        return Origin.HARNESS
    for beginning, origin in BEGINNINGS.items():
        if words.startswith(beginning):
            return origin
    if not is_subagent:
        return Origin.HARNESS if asks_subagent(words) else Origin.PROMPT
    return Origin.HARNESS if is_begun else Origin.SUBAGENT_PROMPT


def says_received(said: Said) -> bool:
    """Whether it is what the CLI answers itself: a thought, so that the model takes it for its own."""
    return len(said.pieces) == 1 and said.pieces[0].is_thought and said.pieces[0].part.text == RECEIVED


def is_placeholder(record: Record, said: Said) -> bool:
    """Whether it stands for an answer that nobody gave."""
    return record.type == "gemini" and record.tokens is None and said.text == PLACEHOLDER


def asks_subagent(text: str) -> bool:
    """Whether a text is what the CLI asks one of its own subagents: in 0.30 it stands in the log of the session."""
    return text.startswith(_ASKS_SUBAGENT)


def command_in(text: str) -> dict[str, str] | None:
    """The shell command that a person ran, as it was typed."""
    found = _COMMAND.match(text)
    return None if found is None else {"name": "!", "arguments": re.sub(r"\\([\\`])", r"\1", found[1])}
