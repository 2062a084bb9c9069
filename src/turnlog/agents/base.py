"""The interface of an agent: a class that describes it, and folds that read its sources.

The class (`Agent`) is a description: name and colour, homes, command line, hooks, and methods that find and read its
logs. It imports its readers only where it uses them, so that listing the agents loads no fold. No code outside of an
agent's package knows its name: whatever differs between agents is an attribute or a method here.

Reading is one incremental fold: `fold.feed(data, offset)` takes whole lines (or a whole small file) and returns
`Changes`; `fold.state()` returns what is stored with the cursor, so that reading can continue later. The first import,
ten new lines, standard input and a rebuild all use it. A fold reads one source and never looks at another. The store
joins what belongs together (a subagent and its parent's call, a spilled output and its result, a copy and its original)
by id.

These rules make the result independent of how the bytes are split and in which order sources are read:
- Ids come from records and never from ranks; positions come from byte offsets.
- A message may be emitted several times, each time with what one feed knows of it. `turnlog.model.merge.merge_messages`
  joins these readings, so a partial one is enough.
- A result whose call was emitted in an earlier feed is a `ResultChange`, joined to the call by its id.
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
from turnlog.agents.files import Version, holds_folder

if TYPE_CHECKING:
    from turnlog.agents.changes import Changes
    from turnlog.model import Session


class SourceKind(StrEnum):
    """The role of a source in a session."""

    SESSION = "session"
    SUBAGENT = "subagent"
    SIDECAR = "sidecar"
    """A small file with facts about a session (title, facts about a subagent). It is read whole after each change."""
    SPILL = "spill"
    """A tool output that was too large for the log. It is joined to its result by the name of the file."""
    STREAM = "stream"
    """What an agent printed while it ran, saved by the user, or a copy of a session that leaves out most (Cursor's
    transcripts). The session's own log supersedes it."""
    HOOKS = "hooks"
    """The events that an agent's hooks reported while it ran. The session's own log supersedes each of them."""


HOOKED_FROM = 1 << 52
"""The first position of what hooks report: after every offset of a log, and still exact as a number in JSON."""

KNOWN_FROM = "known_from"
"""A key of a session's metadata, with the value "hooks" until the session's own log has been read."""


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """A file, or a session in a database, that an agent writes."""

    agent: str
    path: str
    """Absolute path."""
    root: str
    """The agent's home that contains it. No file outside of it is read for this source."""
    kind: SourceKind = SourceKind.SESSION
    session_id: str | None = None
    """Id of the session, or of the subagent, if the path or the database says so."""
    project: str | None = None
    """What groups it into a project, if the path or the database says so: the name of a folder, or an id."""
    appendable: bool = True
    """True: a log that grows at its end. False: a file that is rewritten, so it is read again after each change."""
    version: Version | None = None
    """The version of a source of rows (see `RowAgent`) when it was found; it differs if the rows have changed. None for
    a file."""


class Detection(msgspec.Struct, frozen=True, kw_only=True):
    """Which agent wrote a file, judged by its content."""

    agent: str | None = None
    """None if this agent did not write it, or no agent did."""
    is_certain: bool = True
    """False: nothing in the file is this agent's alone, so another agent that is certain wrote it."""
    version: str | None = None
    """The version in the first record that names one."""
    source: Source | None = None
    """The file as a source of that agent."""
    sources: tuple[Source, ...] = ()
    """The sessions in a file that may contain several (see `RowAgent`). `source` is the only one then, if any."""
    beside: tuple[Source, ...] = ()
    """What else the file says about `sources`, as sources of their own: titles, folders, totals."""
    reason: str | None = None
    """Why the file was not recognised."""
    is_damaged: bool = False
    """It may be of this agent, but too little of it can be read to say so; `reason` says why."""
    reasons: tuple[str, ...] = ()
    """Of each agent, by name, why it did not write the file, if none did."""


class Fold(Protocol):
    """A resumable reader of one source."""

    def feed(self, data: bytes, offset: int) -> Changes:
        """Read `data`, which begins at byte `offset` of the source.

        For an appendable source, `data` consists of whole lines. Only the last line of the source may lack its newline,
        if it is complete JSON; if that newline is written later, it is not fed. For any other source, `data` is the
        whole file and `offset` is 0.
        """
        ...

    def state(self) -> bytes:
        """The state with which `Agent.fold` continues. It is small and does not depend on how the bytes were split."""
        ...


class StatelessFold(ABC):
    """A fold of a source that is read whole each time, so that nothing has to be kept between two readings."""

    @abstractmethod
    def feed(self, data: bytes, offset: int) -> Changes:
        """See `Fold.feed`."""

    def state(self) -> bytes:
        """Nothing."""
        return b""


