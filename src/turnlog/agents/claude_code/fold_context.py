"""The working object of one feed of a Claude Code log: `ClaudeContext`.

It holds the line that is being read, the sessions in the file, the chain of parent ids, and the changes found so far.
All functions that read records take it and keep nothing of their own. What must outlive the feed is in `ClaudeState`.
"""

from __future__ import annotations

from datetime import UTC

import msgspec
from msgspec import UNSET, Raw, UnsetType

from turnlog.agents.changes import Changes, EventChange, Link, MessageChange, SessionChange
from turnlog.agents.claude_code.record_kinds import KEPT_FIELDS, RECORD_KINDS, ClaudeRecordOutcome
from turnlog.agents.claude_code.records import ClaudeRecord
from turnlog.agents.claude_code.sources import session_id
from turnlog.agents.claude_code.state import (
    RECENT_RECORDS,
    ROOT,
    ClaudeCallDraft,
    ClaudeMessageDraft,
    ClaudePendingMessage,
    ClaudeSessionState,
    ClaudeState,
    EarlyReplies,
    Reached,
    message_of_node,
    unresolved_node,
)
from turnlog.agents.decoding import LARGEST_EVENT_RECORD, LineContext, aware, branch_of, clean_json, fields_of
from turnlog.agents.handoffs import Carried, continuation, handed_over_facts, read_mark
from turnlog.model import CompactionEvent, Fate, HistoryEvent, Origin, RecordEvent, RunMetadataEvent

TURN_ORIGINS = frozenset({Origin.PROMPT, Origin.COMMAND, Origin.SHELL, Origin.SUBAGENT_PROMPT})
"""Origins of messages that begin a turn: a person wrote them, or for a subagent its parent."""


