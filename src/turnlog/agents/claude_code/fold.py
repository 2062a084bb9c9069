"""The fold of one Claude Code log: records in file order -> changes of the model.

A log has one line per content block, with results, injected context and facts about the session between the blocks,
all in one chain of parent ids. The fold makes messages of them again: blocks are joined by message id, results with
their calls by call id, and the parent of a message is the message that its parent record belongs to. What refers to
records that are no longer remembered is left to the store, by id.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC
from io import BytesIO
from pathlib import Path

import msgspec
from msgspec import UNSET

from turnlog.agents.base import Detection, Source, SourceKind
from turnlog.agents.changes import Changes, LeafTitle
from turnlog.agents.claude_code import NAME
from turnlog.agents.claude_code.assistant_messages import read_assistant
from turnlog.agents.claude_code.contents import text_of
from turnlog.agents.claude_code.fold_context import ClaudeContext, SessionContext, add_record_event
from turnlog.agents.claude_code.record_kinds import TYPES
from turnlog.agents.claude_code.records import ApiFailure, ClaudeRecord, decode_record, read_lines
from turnlog.agents.claude_code.sources import agent_id_in, source_of
from turnlog.agents.claude_code.state import ClaudeState, PendingCompaction, decode_state, encode_state, message_of_node
from turnlog.agents.claude_code.user_messages import add_message, add_recap, read_attachment, read_user
from turnlog.agents.decoding import aware, fields_of, value_of
from turnlog.agents.jsonl import count_lines, whole_lines
from turnlog.model import CompactionEvent, ErrorEvent


class ClaudeCodeFold:
    """Reads one session's or subagent's log. See `turnlog.agents.base.Fold`."""

    def __init__(self, source: Source, state: bytes | None) -> None:
        self._source = source
        self._state = decode_state(state) if state is not None else ClaudeState()

    def feed(self, data: bytes, offset: int) -> Changes:
        """See `turnlog.agents.base.Fold.feed`."""
        state = self._state
        context = ClaudeContext(self._external_id(data), state, is_subagent=self._source.kind is SourceKind.SUBAGENT)
        readers = _READERS
        for record, json, position, length, number in read_lines(data, offset, state.lines + 1, context.changes):
            context.json = json
            context.position = position
            context.length = length
            context.line_number = number
            readers.get(record.type, read_session_fact)(context, record)
        state.lines += count_lines(data)
        return context.finish()

    def state(self) -> bytes:
        """See `turnlog.agents.base.Fold.state`."""
        return encode_state(self._state)

    def _external_id(self, data: bytes) -> str:
        """The session of the log: from its path, else from the first record that names one, else the file's name."""
        if self._source.session_id is not None:
            # The path wins over the records: a copy may keep the `sessionId` of its original.
            return self._source.session_id.removeprefix(f"{NAME}:")
        # 2.0 has a subagent's file next to the sessions, and a log may be in any folder: then the records name the
        # session.
        if self._state.session is None:
            self._state.session = _session_named_in(data, agent_id_in(self._source.path))
        return self._state.session or Path(self._source.path).stem


def _session_named_in(data: bytes, agent_id: str | None) -> str | None:
    for line in BytesIO(data):
        if b'"sessionId"' not in line:
            continue
        try:
            record = decode_record(line)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            continue
        if record.session_id:
            # A subagent's file under another name: its records say `isSidechain` and `agentId`.
            agent = agent_id or (record.agent_id if record.is_sidechain else None)
            return f"{record.session_id}.{agent}" if agent else record.session_id
    return None


# -- whether a file is a log

_SIDECARS = (SourceKind.SIDECAR, SourceKind.SPILL)

_OTHER_CONTENT = re.compile(rb'"message":\{"role":"(?:user|model)","parts":|"systemPayload":\{')
"""Fields of Qwen Code's records, which have this envelope, too. In a text their quotes are escaped."""


def detect_log(path: Path, head: bytes) -> Detection:
    """Whether a file is a log or a sidecar. The version is that of the first record which names one."""
    source = source_of(path)
    if source is not None and source.kind in _SIDECARS:
        return Detection(agent=NAME, source=source)
    if _OTHER_CONTENT.search(head):
        return Detection(reason="the content of its messages is that of another API")
    records = [record for record, *_ in read_lines(whole_lines(head), 0, 1, Changes())]
    if not records:
        return Detection(reason="no line is a JSON object")
    ours = [record for record in records if _is_ours(record)]
    if not ours:
        return Detection(reason="no record has a known type and a sessionId")
    version = next((record.version for record in ours if record.version is not None), None)
    return Detection(agent=NAME, version=version, source=source or _source(path, ours))