class Colour(NamedTuple):
    """The colour of an agent's mark on the page, as `#rrggbb`; its contrast with a theme's surfaces is at least 3:1."""

    light: str
    dark: str


class LogRetention(NamedTuple):
    """The agent deletes sessions that were not used for a number of days."""

    days: int
    """The default, in days."""
    setting: str
    """The setting that changes the number of days."""
    file: str
    """The JSON file with that setting, relative to the agent's home."""


class HookHandler(NamedTuple):
    """How an agent's settings describe the command that it starts at an event."""

    fields: Mapping[str, Any]
    """Further fields next to the command."""
    since: tuple[int, ...] = ()
    """The oldest version of the agent that knows the event; empty if every version does."""


class HookSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How hooks are installed in an agent's settings: as commands at events, or as a plugin (docs/how-to/hooks.md)."""

    home: paths.Folders
    """Where the folder of the user's settings is: the first of these."""
    file: str
    """The settings file, relative to that folder."""
    project_file: str | None
    """The settings file, relative to a project's folder; None if projects have none."""
    events: Mapping[str, HookHandler] = {}
    """Event -> handler, written to a JSON file as `{FIELD: {EVENT: [{"hooks": [HANDLER]}]}}`."""
    field: str | None = "hooks"
    """None: the file has the events themselves, and nothing else."""
    form: Literal["groups", "handlers", "toml-list", "scripts"] = "groups"
    """How the file has them: in groups, as above; the handlers themselves, as `{FIELD: {EVENT: [HANDLER]}}`; or as
    TOML, a table `[[FIELD]]` for each with its `event`. `scripts`: each is a program for `sh` in a file of its own,
    whose name has the event in place of `{EVENT}`."""
    more: Mapping[str, Any] = {}
    """What a new file has besides."""
    session_field: str = "session_id"
    """The field of an event that names its session."""
    off: tuple[tuple[tuple[str, ...], Any], ...] = ()
    """Settings that disable all hooks, and the value that does it."""
    plugin: Path | None = None
    """Instead of events: a program that is copied to the settings, with the store's folder in place of `"{{FOLDER}}"`.
    Its first line begins with `// turnlog's plugin`."""
    note: str = ""
    """What the user must know after the installation."""


class McpSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Where an agent's settings name the servers of the Model Context Protocol that it starts."""

    home: paths.Folders
    """Where the folder of the user's settings is: the first of these."""
    file: str
    """The settings file, relative to that folder."""
    project_file: str | None
    """The settings file, relative to a project's folder; None if projects have none."""
    servers: str
    """The field with the servers, by name; of `toml-list` the list of them."""
    form: Literal["json", "toml", "toml-list"] = "json"
    entry: Mapping[str, Any] = {}
    """Further fields of a server next to its command."""
    joins_arguments: bool = False
    """`command` is one list, the program and its arguments; otherwise the arguments are in `args`."""
    note: str = ""
    """What the user must know after the installation."""


TurnMarker: TypeAlias = Literal["start", "end", "asks", "closed"]
"""`start`: a turn begins, and a marker of its end will follow. `end`: the turn is over. `asks`: the agent waits for a
permission. `closed`: the agent's process has ended."""


