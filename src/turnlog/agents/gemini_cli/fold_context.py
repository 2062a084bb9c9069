"""The state of a fold of a Gemini CLI log, and the context in which one feed handles its records.

The state is kept between two feeds: the list of messages as the log's patches left it. Checkpoints and rewinds name
messages by id alone, so every id of the session is remembered, with a checksum of its content and no text.

The context knows the place in the file and the session, and collects messages, results and events. What a record
means is decided in `messages` and `conversation`.
"""

from __future__ import annotations

from datetime import datetime

import msgspec
from msgspec import UNSET, Raw, UnsetType

from turnlog.agents.changes import (
    Changes,
    EventChange,
    Link,
    MessageChange,
    Placement,
    RecordRef,
    ResultChange,
    SessionChange,
)
from turnlog.agents.decoding import LARGEST_EVENT_RECORD, LineContext, aware, clean_json, state_codec
from turnlog.agents.gemini_cli.sources import session_id
from turnlog.model import HistoryEvent, Message, Origin, RecordEvent, RunMetadataEvent, ToolResult


class GeminiEntry(msgspec.Struct, array_like=True):
    """One id that the session has used."""

    position: int
    is_message: bool
    """False for results, which went to their calls, and for notices, which became events."""
    turn: int | None = None
    step: int | None = None
    checksum: int = 0
    """Checksum of the content, by which a copy under another id is recognised."""
    origin: Origin | None = None
    is_full: bool = False
    """It was read from its own record, which has what a checkpoint leaves out."""
    is_at_tool: bool = False
    """A complete answer that has a cancelled call, or no call yet: an interruption after it interrupts a tool."""
    handed_over: bool = False
    """turnlog carried it over from a session of another agent."""


class GeminiPendingMessage(msgspec.Struct, array_like=True):
    """An answer whose calls may follow in a separate record."""

    key: str
    text_crc: int
    """Checksum of its text, which the checksum of text and calls continues from."""


_STORED_NAMES = {"finished_calls": "answered", "rewritten": "put_back", "pending_message": "open_answer"}
"""What fields of the state are called in the stores of earlier versions, which must stay readable."""


class GeminiState(msgspec.Struct, rename=_STORED_NAMES):
    """What is remembered between two feeds."""

    session: str | None = None
    """External id of the session."""
    parent: str | None = None
    """External id of the session that started this one, where only the header says that it is a subagent's."""
    file: str = ""
    """The time of its first header, which distinguishes this file from others of the same session."""
    lines: int = 0
    entries: dict[str, GeminiEntry] = {}
    active: list[str] = []
    """The conversation as the agent would show it now: keys of entries."""
    aliases: dict[str, str] = {}
    """Key of a copy that a compaction or a refusal made -> key of the original."""
    joined: dict[str, list[str]] = {}
    """Key of such a copy of several messages in a row -> keys of the originals."""
    finished_calls: dict[str, None] = {}
    """Ids of calls that have a result."""
    leaf: str | None = None
    """Key of the newest message in the list."""
    last_at: int = 0
    """The latest time in any record, in Unix seconds."""
    turn: int = 0
    step: int = 0
    branched: bool = False
    """A message has left the list."""
    reopened: bool = False
    """The header was written again: a resume begins."""
    rewritten: int = 0
    """While records repeat the list under new ids: how many of its entries they have repeated. Otherwise 0."""
    pending_message: GeminiPendingMessage | None = None
    """The newest answer, as long as only notices have followed it: its calls may still come."""
    titled: bool = False


encode_state, decode_state = state_codec(GeminiState)

_OFFSET_BITS = 30
_LARGEST_OFFSET = (1 << _OFFSET_BITS) - 1
_LATEST = (1 << 63 - _OFFSET_BITS) - 1
"""The last second that fits into a position, in the year 2242."""