def _is_ours(record: ClaudeRecord) -> bool:
    if record.type not in TYPES:
        return False
    return record.session_id is not None or (record.type == "summary" and record.leaf_uuid is not None)


def _source(path: Path, records: list[ClaudeRecord]) -> Source:
    """The source of a log outside of its home: its records say whether it is a subagent's."""
    root = str(path.absolute().parent)
    kind = SourceKind.SUBAGENT if all(record.is_sidechain for record in records) else SourceKind.SESSION
    return Source(agent=NAME, path=str(path.absolute()), root=root, kind=kind)


# -- system records: notices, errors, compactions, commands that ran without the model


def read_system(context: ClaudeContext, record: ClaudeRecord) -> None:
    """Read a `system` record: a notice, an error, a compaction, or a slash command that ran without the model."""
    if context.is_known(record):
        return
    session = context.session_of(record)
    if record.subtype == "compact_boundary":
        begin_compaction(context, record, session)
    elif record.subtype == "api_error":
        add_api_error(context, record, session)
    # A slash command that runs without the model (`/model`, `/clear`) is written as a system record.
    elif record.subtype == "local_command" and record.content:
        add_message(context, record, session, record.content, None)
        context.changes.counts.messages += 1
    elif record.subtype == "away_summary" and record.content:
        add_recap(context, record, session, text_of(record.content))
        context.changes.counts.messages += 1
    # `stop_hook_summary` is a fact about the run, unless a hook failed.
    elif record.hook_errors:
        add_hook_error(context, record, session)
    else:
        add_record_event(context, record, session)


def add_api_error(context: ClaudeContext, record: ClaudeRecord, session: SessionContext) -> None:
    """Add the error of a request that failed. Claude Code tries most of them again."""
    failure = record.error if isinstance(record.error, ApiFailure) else ApiFailure(message=record.error)
    facts = {
        "retry_attempt": record.retry_attempt,
        "max_retries": record.max_retries,
        "retry_in_ms": record.retry_in_ms,
        "message": failure.message if failure.formatted else None,
    }
    known = {name: value for name, value in facts.items() if value is not None}
    # The log of a request that is given up has a message in the place of the answer besides.
    attempt, limit = record.retry_attempt, record.max_retries
    will_retry = attempt is not None and limit is not None and attempt < limit
    event = ErrorEvent(
        id=record.uuid or context.position_id(),
        position=context.position,
        created_at=record.timestamp,
        error_text=failure.formatted or failure.message or "",
        kind="api",
        status=failure.status,
        will_retry=will_retry,
        metadata={"claude-code": known} if known else {},
    )
    context.add_event(event, record, session)
    context.changes.counts.events += 1


def add_hook_error(context: ClaudeContext, record: ClaudeRecord, session: SessionContext) -> None:
    """Add the error of hooks that failed when the agent stopped."""
    event = ErrorEvent(
        id=record.uuid or context.position_id(),
        position=context.position,
        created_at=record.timestamp,
        error_text="\n".join(str(error) for error in record.hook_errors or ()),
        kind="hook",
    )
    context.add_event(event, record, session)
    context.changes.counts.events += 1