HOOK_MARKERS: Final[Mapping[str, TurnMarker]] = {
    "hook:Stop": "end",
    "hook:StopFailure": "end",
    "hook:StopCancelled": "end",
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
"""Turn markers among hook events, the same for every agent (docs/how-to/hooks.md)."""


class Agent(ABC):
    """One coding agent. Packages of others subclass it and register the class by an entry point (`turnlog.agents`)."""

    name: str
    """The name in ids and on the command line: `claude-code`."""
    display_name: str
    """The name that people use: `Claude Code`."""
    colour: Colour | None = None
    """None: the page uses a neutral colour."""
    parser_version: int
    """Raise it if the same bytes give other changes than before: `turnlog rebuild` then reads the archive again."""
    homes: paths.Folders | None = None
    """Where its homes are."""
    log_folders: tuple[str, ...] = ()
    """A folder counts as a home if it contains one of these, also as a symbolic link."""
    tells_sessions_apart: bool = False
    """Whether the session of a log depends on others, because ids of its sessions are not unique: see `settled`."""
    command: CommandForm | None = None
    """The form of its command line, and how to resume a session; None if `turnlog run` cannot recognise it."""
    where: str | None = None
    """What `turnlog agents` says in place of a missing home, if the agent itself writes elsewhere."""
    turn_markers: Mapping[str, TurnMarker] = {}
    """Kinds of events (`RunMetadataEvent`, `RecordEvent`) in its logs that begin or end turns."""
    hooks: HookSettings | None = None
    """How to install its hooks; None if it has none."""
    mcp: McpSettings | None = None
    """Where its settings name servers of the Model Context Protocol; None if turnlog cannot add itself there."""
    interactive_command: str | None = None
    """`module:name` of the `turnlog.chat.runtimes.AgentCommand` that runs it without a terminal and receives its
    permission requests; None if it cannot send any."""
    handoff: str | None = None
    """`module:name` of the `turnlog.agents.handoffs.HandoffWriter` that writes its sessions; None if there is none."""
    retention: LogRetention | None = None
    """None: it never deletes its logs."""
    has_usage_blocks: bool = False
    """Its provider limits usage by five-hour windows; reports by block contain its calls."""

    def home_folders(self) -> Sequence[Path]:
        """The configured homes; they need not exist."""
        return () if self.homes is None else paths.folders(self.homes)

    def roots(self) -> Sequence[Path]:
        """The homes on this machine that contain logs."""
        return [home for home in self.home_folders() if holds_folder(home, *self.log_folders)]

    def discover(self, roots: Iterable[Path] | None = None) -> Iterator[Source]:
        """Yield all sources below the roots, or below the agent's homes. A missing root has none."""
        for root in self.roots() if roots is None else roots:
            yield from self.find_sources(root)

    def settled(self, found: Sequence[Source], known: Mapping[str, str | None]) -> Iterable[Source]:
        """Sources with their sessions, where an agent tells them apart: one that was read before keeps its session.

        Args:
            found: All that were found.
            known: Path -> session of those that were read before.
        """
        del known
        return found

    @abstractmethod
    def find_sources(self, root: Path) -> Iterator[Source]:
        """Yield all sources below one root, sorted by name. No file is opened."""

    def sources_in(self, folder: Path) -> Iterable[Source]:
        """What `turnlog import` reads of a folder that a user names: an unpacked export. Nothing of an agent's home."""
        del folder
        return ()

    @abstractmethod
    def detect(self, path: Path, head: bytes) -> Detection:
        """Whether `head`, the beginning of the file at `path`, was written by this agent. The file is not opened.

        `head` has 64 KB. If no agent recognises it, detection is repeated with the rest of its last line and another 64
        KB.
        """

    @abstractmethod
    def fold(self, source: Source, state: bytes | None = None) -> Fold:
        """A fold for `source`, at its start or at the point where `state` was taken."""

    def obeys(self, source: Source) -> bool:
        """Whether the agent runs a file beside a log, or lets it say what needs no permission.

        So may one of the files of which a log is made.
        Such a file is not written where others may have sent it (`turnlog hub pull`). It is at the source's path.
        """
        del source
        return False

    def resumes(self, session: Session) -> bool:
        """Whether its program knows a session, so that `command` can resume it."""
        del session
        return True

    @abstractmethod
    def structured_result(self, record: bytes, tool_call_id: str) -> msgspec.Raw | None:
        """The agent's own JSON of a result, from the archived record that contains it; None if it has none."""


class RowUpdate(msgspec.Struct, frozen=True, kw_only=True):
    """What is new in a source of rows."""

    lines: Iterable[bytes] = ()
    """JSON objects, one per line, to append to the source's log."""
    anew: bool = False
    """The lines replace the whole log, because their order has changed."""


class RowAgent(Agent):
    """An agent some of whose sources are not files but rows of a database, or many small files.

    Such a source is one session. Only the store keeps its log: one line for each version of a row that a sync has seen,
    oldest first. It is archived, folded and rebuilt like a file's lines. Rows have no byte offsets, so positions are
    made from the content of rows. They do not depend on which sync saw which version.
    """

    @abstractmethod
    def holds_rows(self, source: Source) -> bool:
        """Whether the source consists of rows, judged by its path alone."""

    @abstractmethod
    def sources_at(self, path: Path, root: Path) -> Iterator[Source]:
        """The sources, with their versions, to which a changed file below the home `root` belongs."""

    @abstractmethod
    def row_version(self, source: Source) -> Version:
        """The version of the rows as they are now. Raises OSError or SourceError if they cannot be read."""

    @abstractmethod
    def read_rows(self, source: Source, log: Iterable[bytes]) -> RowUpdate:
        """The lines to add to a log, given in blocks. Raises OSError or SourceError if the rows cannot be read."""

    @abstractmethod
    def restore_rows(self, source: Source, log: Iterable[bytes], to: Path) -> list[Path]:
        """Write the last version of the rows in a log below the folder `to`; return the files written.

        Raises ConflictError if other rows with the same keys exist there.
        """


def reads_rows(agent: Agent, source: Source) -> TypeGuard[RowAgent]:
    """Whether the agent reads this source itself, as rows."""
    return isinstance(agent, RowAgent) and agent.holds_rows(source)


def is_database_itself(source: Source) -> bool:
    """Whether a source of rows is a whole database, and not a session in it or what is known about one."""
    return source.kind is SourceKind.SIDECAR and source.session_id is None