class ClaudeContext(LineContext):
    """One feed of one log. `finish` returns the changes."""

    def __init__(self, external_id: str, state: ClaudeState, *, is_subagent: bool) -> None:
        super().__init__(Changes())
        self.state = state
        self.external_id = external_id
        self.root = external_id.partition(".")[0]
        """External id of the session that the person started; of a subagent's log, that of its ancestor."""
        self.is_subagent = is_subagent
        self.reads_copy = False
        """The record is in another one (`progress`), which may not have all records of its session."""
        self.new_messages: list[ClaudeMessageDraft | MessageChange] = []
        self.drafts: dict[str, ClaudeMessageDraft] = {}
        self.calls: dict[str, ClaudeCallDraft] = {}
        self.main = SessionContext(session_id(external_id), state.main_session)
        self._children: dict[str, SessionContext] = {}

    def finish(self) -> Changes:
        """The changes of this feed, messages in the order in which the feed met them first."""
        changes = self.changes
        changes.messages = [item if isinstance(item, MessageChange) else item.change() for item in self.new_messages]
        drafts = (item for item in self.new_messages if isinstance(item, ClaudeMessageDraft))
        changes.messages += [call for draft in drafts for call in draft.other_calls()]
        for session in (self.main, *self._children.values()):
            change = session.change
            change.active_leaf = session.newest_record if session.named_leaf is None else session.named_leaf
            if change != SessionChange(session_id=session.id):
                changes.sessions[session.id] = change
        return changes

    # -- sessions
    def session_of(self, record: ClaudeRecord) -> SessionContext:
        """The session that a record belongs to: the file's own, or a sidechain in it. Updates it with the record."""
        session = self.main if self.is_of_main(record) else self._sidechain_of(record)
        self._update_session(record, session)
        return session

    def is_of_main(self, record: ClaudeRecord) -> bool:
        """Whether a record is of the file's own session."""
        # In a subagent's own file (2.0 and later) every record is `isSidechain`; only in a parent's log does the flag
        # mean another session.
        return self.is_subagent or not record.is_sidechain

    def child(self, agent_id: str) -> SessionContext:
        """The session of a subagent."""
        return self._child(session_id(f"{self.root}.{agent_id}"))

    def _child(self, child_id: str) -> SessionContext:
        session = self._children.get(child_id)
        if session is None:
            session = self._children[child_id] = SessionContext(child_id, self.state.child(child_id))
        return session

    def _sidechain_of(self, record: ClaudeRecord) -> SessionContext:
        """The subagent session of a sidechain record in the parent's log.

        Up to 1.0.x such records have no agent id: the session is named after its root record.
        """
        sidechains, parent = self.state.sidechains, record.parent_uuid
        # `agentId` came with 2.0. Before, a sidechain is the chain of parents from its root record.
        if record.agent_id is not None:
            session = self.child(record.agent_id)
        elif isinstance(parent, str) and parent in sidechains:
            session = self._child(sidechains[parent])
        else:
            session = self.child(record.uuid or str(self.position))
        if record.uuid is not None:
            self.state.remember_sidechain(record.uuid, session.id)
        return session

    def _update_session(self, record: ClaudeRecord, session: SessionContext) -> None:
        """Take over what every record says about its session: times, version, branch, folder."""
        change = session.change
        change.position = self.position
        moment = record.timestamp
        carried = self.carried(record)
        if carried is not None:
            self._note_handoff(carried, session)
            moment = carried.at
        if moment is not None:
            if moment.tzinfo is not UTC:
                moment = aware(moment)
                record.timestamp = record.timestamp if carried else moment
            if change.first_at is None or moment < change.first_at:
                change.first_at = moment
            if change.last_at is None or moment > change.last_at:
                change.last_at = moment
        if record.version is not None:
            change.agent_version = record.version
        change.git_branch = branch_of(record.git_branch) or change.git_branch
        if record.cwd:
            change.cwd = record.cwd
            known = change.project_at
            # Where two files hold one session, the earliest `cwd` names the project: a later one may be a folder that a
            # command changed to.
            if change.project_path is None or (moment is not None and (known is None or moment < known)):
                change.project_path, change.project_at = record.cwd, moment
        if record.forked_from is not None or record.request_session_id is not None:
            self._link_fork(record)
        # A subagent's records name only the outermost session. The call's result and `meta.json` may know the parent
        # better.
        if self.is_subagent and not self.state.linked:
            self.state.linked = True
            self.link_subagent(session_id(self.root), self.main.id, inferred=True)

    @staticmethod
    def carried(record: ClaudeRecord) -> Carried | None:
        """What turnlog wrote beside a record that it carried over from a session of another agent."""
        return None if record.turnlog is None else read_mark(record.turnlog)

    def _note_handoff(self, carried: Carried, session: SessionContext) -> None:
        """Link the session that this one continues, once."""
        if carried.session not in self.state.forked_from:
            self.state.forked_from.append(carried.session)
            self.changes.links.append(continuation(carried, session.id))
            session.change.metadata |= handed_over_facts(carried)

    def _link_fork(self, record: ClaudeRecord) -> None:
        """Add a fork link for a record that was copied, once for each session it may be copied from."""
        original = self.copied_from(record)
        if original is not None and original not in self.state.forked_from:
            self.state.forked_from.append(original)
            link = Link(kind="fork", parent_session_id=session_id(original), child_session_id=self.main.id)
            self.changes.links.append(link)

    def copied_from(self, record: ClaudeRecord) -> str | None:
        """External id of the session that a record was copied from; None if it is this session's own.

        `/branch` writes `forkedFrom`. Other copies name their session as that of the request, or keep its `sessionId`.
        """
        original = record.forked_from.session_id if record.forked_from else record.request_session_id
        # `session_id` is no mark of a copy: it names the session in which the process began.
        original = original or record.session_id
        return None if original == self.root else original

    def link_subagent(
        self,
        parent: str,
        child: str,
        call_id: str | None = None,
        message_id: str | None = None,
        *,
        inferred: bool = False,
    ) -> None:
        """Add the link from session `parent` to the session `child` that it started, by which call if that is known.

        `inferred`: no record says so; another source may name another call.
        """
        self.changes.links.append(
            Link(
                kind="subagent",
                parent_session_id=parent,
                child_session_id=child,
                tool_call_id=call_id,
                message_id=message_id,
                inferred=inferred,
            )
        )

    # -- the chain of parent ids
    def is_known(self, record: ClaudeRecord) -> bool:
        """Whether the record was read before. It is then counted as a duplicate, and must be skipped."""
        if record.uuid is None or record.uuid not in self.state.nodes:
            return False
        self.changes.counts.duplicates += 1
        return True

    def note_text(self, record: ClaudeRecord) -> bool:
        """Report a record that says something else than an earlier one of its id; whether it does.

        Claude Code itself keeps records by their id (2.1.20), so the later one is what it reads.
        """
        content = record.message.content if record.message is not None else None
        if record.uuid is None or content is None:
            return False
        if isinstance(content, str):
            text = content
        elif len(content) == 1:  # as in nearly all records
            text = content[0].text or content[0].thinking
        else:
            text = "".join([block.text or block.thinking or "" for block in content])
        if not text or self.state.remember_text(record.uuid, text):
            return False
        self.report(f"another record is called {record.uuid!r} too and says something else: both are kept")
        return True

    def parent_node(self, record: ClaudeRecord, session: SessionContext) -> str:
        """The node (see `state.ROOT`) of the message that a record follows, across results and events between them.

        A record without an id follows the one before it; so does an assistant record that names no parent.
        """
        parent, nodes = record.parent_uuid, self.state.nodes
        if isinstance(parent, str) and record.uuid is not None:
            node = nodes.get(parent)
            if node is not None:
                return node
            # Only a prompt after a rewind goes back further than is remembered. Any other parent that is not known
            # was on a damaged line: the record follows the newest message.
            if record.type == "user" and len(nodes) >= RECENT_RECORDS:
                return unresolved_node(parent)
        # An assistant record with a null parent lost it: only a prompt, or what was injected before one, begins a
        # chain.
        elif parent is None and record.uuid is not None and record.type != "assistant":
            return ROOT
        return session.state.leaf or ROOT

    def event_node(self, record: ClaudeRecord, session: SessionContext) -> str:
        """The node of a record that is no message: what names it as its parent follows that node's message.

        A record of a run may be written late, below an older record than the newest. The conversation goes on after
        the newest message nevertheless: only a message makes a branch.
        """
        newest = session.state.newest()
        if newest is None or not _may_be_late(record) or precedes_early_replies(record, session):
            return self.parent_node(record, session)
        return newest

    def note_age(self, record: ClaudeRecord, session: SessionContext) -> None:
        """Note where the conversation is when records from before its newest compaction begin to be written again.

        At a second compaction in one process, Claude Code writes the whole history again (2.1.260).
        """
        state = session.state
        if record.timestamp is None or state.compacted_at is None or record.timestamp >= state.compacted_at:
            state.reached = None
        elif state.reached is None and state.leaf is not None:
            state.reached = Reached(state.leaf, state.anchor, state.turn, state.step)

    def attach(self, record: ClaudeRecord, session: SessionContext) -> tuple[str, bool]:
        """The node of a new message's parent, and whether the message begins a branch."""
        state = session.state
        node = self.parent_node(record, session)
        if state.leaf is None or node == state.leaf:
            return node, False
        # What a hook says may be written late, as an event is: see `event_node`.
        if record.attachment is not None and _may_be_late(record):
            return state.leaf, False
        # Only injected context comes between anchor and leaf. Its parent is a result as often as it is the parent of
        # what follows, so two children of the anchor are one branch.
        if node == state.anchor:
            return state.leaf, False
        state.branched = session.change.has_branches = True
        return node, True

    def reopen(self, message_id: str, place: ClaudePendingMessage, session: SessionContext) -> ClaudeMessageDraft:
        """The draft of a message, new when this feed has none: an earlier feed may have emitted the message."""
        draft = self.drafts.get(message_id)
        if draft is None:
            draft = self.drafts[message_id] = ClaudeMessageDraft(message_id, session.id, place, session.fate)
            self.new_messages.append(draft)
        return draft

    def advance(self, record: ClaudeRecord, session: SessionContext, message_id: str, origin: Origin | None) -> None:
        """Make a message that was added the newest of its session. `origin` is None for an assistant message."""
        state = session.state
        # The summary is the first message after a `compact_boundary`.
        if self.state.compaction is not None:
            self.finish_compaction(message_id if origin is Origin.COMPACTION else None)
        state.leaf = message_id
        if origin is None or origin in TURN_ORIGINS:
            state.anchor = message_id
        if origin is None:
            state.prompted_at = None
        if record.uuid is not None:
            self.state.remember_record(record.uuid, message_id)
            session.set_newest_record(record.uuid)

    def finish_compaction(self, summary_id: str | None) -> None:
        """Emit the compaction that waits for its summary. None: another message came first, so it has no summary."""
        pending = self.state.compaction
        if pending is None:
            return
        self.state.compaction = None
        event = msgspec.json.decode(pending.event, type=CompactionEvent)
        self.changes.events.append(
            EventChange(
                session_id=pending.session_id,
                event=msgspec.structs.replace(event, summary_message_id=summary_id),
                record=(pending.position, pending.length),
                record_id=pending.record_id,
                parent_id=pending.parent_id,
            )
        )
        # What the compaction leaves out of the context depends on the whole tree, which only the store has.
        session = self.main if pending.session_id == self.main.id else self._child(pending.session_id)
        session.change.has_branches = True

    # -- events

    def position_id(self) -> str:
        """An id for a record that has none in the log, made of its byte offset."""
        return f"{self.main.id}@{self.position}"

    def add_event(self, event: HistoryEvent, record: ClaudeRecord, session: SessionContext) -> EventChange:
        """Add the event that a record is, at the record's place in the chain."""
        # Records without a `uuid` (titles, costs, the leaf) are not part of the chain: nothing names them as parent.
        node = self.event_node(record, session) if record.uuid is not None else ROOT
        change = EventChange(
            session_id=session.id,
            event=event,
            record=(self.position, self.length),
            record_id=record.uuid,
            parent_id=message_of_node(node),
        )
        self.changes.events.append(change)
        if record.uuid is not None:
            self.state.remember_record(record.uuid, node)
        return change

    def extra_event(self, event: HistoryEvent, session: SessionContext) -> EventChange:
        """A further event of a record that is also something else: it has no place of its own in the chain."""
        return EventChange(session_id=session.id, event=event, record=(self.position, self.length))