def begin_compaction(context: ClaudeContext, record: ClaudeRecord, session: SessionContext) -> None:
    """Read a `compact_boundary` record, which says what stays in the context.

    Its event is emitted with the next message, the summary, so that the event is complete.
    """
    if record.parent_uuid is None:
        # The boundary begins a new chain of parents, but its place is after what it compacted. Its logical parent may
        # be a record that was never written.
        record.parent_uuid = record.logical_parent_uuid or UNSET
    # 1.0.128 to 2.1.20 write `trigger` and `preTokens` alone; nothing is preserved then.
    facts = record.compact_metadata
    kept, lost = _kept_messages(context, record, session)
    event = CompactionEvent(
        id=record.uuid or context.position_id(),
        position=context.position,
        created_at=record.timestamp,
        trigger=facts.trigger if facts else None,
        kept_message_ids=kept,
        tokens_before=facts.pre_tokens if facts else None,
        tokens_after=facts.post_tokens if facts else None,
        metadata={"kept_records": lost} if lost else {},
    )
    # Where the user chose what is summarized (up to a prompt, or from it, 2.1.330), messages on both sides of the
    # logical parent are summarized or kept, so the boundary follows the newest one.
    chosen = facts is not None and facts.messages_summarized is not None
    # After a history that is written again, its logical parent is a record of that.
    state, reached = session.state, session.state.reached
    if reached is not None:
        state.leaf, state.anchor, state.turn, state.step = reached.leaf, reached.anchor, reached.turn, reached.step
    follows_newest = chosen or reached is not None
    node = state.leaf if follows_newest and state.leaf else context.parent_node(record, session)
    state.compacted_at, state.reached = record.timestamp, None
    if record.uuid is not None:
        context.state.remember_record(record.uuid, node)
    # Two boundaries in a row: the first compaction was cut off before its summary.
    context.finish_compaction(None)
    context.state.compaction = PendingCompaction(
        event=msgspec.Raw(msgspec.json.encode(event)),
        session_id=session.id,
        position=context.position,
        length=context.length,
        record_id=record.uuid,
        parent_id=message_of_node(node),
    )
    context.changes.counts.events += 1


def _kept_messages(
    context: ClaudeContext, record: ClaudeRecord, session: SessionContext
) -> tuple[tuple[str, ...], list[str]]:
    """The ids of messages that stay in the context, and the record ids of those that are not remembered."""
    facts = record.compact_metadata
    preserved = facts.preserved_messages if facts else None
    records = (preserved.all_uuids or preserved.uuids or []) if preserved else []
    segment = facts.preserved_segment if facts else None
    if preserved is None and segment is not None and segment.head_uuid is not None:
        reached = session.state.reached
        last = reached.leaf if reached else context.state.nodes.get(segment.tail_uuid or "")
        return _messages_between(context, segment.head_uuid, last)
    found: dict[str, None] = {}
    lost: list[str] = []
    for record_id in records:
        node = context.state.nodes.get(record_id)
        message_id = message_of_node(node) if node is not None else None
        if message_id is None:
            lost.append(record_id)
        else:
            found[message_id] = None
    return tuple(found), lost


def _messages_between(context: ClaudeContext, head: str, last: str | None) -> tuple[tuple[str, ...], list[str]]:
    """The messages from the record `head` to the message `last`, as far as they are remembered."""
    nodes = context.state.nodes
    # Where the first one is not remembered, all that are remembered come after it.
    found: dict[str, None] = {}
    is_kept = head not in nodes
    for record_id, node in nodes.items():
        is_kept = is_kept or record_id == head
        message_id = message_of_node(node) if is_kept else None
        if last in found and message_id != last:
            break
        if message_id is not None:
            found[message_id] = None
    return tuple(found), [] if head in nodes else [head]


# -- progress records

_COPY_READERS = {"assistant": read_assistant, "user": read_user}


def read_progress(context: ClaudeContext, record: ClaudeRecord) -> None:
    """Read a `progress` record of a hook, a command or a subagent.

    For a subagent it holds a copy of the subagent's own record. It may be the only one there is, so it is
    read as a record of the subagent's session.
    """
    copy = _copy_in(context, record)
    # `hook_progress` and `bash_progress` hold no record of another session.
    if copy is None or copy.type not in _COPY_READERS:
        add_record_event(context, record, context.session_of(record))
        return
    parent = context.session_of(record)
    if record.uuid is not None:
        # Progress records are links of the parent's chain in early 2.1: the next record may name one as its parent.
        context.state.remember_record(record.uuid, context.event_node(record, parent))
    child = context.child(copy.agent_id or "")
    # The link is the same for every copy, so the first one is enough.
    if record.parent_tool_use_id is not None and child.state.leaf is None:
        context.link_subagent(parent.id, child.id, record.parent_tool_use_id)
    context.reads_copy = True
    _COPY_READERS[copy.type](context, copy)
    context.reads_copy = False


def _copy_in(context: ClaudeContext, record: ClaudeRecord) -> ClaudeRecord | None:
    data = record.data
    if data is None or data.agent_id is None or data.message is UNSET:
        return None
    try:
        copy = decode_record(data.message)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        context.report("the copied record has another shape", "error", "$.data.message")
        return None
    # The copy is without the fields that `progress` has around it.
    copy.is_sidechain, copy.agent_id = True, data.agent_id
    copy.session_id = copy.session_id or record.session_id
    copy.timestamp = copy.timestamp or record.timestamp
    # Exact JSON of blocks is looked up in the record that is read, which is now the copy.
    context.json = bytes(data.message)
    return copy


