"""What a fold of a Gemini CLI log remembers between two reads: the list of messages as the log's patches left it.

Checkpoints and rewinds name what the list holds by id alone, so every id of the session is remembered, with a
checksum of what it said, and no text.
"""

from __future__ import annotations

import msgspec

from turnlog.agents.states import codec_of
from turnlog.model import Origin


class Entry(msgspec.Struct, array_like=True):
    """An id that the session has had."""

    position: int
    is_message: bool
    """False: results that went to their calls, and notes that became events."""
    turn: int | None = None
    step: int | None = None
    key: int = 0
    """A checksum of what it said, by which its copy under another id is known."""
    origin: Origin | None = None
    is_full: bool = False
    """Was read from a record of its own, which has all that a checkpoint drops."""
    is_at_tool: bool = False
    """A whole answer with a call that was cancelled, or none yet: what may be interrupted behind it is a tool."""


class OpenAnswer(msgspec.Struct, array_like=True):
    """An answer of which no call is known yet."""

    key: str
    words: int
    """A checksum of what it said."""


class State(msgspec.Struct):
    """All of it."""

    session: str | None = None
    """External id of the session."""
    parent: str | None = None
    """External id of the session that started this one, where only the header tells that it is a subagent's."""
    file: str = ""
    """What tells this file from another of the same session: when its first header was written."""
    lines: int = 0
    entries: dict[str, Entry] = {}
    active: list[str] = []
    """The conversation as the agent would show it: keys of entries."""
    aliases: dict[str, str] = {}
    """Key of a copy that a compaction or a refusal made -> key of the original."""
    joined: dict[str, list[str]] = {}
    """Key of such a copy of several messages in a row -> keys of the originals."""
    answered: dict[str, None] = {}
    """Calls with a result."""
    leaf: str | None = None
    """Key of the newest message that is in the list."""
    last_at: int = 0
    """The newest time that a record told, in seconds."""
    turn: int = 0
    step: int = 0
    branched: bool = False
    """Something left the list."""
    reopened: bool = False
    """A header came again: what follows is the beginning of a resume."""
    put_back: int = 0
    """How much of the list records have repeated under new ids, since one began to."""
    open_answer: OpenAnswer | None = None
    """The newest answer, as long as nothing but notices came behind it: its calls may."""
    titled: bool = False


encode_state, decode_state = codec_of(State)