class SessionContext:
    """A session with records in this file, and what this feed found out about it."""

    __slots__ = ("change", "id", "named_leaf", "newest_record", "state")

    def __init__(self, session_id: str, state: ClaudeSessionState) -> None:
        self.id = session_id
        self.state = state
        self.change = SessionChange(session_id=session_id)
        self.newest_record: str | None = None
        """A record id of the newest message."""
        self.named_leaf: str | None = None
        """The record that Claude Code names as the active leaf, when that is an older one."""

    @property
    def fate(self) -> Fate:
        """The fate that its messages begin with."""
        return Fate.SIDECAR if self.state.warm_up else Fate.ACTIVE

    def set_newest_record(self, record_id: str) -> None:
        """Set the end of the conversation; it overrules what Claude Code named before."""
        self.newest_record = record_id
        self.named_leaf = None


# -- records that become events

_OF_HOOKS = ("hook_", "async_hook_")
"""Beginnings of the types of attachments that hooks cause. Any other attachment is context, which may be written just
before the prompt that it belongs to, and then begins a branch with it."""

_BEFORE_PROMPTS = frozenset(("SessionStart", "Setup", "UserPromptSubmit"))
"""Events whose hooks run before the model is asked: their records belong to what comes next, as context does. A resume
at an older message begins its branch with the hooks of `SessionStart`."""