# -- facts about the session: titles, the active leaf, costs

_BEFORE_FIRST_RECORD = "00000000-0000-0000-0000-000000000000"


def read_session_fact(context: ClaudeContext, record: ClaudeRecord) -> None:
    """Read a fact about the session, which is not part of the chain, or a record of an unknown kind."""
    if record.uuid is not None:
        if context.is_known(record):
            return
        session = context.session_of(record)
    else:
        # Titles, costs and the leaf have no `uuid` and no session of their own: they are of the file's.
        session = context.main
        session.change.position = context.position
        if record.timestamp is not None and record.timestamp.tzinfo is not UTC:
            record.timestamp = aware(record.timestamp)
    reader = _FACT_READERS.get(record.type)
    if reader is not None:
        reader(context, record, session)
    add_record_event(context, record, session)


def _read_leaf(context: ClaudeContext, record: ClaudeRecord, session: SessionContext) -> None:
    """Claude Code names the end of the active branch."""
    state, leaf = session.state, record.leaf_uuid
    branched, state.branched = state.branched, False
    if leaf == _BEFORE_FIRST_RECORD:
        # All messages are rewound. Right after a branch began, the zeros mean that branch instead.
        if record.explicit and not branched:
            session.named_leaf, session.change.has_branches = "", True
        return
    # The record is written with a delay and may name a record before or after the newest. So it counts only when it
    # names an older message than the two newest.
    node = context.state.nodes.get(leaf) if leaf is not None else None
    if node is not None and node not in (state.leaf, state.anchor):
        session.named_leaf, session.change.has_branches = leaf, True


_FAILURES = ("API Error", "Invalid API key", "Credit balance is too low", "Prompt is too long", "Claude AI usage limit")
"""Up to 1.0 the answer of a failed call for a title is written in its place."""


def _read_summary(context: ClaudeContext, record: ClaudeRecord, session: SessionContext) -> None:
    """The title of the session that holds the leaf. That is mostly another file's session, which the store finds."""
    leaf = record.leaf_uuid
    if record.summary is None or leaf is None or record.summary.startswith(_FAILURES):
        return
    # Up to 2.0 a resume writes the titles of other sessions into a new file, by the record in which each ended.
    if leaf not in context.state.nodes:
        context.changes.leaf_titles.append(LeafTitle(record_id=leaf, title=record.summary))
        return
    holder = context.state.sidechains.get(leaf)
    titled = session if holder is None else context.child(holder.partition(".")[2])
    titled.change.titles["summary"] = record.summary


def _read_custom_title(context: ClaudeContext, record: ClaudeRecord, session: SessionContext) -> None:
    if record.custom_title:
        session.change.titles["custom"] = record.custom_title


def _read_generated_title(context: ClaudeContext, record: ClaudeRecord, session: SessionContext) -> None:
    if record.ai_title:
        session.change.titles["generated"] = record.ai_title


def _read_cost(context: ClaudeContext, record: ClaudeRecord, session: SessionContext) -> None:
    """A running total of dollars, with helper calls that no record shows; a fork's total includes its parent's."""
    if record.total_cost_usd is not None:
        session.change.reported_cost = record.total_cost_usd


def _read_agent_name(context: ClaudeContext, record: ClaudeRecord, session: SessionContext) -> None:
    name = fields_of(context.json).get("agentName")
    if name is not None:
        session.change.metadata = {NAME: {"agent_name": value_of(name)}}


_FACT_READERS = {
    "agent-name": _read_agent_name,
    "ai-title": _read_generated_title,
    "cost-state": _read_cost,
    "custom-title": _read_custom_title,
    "last-prompt": _read_leaf,
    "summary": _read_summary,
}


# -- which function reads which record

_READERS: dict[str, Callable[[ClaudeContext, ClaudeRecord], None]] = {
    "assistant": read_assistant,
    "attachment": read_attachment,
    "progress": read_progress,
    "system": read_system,
    "user": read_user,
}
"""Readers by the `type` of a record. Every other record is a fact about the session, or of an unknown kind."""
