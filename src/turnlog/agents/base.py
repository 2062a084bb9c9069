"""What an agent is: one class that says all that turnlog knows of it, and folds that read its sources.

The class (`Agent`) is a description: name and colour, homes, command line, hooks, and methods that find and read its
logs. It imports what reads them where it is used, so that listing the agents loads no fold. Nothing outside of an
agent's package knows its name; whatever differs between agents is an attribute or a method here.

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

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Protocol, TypeAlias, TypeGuard

import msgspec

from turnlog import paths
from turnlog.agents.commands import CommandForm
from turnlog.agents.files import holds_folder

if TYPE_CHECKING:
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
"""The first position of what hooks report: after every offset of a log, and still exact as a number in JSON."""

KNOWN_FROM = "known_from"
"""A key of a session's metadata, with the value "hooks" until the session's own log has been read."""


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


class Colour(NamedTuple):
    """The colour of an agent's mark in the page, as `#rrggbb`: at least 3:1 on the surfaces of each theme."""

    light: str
    dark: str


class Retention(NamedTuple):
    """That an agent deletes sessions which were not used for some days."""

    days: int
    """Unless its settings say otherwise."""
    setting: str
    """The name of the number of days in these settings."""
    file: str
    """The settings, JSON, in the agent's home."""


class HookHandler(NamedTuple):
    """What an agent's settings say of the command that it starts at an event."""

    fields: Mapping[str, Any]
    """Besides the command."""
    since: tuple[int, ...] = ()
    """The oldest version of the agent that is known to know the event; empty: every version does."""


class HookSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How hooks come into an agent's own settings: as commands at events, or as a plugin (docs/how-to/hooks.md)."""

    home: paths.Folders
    """The folder of the settings: the first of these."""
    file: str
    """Below that folder."""
    project_file: str
    """Below a project's folder."""
    events: Mapping[str, HookHandler] = {}
    """Event -> what stands there: `{"hooks": {EVENT: [{"hooks": [HANDLER]}]}}` in a file of JSON."""
    off: tuple[tuple[tuple[str, ...], Any], ...] = ()
    """Settings that turn all hooks off: where, and the value that does it."""
    plugin: Path | None = None
    """Instead of events: a program that is copied there, with the store's folder for `"{{FOLDER}}"`. Its first line
    begins with `// turnlog's plugin`."""
    note: str = ""
    """What the user must know once they are in."""


TurnMarker: TypeAlias = Literal["start", "end", "asks", "closed"]
"""`start`: a turn begins, and a marker of its end follows. `end`: the turn is over. `asks`: a permission is wanted.
`closed`: the agent itself has ended."""


HOOK_MARKERS: Final[Mapping[str, TurnMarker]] = {
    "hook:Stop": "end",
    "hook:StopFailure": "end",
    "hook:SubagentStop": "end",
    "hook:AfterAgent": "end",
    "hook:idle": "end",
    "hook:PermissionRequest": "asks",
    "hook:permission": "asks",
    "hook:Notification/agent_needs_input": "asks",
    "hook:Notification/elicitation_dialog": "asks",
    "hook:Notification/permission_prompt": "asks",
    "hook:Notification/ToolPermission": "asks",
    "hook:Notification/idle_prompt": "end",
    "hook:SessionEnd": "closed",
}
"""Of hook events, the same for every agent (docs/how-to/hooks.md)."""