def _may_be_late(record: ClaudeRecord) -> bool:
    """Whether a record says how a run went: it may come after what follows its parent."""
    facts = record.attachment or record.data
    # The answer of a hook that runs on its own may come at any time.
    if facts is not None and facts.hook_event in _BEFORE_PROMPTS and facts.type != "async_hook_response":
        return False
    if record.attachment is not None:
        return record.attachment.type.startswith(_OF_HOOKS)
    return record.type in ("system", "progress")


def add_record_event(context: ClaudeContext, record: ClaudeRecord, session: SessionContext) -> None:
    """Add the event that `record_kinds` has for a record; a record of an unknown kind is kept as such."""
    kind = record.kind
    add_event_of_kind(context, record, session, kind, RECORD_KINDS.get(kind), KEPT_FIELDS.get(kind, ()))


def add_event_of_kind(
    context: ClaudeContext,
    record: ClaudeRecord,
    session: SessionContext,
    kind: str,
    outcome: ClaudeRecordOutcome | None,
    fields: tuple[str, ...],
) -> None:
    """Add the event of a record of this kind, with the given fields. `outcome` is None for an unknown kind."""
    identity = record.uuid or context.position_id()
    event: HistoryEvent
    if outcome is ClaudeRecordOutcome.RUN_METADATA:
        event = RunMetadataEvent(
            id=identity,
            position=context.position,
            created_at=record.timestamp,
            kind=kind,
            data=_kept_data(context, fields),
        )
    else:
        event = RecordEvent(
            id=identity,
            position=context.position,
            created_at=record.timestamp,
            kind=kind,
            known=outcome is not None,
            # Of an unknown kind no field is known to matter, so all of a small record is kept.
            data=_small_data(context) if outcome is None else _kept_data(context, fields),
        )
    change = context.add_event(event, record, session)
    # An attachment without text may be the very record that an early reply names as its parent.
    resolve_early_replies(context, record, session, change.parent_id or ROOT)
    context.changes.counts.events += 1


