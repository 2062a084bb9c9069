"""What an agent's module is: it finds sources, and folds their bytes into changes of the model.

Reading is one incremental fold: `fold.feed(data, offset)` takes whole lines (or a whole small file) and returns
`Changes`; `fold.state()` is what must be kept with the cursor to go on later. Cold import, ten new lines, standard
input and rebuild all run it. A fold works on one source and never looks at another: what must meet (a subagent
and its parent's call, a spilled output and its result, a copy and its original) meets in the store, by id.

Rules that keep any split of the bytes and any order of sources equal:
- ids come from records (never from ranks), positions from byte offsets;
- the same message may be emitted many times, each time with what this feed knows of it; readings are joined by
  `turnlog.model.merge.merge_messages`, so a partial reading is enough;
- a result whose call was emitted in an earlier feed is a `ResultChange`, joined to the call by its id.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Protocol, TypeAlias, runtime_checkable

import msgspec

from turnlog.agents.changes import Changes


class SourceKind(StrEnum):
    """What a file is to a session."""

    SESSION = "session"
    SUBAGENT = "subagent"
    SIDECAR = "sidecar"
    """A small file of facts about a session (title, subagent meta): archived and read whole each time it changes."""
    SPILL = "spill"
    """A tool output that was too large for the log: archived and joined to its result by name."""
    STREAM = "stream"
    """What an agent printed while it ran, kept by the user: counts only for sessions that have no log of their own."""
    HOOKS = "hooks"
    """What an agent's hooks told while it ran: each piece counts until the session's own log has it."""


Version: TypeAlias = tuple[int, int, int, int]
"""About how many bytes, when last changed (Unix nanoseconds), and two numbers that differ when the rows do."""


HOOKED_FROM = 1 << 52
"""Positions from here on are of what hooks told: behind all that a log holds, and exact in JSON's numbers."""


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """A file (or a table of a database) that an agent writes."""

    agent: str
    path: str
    """Absolute path."""
    root: str
    """The agent's home it was found under; nothing outside the root is ever read for it."""
    kind: SourceKind = SourceKind.SESSION
    session_id: str | None = None
    """Id of the session it belongs to, when the path tells."""
    project: str | None = None
    """What the agent keeps it under, when that tells the project: a folder's name, or the id in a database."""
    appendable: bool = True
    """Grows at its end (a log). False: rewritten whole, so a change means reading it anew."""
    version: Version | None = None
    """Of rows (see `RowAgent`), as `discover` found them: what tells whether they have changed. None for a file."""


class Detection(msgspec.Struct, frozen=True, kw_only=True):
    """Who wrote a file, as its content tells."""

    agent: str | None = None
    """None when it is none that is known, or this agent did not."""
    version: str | None = None
    """The agent's version that wrote the first record which names one."""
    source: Source | None = None
    """The file as a source of that agent."""
    sources: tuple[Source, ...] = ()
    """The sessions in it, of a file that may hold several (see `RowAgent`); `source` is the only one then, if any."""
    reason: str | None = None
    """Why it is nobody's."""


class Fold(Protocol):
    """The reading of one source, resumable."""

    def feed(self, data: bytes, offset: int) -> Changes:
        """Read `data`, which stands at byte `offset` of the source.

        For an appendable source `data` is whole lines (its last byte is a newline, unless `data` ends with the
        source's last line and that is complete JSON; a newline that comes behind it later is not fed); otherwise it
        is the whole file and `offset` is 0.
        """
        ...

    def state(self) -> bytes:
        """What `Agent.fold` needs to go on after the bytes fed so far: small, and the same for every split of them."""
        ...


@runtime_checkable
class Agent(Protocol):
    """One coding agent: where its logs lie, and how they are read. Third parties register theirs by entry point."""

    name: str
    """As in ids and on the command line: `claude-code`."""
    display_name: str
    parser_version: int
    """Raised when the same bytes give other changes than before; `turnlog rebuild` then reads the archive anew."""

    def roots(self) -> Sequence[Path]:
        """The agent's homes on this machine, by its own rules; those that do not exist are left out."""
        ...

    def discover(self, roots: Iterable[Path] | None = None) -> Iterator[Source]:
        """Every source under the roots. A root that is missing gives none; nothing is opened."""
        ...

    def detect(self, path: Path, head: bytes) -> Detection:
        """Whether `head`, the beginning of the file at `path`, is this agent's. Nothing is opened.

        It is 64 KB; where nobody takes these, the rest of their last line and as much again.
        """
        ...

    def fold(self, source: Source, state: bytes | None = None) -> Fold:
        """A fold at the start of `source`, or where `state` left off."""
        ...

    def structured_result(self, record: bytes, tool_call_id: str) -> msgspec.Raw | None:
        """The agent's own JSON of a result, from the archived record that brought it."""
        ...