class GeminiContext(LineContext):
    """The context of one feed: the record that is being read, and what the feed has found so far."""

    def __init__(
        self,
        state: GeminiState,
        *,
        unnamed: str,
        is_subagent: bool,
        parent: str | None,
        project: str | None,
        base_position: int,
    ) -> None:
        """Begin before the first record.

        Args:
            state: What the feeds before have left.
            unnamed: The external id of the session as long as no record names it.
            is_subagent: Whether the file is a subagent's, by its place.
            parent: External id of the session that started the subagent, by the file's place.
            project: The project's folder, where files next to the log name it.
            base_position: Where the positions of this file begin; see `sources.base_position`.
        """
        super().__init__(Changes())
        self.state = state
        self.is_subagent = is_subagent or state.parent is not None
        self.is_whole = False
        """Whether this is a file of JSON, whose messages count as records."""
        self.merges_steps = False
        """Whether an answer may hold the calls of several steps: see `fold.split_steps`."""
        self.previous_end = 0
        """Byte offset of the end of the record before this one."""
        self._unnamed = unnamed
        self._parent = parent or state.parent
        self._project = project
        self._base_position = base_position

    # -- the session

    @property
    def external_id(self) -> str:
        """Gemini CLI's id of the session; the file's name, which is unique too, until a record names it.

        A damaged header may name none.
        """
        return self.state.session or self._unnamed

    @property
    def session_id(self) -> str:
        """The id of the session in the model."""
        return session_id(self.external_id)

    @property
    def session(self) -> SessionChange:
        """What this feed has found out about the session."""
        change = self.changes.sessions.get(self.session_id)
        if change is None:
            change = SessionChange(session_id=self.session_id, project_path=self._project, cwd=self._project)
            self.changes.sessions[self.session_id] = change
        return change

    def use_session(self, external_id: str) -> None:
        """Go on with the session that a record names, mostly the one that is being read."""
        state = self.state
        if state.parent == external_id and state.session is not None:
            # A subagent's log of 0.34 has its parent's id in every header.
            external_id = state.session
        if state.session != external_id and (state.session is not None or state.entries or state.last_at):
            self._finish_session(self.previous_end)
            self.state = GeminiState(lines=state.lines, file=state.file)
        self.state.session = external_id
        if self._parent is not None and self._parent != external_id:
            self.changes.links.append(
                Link(kind="subagent", parent_session_id=session_id(self._parent), child_session_id=self.session_id)
            )

    def use_subagent_session(self, parent: str) -> None:
        """The header has the id of the parent: the subagent's session is named by that and by the time it began."""
        self.is_subagent, self._parent = True, parent
        self.use_session(f"{parent}.{self.state.file.rstrip('.')}")
        self.state.parent = parent

    def continue_from(self, before: GeminiState, leaf: str) -> None:
        """Continue a session after the message `leaf`, with the state of the session's previous file."""
        self.state.session = before.session
        self.state.turn, self.state.step, self.state.titled = before.turn, before.step, before.titled
        self.state.leaf, self.state.entries = leaf, {leaf: before.entries[leaf]}

    def update_times(self, *times: datetime | None) -> None:
        """Extend the session's first and last time by these."""
        change = self.session
        for time in times:
            if time is not None:
                at = aware(time)
                change.first_at = at if change.first_at is None else min(change.first_at, at)
                change.last_at = at if change.last_at is None else max(change.last_at, at)
                self.state.last_at = max(self.state.last_at, int(at.timestamp()))

    def set_folder(self, path: str) -> None:
        """Set the session's working directory, which a record names."""
        change = self.session
        change.project_path = change.cwd = path

    def finish(self) -> Changes:
        """Everything that this feed has found."""
        self._finish_session(self.position + self.length)
        return self.changes

    def _finish_session(self, end: int) -> None:
        """Complete the change of the session that is being read, whose last record ends at byte `end`."""
        state = self.state
        change = self.changes.sessions.get(self.session_id)
        if change is not None:
            # Files of one session are ordered by time; a file of JSON has no offsets that last.
            change.position = (min(state.last_at, _LATEST) << _OFFSET_BITS) + min(end, _LARGEST_OFFSET)
            change.has_branches = state.branched
            # A log with nothing but the session context must not decide what the session shows.
            if state.turn or state.branched:
                change.active_leaf = "" if state.leaf is None else self.message_id(state.leaf)

    # -- messages and results

    def message_id(self, key: str) -> str:
        """The id of a message.

        The log's own ids are not enough: a resumed session repeats those of another, and an answer and the results of
        its calls may share one.
        """
        return f"{self.external_id}:{key}"

    def add_message(self, key: str, message: Message, entry: GeminiEntry, refs: tuple[RecordRef, ...]) -> None:
        """Add what one record has of a message. A message that is new follows the newest one in the list."""
        state = self.state
        is_new = key not in state.entries
        parent = state.leaf if is_new else None
        self.changes.messages.append(
            MessageChange(
                message=message,
                placement=Placement(
                    session_id=self.session_id,
                    position=self._base_position + refs[0][0],
                    records=refs,
                    record_ids=(message.id,),
                    parent_id=None if parent is None else self.message_id(parent),
                    turn=entry.turn,
                    step=entry.step,
                    copied=entry.handed_over,
                    handed_over=entry.handed_over,
                ),
            )
        )
        if is_new:
            state.leaf = key

    def add_late_result(self, call_id: str, result: ToolResult, position: int, length: int) -> None:
        """Add a result whose call is in another record."""
        self.changes.results.append(
            ResultChange(
                session_id=self.session_id,
                tool_call_id=call_id,
                result=result,
                position=self._base_position + position,
                record=(position, length),
            )
        )

    # -- events and diagnostics

    def position_id(self, position: int) -> str:
        """An id for something that has none in the log, made of its offset."""
        return f"{self.external_id}@{self.state.file}{position}"

    def add_event(self, event: HistoryEvent, position: int | None = None, length: int | None = None) -> None:
        """Add an event at the position of its record: the one that is being read, or the one at `position`."""
        record = (self.position if position is None else position, self.length if length is None else length)
        self.changes.events.append(
            EventChange(
                session_id=self.session_id,
                event=msgspec.structs.replace(event, position=self._base_position + record[0]),
                record=record,
            )
        )

    def add_run_metadata(self, kind: str, created_at: datetime | None, data: Raw | UnsetType = UNSET) -> None:
        """Add the record as a fact about the run."""
        self.add_event(
            RunMetadataEvent(id=self.position_id(self.position), kind=kind, created_at=created_at, data=data)
        )

    def add_record(self, kind: str, created_at: datetime | None, *, known: bool) -> None:
        """Add the record as a separate event, because it becomes nothing else."""
        json = clean_json(self.json)
        data = Raw(json) if len(json) <= LARGEST_EVENT_RECORD else UNSET
        self.add_event(
            RecordEvent(id=self.position_id(self.position), kind=kind, known=known, created_at=created_at, data=data)
        )


def aware_or_none(time: datetime | None) -> datetime | None:
    """The time in UTC, or None."""
    return None if time is None else aware(time)