def add_malformed_record(context: ClaudeContext, record: ClaudeRecord) -> None:
    """Add a diagnostic and an event for a record of a known type that lacks what the type needs."""
    context.report("the record lacks what its type has", "error")
    add_record_event(context, record, context.session_of(record))


def _kept_data(context: ClaudeContext, fields: tuple[str, ...]) -> Raw | UnsetType:
    if not fields:
        return UNSET
    found = fields_of(context.json)
    kept = {name: found[name] for name in fields if name in found}
    return Raw(msgspec.json.encode(kept)) if kept else UNSET


def _small_data(context: ClaudeContext) -> Raw | UnsetType:
    return Raw(clean_json(context.json)) if len(context.json) <= LARGEST_EVENT_RECORD else UNSET


# -- assistant messages before their prompt
#
# In a terminal, 2.1.120 to 2.1.300 write the first prompt of a session, and the context injected with it, after the
# records of a reply that came within about a tenth of a second. Such messages are moved before the reply again: to
# positions within the line before it, where no record begins.

_BYTES_BEFORE = 64
"""Fewer bytes than any line has."""


def note_early_reply(context: ClaudeContext, record: ClaudeRecord, session: SessionContext) -> None:
    """Remember an assistant record that begins the log and names a parent that was not read yet."""
    parent, state = record.parent_uuid, session.state
    if state.leaf is None and isinstance(parent, str) and record.timestamp is not None:
        state.early_replies = EarlyReplies(context.position, record.timestamp, parent)


def precedes_early_replies(record: ClaudeRecord, session: SessionContext) -> bool:
    """Whether a record is older than the assistant messages that the log begins with, and so belongs before them."""
    early = session.state.early_replies
    return (
        # A record without a `uuid` (a title, the leaf) has no place in the chain that could be wrong.
        early is not None and record.uuid is not None and record.timestamp is not None and record.timestamp < early.at
    )


def position_before_early_replies(session: SessionContext) -> int:
    """The next free position before those assistant messages."""
    early = session.state.early_replies
    assert early is not None
    early.inserted += 1
    return max(early.position - _BYTES_BEFORE, 0) + min(early.inserted, _BYTES_BEFORE) - 1


def resolve_early_replies(context: ClaudeContext, record: ClaudeRecord, session: SessionContext, node: str) -> None:
    """Give those assistant messages their turn and parent, when the record they name as parent has been read."""
    state = session.state
    if state.early_replies is None or record.uuid != state.early_replies.parent_record:
        return
    state.early_replies = None
    for message_id, place in context.state.messages.items():
        if place.turn is None:
            place.turn = state.turn or None
            place.parent = place.parent if place.parent != ROOT else node
            context.reopen(message_id, place, session)