class Agent(ABC):
    """One coding agent. Third parties subclass it too, and register theirs by entry point (`turnlog.agents`)."""

    name: str
    """As in ids and on the command line: `claude-code`."""
    display_name: str
    """As people call it: `Claude Code`."""
    colour: Colour | None = None
    """None: the page shows a neutral one."""
    parser_version: int
    """Raised when the same bytes give other changes than before; `turnlog rebuild` then reads the archive anew."""
    homes: paths.Folders | None = None
    """Where its homes are."""
    log_folders: tuple[str, ...] = ()
    """A folder is one of its homes where it holds one of these."""
    command: CommandForm | None = None
    """How its command line is read, and how a session goes on; None where runs are not known by it."""
    turn_markers: Mapping[str, TurnMarker] = {}
    """Kinds of events of its log (of `RunMetadataEvent` and `RecordEvent`) that say where its turns are."""
    hooks: HookSettings | None = None
    """How it tells turnlog what it does as it happens; None where it cannot."""
    interactive_command: str | None = None
    """`module:name` of the `turnlog.chat.runtimes.AgentCommand` that starts it without a screen so that it can ask for
    permission; None where it cannot ask."""
    retention: Retention | None = None
    """None: it keeps its logs."""

    def home_folders(self) -> Sequence[Path]:
        """Where its homes are or would be; they need not exist."""
        return () if self.homes is None else paths.folders(self.homes)

    def roots(self) -> Sequence[Path]:
        """The agent's homes on this machine; those that hold no logs are left out."""
        return [home for home in self.home_folders() if holds_folder(home, *self.log_folders)]

    def discover(self, roots: Iterable[Path] | None = None) -> Iterator[Source]:
        """Every source under the roots, or under the agent's homes. A root that is missing has none."""
        for root in self.roots() if roots is None else roots:
            yield from self.find_sources(root)

    @abstractmethod
    def find_sources(self, root: Path) -> Iterator[Source]:
        """Every source under one root, in the order of their names. Nothing is opened."""

    @abstractmethod
    def detect(self, path: Path, head: bytes) -> Detection:
        """Whether `head`, the beginning of the file at `path`, is this agent's. Nothing is opened.

        It is 64 KB; where no agent recognises these, the rest of their last line and as much again.
        """

    @abstractmethod
    def fold(self, source: Source, state: bytes | None = None) -> Fold:
        """A fold at the start of `source`, or where `state` left off."""

    @abstractmethod
    def structured_result(self, record: bytes, tool_call_id: str) -> msgspec.Raw | None:
        """The agent's own JSON of a result, from the archived record that brought it; None when it has none."""


class RowUpdate(msgspec.Struct, frozen=True, kw_only=True):
    """What is new in a source of rows."""

    lines: Iterable[bytes] = ()
    """JSON objects, a line each with its newline, to append to the source's log."""
    anew: bool = False
    """They are the whole, in a better order than before: they begin the log anew."""


class RowAgent(Agent):
    """An agent some of whose sources are no files: rows of a database, or many small files.

    Such a source is one session. Its log is kept by the store alone: a line for each version of a row that a pass
    has seen, oldest first. It is archived, folded and rebuilt as a file's lines are. Rows have no offsets to make
    positions from: positions come from what they say, so that they do not depend on when a pass saw which version.
    """

    @abstractmethod
    def holds_rows(self, source: Source) -> bool:
        """Whether the source is rows, by its path alone."""

    @abstractmethod
    def sources_at(self, path: Path, root: Path) -> Iterator[Source]:
        """The sources of which a file below the home `root` holds anything, with their versions, when it changed."""

    @abstractmethod
    def row_version(self, source: Source) -> Version:
        """Of the rows as they are now. Raises OSError or SourceError when they cannot be read."""

    @abstractmethod
    def read_rows(self, source: Source, log: Iterable[bytes]) -> RowUpdate:
        """What is new, given the log so far in pieces. Raises OSError or SourceError when the rows cannot be read."""

    @abstractmethod
    def restore_rows(self, source: Source, log: Iterable[bytes], to: Path) -> list[Path]:
        """Write the rows of a log below the folder `to`, as they last were; return the files written.

        Raises ConflictError when there are other rows of the same keys already.
        """


def reads_rows(agent: Agent, source: Source) -> TypeGuard[RowAgent]:
    """Whether the agent itself reads this source, as rows."""
    return isinstance(agent, RowAgent) and agent.holds_rows(source)
