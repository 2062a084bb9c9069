"""The fold of one Claude Code log: records in file order -> changes of the model.

A session's log holds one line per content block, results between the blocks, context that the harness injected,
and facts about the session, all in one chain of parent ids. Here lines become messages again: blocks by message id,
results by call id, and each record's parent by the message that the parent record belongs to. What reaches beyond
what is remembered is left to the store, by id.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from zlib import crc32

import msgspec
from msgspec import UNSET

from turnlog.agents.base import (
    Changes,
    Diagnostic,
    EventChange,
    Link,
    MessageChange,
    Placement,
    ResultChange,
    SessionChange,
    Source,
    SourceKind,
)
from turnlog.agents.claude_code import blocks
from turnlog.agents.claude_code.classify import (
    INTERRUPTS,
    WARM_UP,
    command_of,
    inner_tags,
    origin_of_text,
    split_injected,
)
from turnlog.agents.claude_code.drafts import SYNTHETIC, CallDraft, MessageDraft, text_key
from turnlog.agents.claude_code.kinds import KEPT_FIELDS, KINDS, TYPES, Becomes, kind_of
from turnlog.agents.claude_code.lines import decode_fields, decode_record, read_lines
from turnlog.agents.claude_code.records import (
    ApiFailure,
    Attachment,
    Block,
    FileSource,
    Record,
    ResultFacts,
    WireMessage,
)
from turnlog.agents.claude_code.sources import NAME, agent_id_in, session_id
from turnlog.agents.claude_code.state import (
    ROOT,
    OpenCall,
    OpenCompaction,
    OpenMessage,
    State,
    Thread,
    decode_state,
    encode_state,
    message_in,
    record_in,
    unresolved,
)
from turnlog.agents.claude_code.tools import (
    SUBAGENT_TOOLS,
    approval_of,
    duration_of,
    error_text_of,
    exit_code_of,
    result_id,
    spilled_output_of,
    status_of,
)
from turnlog.model import (
    CompactionEvent,
    DataPart,
    ErrorEvent,
    Fate,
    HistoryEvent,
    InterruptEvent,
    Message,
    Origin,
    Part,
    RecordEvent,
    ResultStatus,
    RewindEvent,
    RunMetadataEvent,
    TextPart,
    ToolResult,
)
from turnlog.model.session import TitleSource

_ZERO_LEAF = "00000000-0000-0000-0000-000000000000"
_TITLE_LENGTH = 200
_TURN_STARTS = frozenset({Origin.PROMPT, Origin.COMMAND, Origin.SHELL, Origin.SUBAGENT_PROMPT})
_USER_ORIGINS = _TURN_STARTS
_TASK_STATUS: dict[str, ResultStatus] = {"completed": "success", "failed": "error", "killed": "aborted"}


class _Line:
    """The line that is being read."""

    __slots__ = ("json", "length", "position")

    def __init__(self) -> None:
        self.json = b""
        self.position = 0
        self.length = 0


class ClaudeCodeFold:
    """Reads one session's or subagent's log. See `turnlog.agents.base.Fold`."""

    def __init__(self, source: Source, state: bytes | None) -> None:
        self._source = source
        self._state = decode_state(state) if state is not None else State()
        self._changes = Changes()
        self._order: list[MessageDraft | MessageChange] = []
        self._drafts: dict[str, MessageDraft] = {}
        self._calls: dict[str, CallDraft] = {}
        self._tails: dict[str, str] = {}
        self._pointers: dict[str, str] = {}
        self._line = _Line()
        self._handlers: dict[str, Callable[[Record], None]] = {
            "assistant": self._read_assistant,
            "user": self._read_user,
            "attachment": self._read_attachment,
            "system": self._read_system,
            "progress": self._read_progress,
        }
        self._facts: dict[str, Callable[[Record, SessionChange], None]] = {
            "last-prompt": self._read_leaf,
            "summary": self._read_summary,
            "custom-title": self._read_title,
            "ai-title": self._read_title,
            "cost-state": self._read_cost,
            "agent-name": self._read_name,
        }
        self._identify(b"")

    # Feeding

    def feed(self, data: bytes, offset: int) -> Changes:
        """See `turnlog.agents.base.Fold.feed`."""
        self._begin()
        self._identify(data)
        line, handlers, changes, state = self._line, self._handlers, self._changes, self._state
        for record, text, position, length in read_lines(data, offset, state.lines + 1, changes):
            line.json, line.position, line.length = text, position, length
            handlers.get(record.type, self._read_fact)(record)
        state.lines += data.count(b"\n")
        return self._finish()

    def state(self) -> bytes:
        """See `turnlog.agents.base.Fold.state`."""
        return encode_state(self._state)

    def _begin(self) -> None:
        self._changes = Changes()
        self._order = []
        self._drafts = {}
        self._calls = {}
        self._tails = {}
        self._pointers = {}

    def _finish(self) -> Changes:
        changes = self._changes
        changes.messages = [item if isinstance(item, MessageChange) else item.change() for item in self._order]
        for session, tail in self._tails.items():
            changes.sessions[session].active_leaf = tail
        for session, leaf in self._pointers.items():
            changes.sessions[session].active_leaf = leaf
        return changes

    def _identify(self, data: bytes) -> None:
        """Settle whose log this is: by its path, else by the first record that names a session."""
        state, source = self._state, self._source
        if state.session is None and source.session_id is not None:
            state.session = source.session_id.removeprefix(f"{NAME}:")
        if state.session is None and data:
            state.session = _session_named_in(data, agent_id_in(source.path))
        self._external = state.session or ""
        self._root = self._external.partition(".")[0]
        self._session = session_id(self._external)
        self._is_subagent = source.kind is SourceKind.SUBAGENT

    # Sessions

    def _thread_of(self, record: Record) -> tuple[str, Thread]:
        """The session that a record belongs to: the file's own, or a sidechain inside it."""
        if self._is_subagent or not record.is_sidechain:
            return self._session, self._state.thread
        session = self._sidechain_of(record)
        if record.uuid is not None:
            self._state.remember_sidechain(record.uuid, session)
        return session, self._state.child(session)

    def _sidechain_of(self, record: Record) -> str:
        if record.agent_id is not None:
            return session_id(f"{self._root}.{record.agent_id}")
        parent = record.parent_uuid
        if isinstance(parent, str) and parent in self._state.sidechains:
            return self._state.sidechains[parent]
        return session_id(f"{self._root}.{record.uuid or self._line.position}")

    def _session_change(self, session: str) -> SessionChange:
        change = self._changes.sessions.get(session)
        if change is None:
            change = self._changes.sessions[session] = SessionChange(session_id=session)
        return change

    def _note(self, record: Record, session: str, thread: Thread) -> SessionChange:
        """Take what a record says about its session."""
        change = self._changes.sessions.get(session)
        if change is None:
            change = self._changes.sessions[session] = SessionChange(session_id=session)
        change.position = self._line.position
        moment = record.timestamp
        if moment is not None:
            if moment.tzinfo is not UTC:
                record.timestamp = moment = _aware(moment)
            if change.first_at is None or moment < change.first_at:
                change.first_at = moment
            if change.last_at is None or moment > change.last_at:
                change.last_at = moment
        if record.version is not None:
            change.agent_version = record.version
        if record.git_branch:
            change.git_branch = record.git_branch
        if not thread.placed and record.cwd:
            change.cwd, thread.placed = record.cwd, True
        if record.forked_from is not None or record.request_session_id is not None:
            self._note_copy(record)
        if self._is_subagent and self._root and not self._state.parents:
            self._link_subagent(self._session, inferred=True)
        return change

    def _note_copy(self, record: Record) -> None:
        """A record that another session made first: this one is a fork of it."""
        origin = record.forked_from.session_id if record.forked_from else record.request_session_id
        if origin and origin != self._root and origin not in self._state.parents:
            self._state.parents.append(origin)
            self._changes.links.append(
                Link(kind="fork", parent_session_id=session_id(origin), child_session_id=self._session)
            )

    def _is_copy(self, record: Record) -> bool:
        if record.forked_from is not None:
            return True
        origin = record.request_session_id or record.session_id
        return origin is not None and origin != self._root

    def _link_subagent(
        self, child: str, *, inferred: bool = False, call_id: str | None = None, message_id: str | None = None
    ) -> None:
        parent = session_id(self._root) if child == self._session else self._session
        self._state.parents.append(child)
        self._changes.links.append(
            Link(
                kind="subagent",
                parent_session_id=parent,
                child_session_id=child,
                tool_call_id=call_id,
                message_id=message_id,
                inferred=inferred,
            )
        )

    # The chain

    def _node_of_parent(self, record: Record, thread: Thread) -> str:
        """The message that a record hangs under, through results and events."""
        parent = record.parent_uuid
        if parent is UNSET or record.uuid is None or (parent is None and record.type == "assistant"):
            return thread.leaf or ROOT
        if parent is None:
            return ROOT
        return self._state.nodes.get(parent) or self._unknown_node(parent)

    def _unknown_node(self, parent: str) -> str:
        return ROOT if parent in self._state.nodes else unresolved(parent)

    def _attach(self, record: Record, session: str, thread: Thread) -> tuple[str, bool]:
        """The parent of a new message, and whether a branch begins with it.

        What the harness injects hangs beside results as often as behind them; it never makes a branch.
        """
        node = self._node_of_parent(record, thread)
        if node == (thread.leaf or ROOT) or thread.leaf is None:
            return node, False
        if node == thread.anchor:
            return thread.leaf, False
        thread.branched = True
        self._session_change(session).relink = True
        return node, True

    def _advance(self, record: Record, session: str, thread: Thread, message_id: str, *, harness: bool) -> None:
        """A message was added: it is the newest of its session."""
        thread.leaf = message_id
        if not harness:
            thread.anchor = message_id
        if record.uuid is not None:
            self._state.remember_record(record.uuid, message_id)
            self._tails[session] = record.uuid
            self._pointers.pop(session, None)

    # Assistant messages

    def _read_assistant(self, record: Record) -> None:
        message = record.message
        if message is None:
            self._add_record_event(record, known=False)
            return
        session, thread = self._thread_of(record)
        self._note(record, session, thread)
        message_id = message.id or record.uuid or f"{self._external}@{self._line.position}"
        draft = self._drafts.get(message_id)
        if draft is None:
            draft = self._open_draft(message_id, record, message, session, thread)
        elif record.uuid is not None:
            self._continue(record, draft, session, thread)
        if record.uuid is not None:
            draft.record_ids.append(record.uuid)
            self._tails[session] = record.uuid
            self._pointers.pop(session, None)
        draft.add_facts(record, message)
        if self._is_copy(record):
            draft.copied = True
        self._add_blocks(draft, record, message)
        self._changes.counts.messages += 1

    def _open_draft(
        self, message_id: str, record: Record, message: WireMessage, session: str, thread: Thread
    ) -> MessageDraft:
        known = self._state.messages.get(message_id)
        if known is None:
            parent, _ = self._attach(record, session, thread)
            synthetic = message.model == SYNTHETIC
            if not synthetic:
                thread.step += 1
            known = OpenMessage(
                position=self._line.position,
                parent=parent,
                turn=thread.turn or None,
                step=None if synthetic else thread.step,
            )
            forgotten = self._state.remember_message(message_id, known)
            if forgotten is not None:
                self._drafts.pop(forgotten, None)
            self._advance(record, session, thread, message_id, harness=False)
        elif record.uuid is not None:
            self._continue_at(record, message_id, thread)
        fate = Fate.SIDECAR if thread.warm_up else Fate.ACTIVE
        draft = MessageDraft(message_id, session, known, fate)
        self._drafts[message_id] = draft
        self._order.append(draft)
        return draft

    def _continue(self, record: Record, draft: MessageDraft, session: str, thread: Thread) -> None:
        self._continue_at(record, draft.id, thread)

    def _continue_at(self, record: Record, message_id: str, thread: Thread) -> None:
        """A later line of a message. Behind what was injected meanwhile, it stands for that in the chain."""
        node = self._node_of_parent(record, thread)
        assert record.uuid is not None
        tail = node if node == thread.leaf and thread.anchor == message_id else message_id
        self._state.remember_record(record.uuid, tail)

    def _add_blocks(self, draft: MessageDraft, record: Record, message: WireMessage) -> None:
        content = message.content
        if isinstance(content, str):
            content = [Block(type="text", text=content)]
        place = (self._line.position, self._line.length)
        if not content:
            draft.records.append((*place, None))
            return
        for index, block in enumerate(content):
            number = self._number_of(draft, record, block)
            if block.tool_use_id is not None and block.type.endswith("tool_result"):
                self._add_server_result(draft, record, block, index)
                draft.records.append((*place, block.tool_use_id))
                continue
            draft.records.append((*place, number))
            draft.add_part(number, self._part_of(draft, record, block, number, index))

    def _number_of(self, draft: MessageDraft, record: Record, block: Block) -> int:
        if record.api_block_index is not None:
            return record.api_block_index
        if block.id is not None:
            return draft.number_of("call", block.id, 0, "")
        text = block.text or block.thinking or block.data or ""
        return draft.number_of(block.type, text_key(text), len(text), text)

    def _part_of(self, draft: MessageDraft, record: Record, block: Block, number: int, index: int) -> Part | CallDraft:
        part_id = f"{draft.id}.{number}"
        kind = block.type
        if kind in blocks.CALL_BLOCKS and block.id is not None:
            return self._call_of(draft, record, block, part_id)
        if kind == "text":
            return blocks.text_part(block, part_id)
        if kind == "thinking" or kind == "redacted_thinking":
            return blocks.reasoning_part(block, part_id, draft.model, record.thinking_duration_ms)
        json = self._line.json
        return blocks.part_of(block, part_id, lambda: blocks.raw_at(json, "message", "content", index))

    def _call_of(self, draft: MessageDraft, record: Record, block: Block, part_id: str) -> CallDraft:
        call_id, name = block.id or "", block.name or ""
        known = self._calls.get(call_id)
        if known is not None and known.draft is draft:
            return known
        call = CallDraft(draft, part_id, call_id, name)
        call.input, repaired = blocks.exact_input(block.input)
        if repaired:
            self._tell("bytes that are not UTF-8 became U+FFFD", "note")
        call.provider_executed = block.type != "tool_use"
        call.started_at = record.timestamp
        self._calls[call_id] = call
        prompt = _prompt_key(call) if name in SUBAGENT_TOOLS else None
        self._state.remember_call(call_id, OpenCall(draft.id, name, prompt))
        return call

    def _add_server_result(self, draft: MessageDraft, record: Record, block: Block, index: int) -> None:
        """The provider ran a tool and put its result into the same message."""
        json = self._line.json
        content = block.content
        parts: tuple[Part, ...]
        if isinstance(content, list):
            parts = tuple(
                blocks.part_of(
                    item, None, lambda at=at: blocks.raw_at(json, "message", "content", index, "content", at)
                )
                for at, item in enumerate(content)
            )
        elif isinstance(content, str):
            parts = (TextPart(text=content),)
        else:
            raw = blocks.raw_at(json, "message", "content", index, "content")
            parts = (DataPart(name=block.type, data=raw),)
        failed = block.is_error or (isinstance(content, Block) and content.error_code is not None)
        error = content.error_code if isinstance(content, Block) else None
        result = ToolResult(
            id=result_id(block.tool_use_id or "", block.type, content if isinstance(content, list) else None),
            status="error" if failed else "success",
            content=parts,
            error_text=error,
            completed_at=record.timestamp,
        )
        self._give_result(block.tool_use_id or "", result, record, draft.session_id, brought=False)

    # User records

    def _read_user(self, record: Record) -> None:
        message = record.message
        if message is None:
            self._add_record_event(record, known=False)
            return
        if record.uuid is not None and record.uuid in self._state.nodes:
            self._changes.counts.duplicates += 1
            return
        session, thread = self._thread_of(record)
        self._note(record, session, thread)
        content = message.content
        if isinstance(content, list):
            results = [block for block in content if block.tool_use_id is not None]
            if results:
                self._read_results(record, content, session, thread)
                return
        self._read_text(record, content or "", session, thread)

    def _read_results(self, record: Record, content: list[Block], session: str, thread: Thread) -> None:
        texts: list[Block] = []
        for index, block in enumerate(content):
            if block.tool_use_id is None:
                texts.append(block)
                continue
            result = self._result_of(record, block, index)
            self._give_result(block.tool_use_id, result, record, session)
            self._note_task(record, block.tool_use_id)
        self._changes.counts.results += 1
        marker = next((text for text in map(_stripped_text, texts) if text in INTERRUPTS), None)
        if marker is not None:
            self._add_interrupt(record, marker, session, thread)
        elif texts:
            self._add_message(record, texts, session, thread, Origin.HARNESS if record.is_meta else None)
            self._changes.counts.messages -= 1

    def _result_of(self, record: Record, block: Block, index: int) -> ToolResult:
        content = block.content
        call_id = block.tool_use_id or ""
        text = blocks.text_of(content)
        if isinstance(content, str):
            parts: tuple[Part, ...] = (TextPart(text=content),)
            identity = result_id(call_id, text, None)
        elif isinstance(content, list):
            json = self._line.json
            parts = tuple(
                [
                    blocks.part_of(
                        item, None, lambda at=at: blocks.raw_at(json, "message", "content", index, "content", at)
                    )
                    for at, item in enumerate(content)
                ]
            )
            identity = result_id(call_id, text, content)
        else:
            parts = ()
            identity = result_id(call_id, "", None)
        facts = record.tool_use_result if isinstance(record.tool_use_result, ResultFacts) else None
        is_error = block.is_error is True
        return ToolResult(
            id=identity,
            status=status_of(record, text, is_error=is_error),
            content=parts,
            error_text=error_text_of(text) if is_error else None,
            exit_code=exit_code_of(text) if is_error else None,
            preliminary=facts is not None and (facts.is_async is True or isinstance(facts.background_task_id, str)),
            completed_at=record.timestamp,
            duration_ms=duration_of(facts) if facts is not None else None,
            spilled_to=self._spill_in(text) if text.startswith("<persisted-output>") else None,
        )

    def _spill_in(self, text: str) -> str | None:
        """The name of the file that holds the whole output. Its path is looked at, never followed."""
        spilled = spilled_output_of(text)
        if spilled is None:
            return None
        if spilled.name is None:
            self._tell("the output is said to lie outside the session's own folder", "note", "$.message.content")
        elif spilled.session != self._root:
            self._tell("the output is said to lie in another session's folder", "note", "$.message.content")
        return spilled.name

    def _give_result(
        self, call_id: str, result: ToolResult, record: Record, session: str, *, brought: bool = True
    ) -> None:
        """Join a result with its call, here or, when the call was emitted earlier, in the store."""
        open_call = self._state.calls.get(call_id) if result.preliminary else self._state.calls.pop(call_id, None)
        approval = approval_of(record.permission_decision) if record.permission_decision is not None else None
        call = self._calls.get(call_id)
        position, length = self._line.position, self._line.length
        message_id = call.draft.id if call else open_call.message_id if open_call else None
        if brought and record.uuid is not None:
            self._place_result(record, message_id)
            self._tails[session] = record.uuid
            self._pointers.pop(session, None)
        if call is None:
            self._changes.results.append(
                ResultChange(
                    session_id=session,
                    tool_call_id=call_id,
                    result=result,
                    position=position,
                    record=(position, length),
                    record_ids=(record.uuid,) if brought and record.uuid is not None else (),
                    message_id=message_id,
                    approval=approval,
                )
            )
            return
        call.add_result(result)
        if approval is not None:
            call.approval = approval
        if brought:
            call.draft.records.append((position, length, result.id))
            if record.uuid is not None:
                call.draft.record_ids.append(record.uuid)

    def _place_result(self, record: Record, message_id: str | None) -> None:
        parent = record.parent_uuid
        node = self._state.nodes.get(parent) if isinstance(parent, str) else None
        if node is None:
            node = message_id or (unresolved(parent) if isinstance(parent, str) else ROOT)
        assert record.uuid is not None
        self._state.remember_record(record.uuid, node)

    def _note_task(self, record: Record, call_id: str) -> None:
        """A subagent's or background command's id in a result: links the child, and finds the later report."""
        facts = record.tool_use_result
        if not isinstance(facts, ResultFacts):
            return
        if isinstance(facts.agent_id, str):
            call = self._calls.get(call_id)
            child = session_id(f"{self._root}.{facts.agent_id}")
            self._link_subagent(child, call_id=call_id, message_id=call.draft.id if call else None)
            if facts.is_async is True:
                self._state.remember_task(facts.agent_id, call_id)
        if isinstance(facts.background_task_id, str):
            self._state.remember_task(facts.background_task_id, call_id)

    def _read_text(self, record: Record, content: str | list[Block], session: str, thread: Thread) -> None:
        text = content if isinstance(content, str) else blocks.text_of(content)
        marker = text.strip()
        if marker in INTERRUPTS:
            self._add_interrupt(record, marker, session, thread)
            self._changes.counts.events += 1
            return
        self._add_message(record, content, session, thread, _flagged_origin(record))

    def _add_interrupt(self, record: Record, marker: str, session: str, thread: Thread) -> None:
        during = "answer" if INTERRUPTS[marker] == "answer" else "tool"
        event = InterruptEvent(
            id=record.uuid or self._event_id(),
            position=self._line.position,
            created_at=record.timestamp,
            during=during,
            message_id=record.interrupted_message_id or thread.anchor,
        )
        self._add_event(event, record, session, thread, count=False)

    def _add_message(
        self,
        record: Record,
        content: str | list[Block],
        session: str,
        thread: Thread,
        origin: Origin | None,
    ) -> None:
        """A message that no model wrote."""
        message_id = record.uuid or f"{self._external}@{self._line.position}"
        parts, spoken = self._parts_of(content, message_id)
        if origin is None:
            origin = origin_of_text(spoken) if spoken.strip() or len(parts) > 1 else _empty_origin(parts)
        if origin is Origin.PROMPT and (self._is_subagent or record.is_sidechain):
            origin = Origin.SUBAGENT_PROMPT
        self._place_message(record, message_id, parts, spoken, session, thread, origin)

    def _place_message(
        self,
        record: Record,
        message_id: str,
        parts: tuple[Part, ...],
        spoken: str,
        session: str,
        thread: Thread,
        origin: Origin,
    ) -> None:
        starts_turn = origin in _TURN_STARTS
        first = thread.leaf is None
        parent, branches = self._attach(record, session, thread)
        if starts_turn:
            thread.turn += 1
            thread.step = 0
            self._begin_turn(record, spoken, session, thread, origin, first=first)
        message = Message(
            id=message_id,
            role="user" if starts_turn else "developer",
            parts=parts,
            origin=origin,
            created_at=record.timestamp,
            metadata=self._message_metadata(record, spoken, origin),
        )
        placement = Placement(
            session_id=session,
            position=self._line.position,
            records=((self._line.position, self._line.length, None),),
            record_ids=(record.uuid,) if record.uuid is not None else (),
            parent_id=message_in(parent),
            parent_record=record_in(parent),
            turn=thread.turn or None,
            fate=Fate.SIDECAR if thread.warm_up else Fate.ACTIVE,
            copied=self._is_copy(record),
        )
        self._order.append(MessageChange(message=message, placement=placement))
        self._changes.counts.messages += 1
        if branches and starts_turn:
            self._add_rewind(record, parent, session)
        self._advance(record, session, thread, message_id, harness=not starts_turn)
        if origin is Origin.COMPACTION:
            self._close_compaction(message_id, session)
        elif origin is Origin.NOTIFICATION:
            self._read_notification(record, spoken, session)

    def _parts_of(self, content: str | list[Block], message_id: str) -> tuple[tuple[Part, ...], str]:
        """The parts of a text or of blocks, and the text without what was glued in front of it."""
        items = [Block(type="text", text=content)] if isinstance(content, str) else content
        json, parts, spoken = self._line.json, list[Part](), list[str]()
        for index, block in enumerate(items):
            if block.type != "text" or block.text is None:
                raw = lambda at=index: blocks.raw_at(json, "message", "content", at)  # noqa: E731
                parts.append(blocks.part_of(block, f"{message_id}.{len(parts)}", raw))
                continue
            injected, text = split_injected(block.text) if not spoken else ("", block.text)
            if injected:
                metadata = {"claude-code": {"injected": True}}
                parts.append(TextPart(id=f"{message_id}.{len(parts)}", text=injected, metadata=metadata))
            if text:
                parts.append(TextPart(id=f"{message_id}.{len(parts)}", text=text))
                spoken.append(text)
        return tuple(parts), "\n".join(spoken)

    def _message_metadata(self, record: Record, spoken: str, origin: Origin) -> dict[str, Any]:
        facts: dict[str, Any] = {}
        command = command_of(spoken, origin)
        if command is not None:
            facts["command"] = {"name": command.name, "arguments": command.arguments}
        if record.permission_mode is not None:
            facts["permission_mode"] = record.permission_mode
        if record.prompt_source is not None:
            facts["prompt_source"] = record.prompt_source
        if record.attachment is not None:
            facts["attachment"] = record.attachment.type
        return {"claude-code": facts} if facts else {}

    def _begin_turn(
        self, record: Record, spoken: str, session: str, thread: Thread, origin: Origin, *, first: bool
    ) -> None:
        if first and origin is Origin.SUBAGENT_PROMPT:
            thread.warm_up = spoken.strip() == WARM_UP
            if not self._is_subagent:
                self._link_sidechain(session, spoken)
        if not thread.titled and origin in (Origin.PROMPT, Origin.SUBAGENT_PROMPT):
            title = " ".join(spoken.split())[:_TITLE_LENGTH]
            if title:
                self._session_change(session).titles["prompt"] = title
                thread.titled = True

    def _link_sidechain(self, session: str, prompt: str) -> None:
        """Up to 1.0.x no record says which call started a sidechain: it is the open one with the same prompt."""
        if session in self._state.parents:
            return
        key = crc32(prompt.encode(errors="replace"))
        for call_id, call in self._state.calls.items():
            if call.prompt == key:
                call.prompt = None
                self._link_subagent(session, inferred=True, call_id=call_id, message_id=call.message_id)
                return
        self._link_subagent(session, inferred=True)

    def _add_rewind(self, record: Record, parent: str, session: str) -> None:
        lost = record_in(parent)
        event = RewindEvent(
            id=f"{record.uuid or self._event_id()}.rewind",
            position=self._line.position,
            created_at=record.timestamp,
            to_message_id=message_in(parent),
            metadata={"to_record": lost} if lost is not None else {},
        )
        self._changes.events.append(
            EventChange(session_id=session, event=event, record=(self._line.position, self._line.length))
        )

    def _read_notification(self, record: Record, text: str, session: str) -> None:
        """A background task's report: the second, final answer to the call that started it."""
        tags = inner_tags(text, "task-notification")
        task = tags.get("task-id", "")
        call_id = tags.get("tool-use-id") or self._state.tasks.get(task)
        if call_id is None:
            return
        report = tags.get("result") or tags.get("summary") or ""
        status = _TASK_STATUS.get(tags.get("status", ""), "success")
        result = ToolResult(
            id=result_id(call_id, report, None),
            status=status,
            content=(TextPart(text=report),) if report else (),
            error_text=report if status == "error" else None,
            completed_at=record.timestamp,
        )
        self._give_result(call_id, result, record, session, brought=False)

    # What is no message

    def _read_attachment(self, record: Record) -> None:
        attachment = record.attachment
        if attachment is None:
            self._add_record_event(record, known=False)
            return
        if record.uuid is not None and record.uuid in self._state.nodes:
            self._changes.counts.duplicates += 1
            return
        session, thread = self._thread_of(record)
        self._note(record, session, thread)
        if attachment.type == "queued_command" and attachment.prompt:
            kind = attachment.origin.kind if attachment.origin else None
            notified = kind not in (None, "human") or attachment.command_mode == "task-notification"
            origin = Origin.NOTIFICATION if notified else None
            self._add_message(record, attachment.prompt, session, thread, origin)
            return
        texts = self._rendered_blocks(record) or _file_blocks(attachment)
        if texts:
            self._add_message(record, texts, session, thread, Origin.HARNESS)
        else:
            self._add_record_event(record, session, thread)

    def _rendered_blocks(self, record: Record) -> list[Block]:
        found: list[Block] = []
        for rendered in record.rendered or ():
            if isinstance(rendered.content, str):
                found.append(Block(type="text", text=rendered.content))
            elif rendered.content:
                found.extend(rendered.content)
        return found

    def _read_system(self, record: Record) -> None:
        if record.uuid is not None and record.uuid in self._state.nodes:
            self._changes.counts.duplicates += 1
            return
        session, thread = self._thread_of(record)
        self._note(record, session, thread)
        if record.subtype == "compact_boundary":
            self._add_compaction(record, session, thread)
        elif record.subtype == "api_error":
            self._add_event(self._api_error(record), record, session, thread)
        elif record.subtype == "local_command" and record.content:
            self._add_message(record, record.content, session, thread, None)
        elif record.subtype == "stop_hook_summary" and record.hook_errors:
            text = "\n".join(str(error) for error in record.hook_errors)
            event = ErrorEvent(
                id=record.uuid or self._event_id(),
                position=self._line.position,
                created_at=record.timestamp,
                error_text=text,
                kind="hook",
            )
            self._add_event(event, record, session, thread)
        else:
            self._add_record_event(record, session, thread)

    def _api_error(self, record: Record) -> ErrorEvent:
        error = record.error
        failure = error if isinstance(error, ApiFailure) else ApiFailure(message=error)
        facts = {
            "retry_attempt": record.retry_attempt,
            "max_retries": record.max_retries,
            "retry_in_ms": record.retry_in_ms,
            "message": failure.message if failure.formatted else None,
        }
        known = {name: value for name, value in facts.items() if value is not None}
        return ErrorEvent(
            id=record.uuid or self._event_id(),
            position=self._line.position,
            created_at=record.timestamp,
            error_text=failure.formatted or failure.message or "",
            kind="api",
            status=failure.status,
            metadata={"claude-code": known} if known else {},
        )

    def _add_compaction(self, record: Record, session: str, thread: Thread) -> None:
        if record.parent_uuid is None and record.logical_parent_uuid is not None:
            record.parent_uuid = record.logical_parent_uuid
        elif record.parent_uuid is None:
            record.parent_uuid = UNSET
        facts = record.compact_metadata
        kept = facts.preserved_messages if facts else None
        kept_records = (kept.all_uuids or kept.uuids or []) if kept else []
        nodes = [self._state.nodes.get(record_id, "") for record_id in kept_records]
        known = dict.fromkeys(node for node in nodes if message_in(node))
        lost = [record_id for record_id, node in zip(kept_records, nodes, strict=True) if not message_in(node)]
        event = CompactionEvent(
            id=record.uuid or self._event_id(),
            position=self._line.position,
            created_at=record.timestamp,
            trigger=facts.trigger if facts else None,
            kept_message_ids=tuple(known),
            tokens_before=facts.pre_tokens if facts else None,
            tokens_after=facts.post_tokens if facts else None,
            metadata={"claude-code": {"kept_records": lost}} if lost else {},
        )
        self._session_change(session).relink = True
        change = self._add_event(event, record, session, thread)
        self._state.compaction = OpenCompaction(
            event=msgspec.Raw(msgspec.json.encode(event)),
            position=self._line.position,
            length=self._line.length,
            record_id=record.uuid,
            parent_id=change.parent_id,
        )

    def _close_compaction(self, summary_id: str, session: str) -> None:
        """The summary has come: tell the compaction again, with it."""
        pending = self._state.compaction
        if pending is None:
            return
        self._state.compaction = None
        event = msgspec.json.decode(pending.event, type=CompactionEvent)
        events = self._changes.events
        events[:] = [change for change in events if change.record_id is None or change.record_id != pending.record_id]
        self._changes.events.append(
            EventChange(
                session_id=session,
                event=msgspec.structs.replace(event, summary_message_id=summary_id),
                record=(pending.position, pending.length),
                record_id=pending.record_id,
                parent_id=pending.parent_id,
            )
        )

    def _read_progress(self, record: Record) -> None:
        data = record.data
        if data is None or data.type != "agent_progress" or data.message is UNSET or data.agent_id is None:
            session, thread = self._thread_of(record)
            self._note(record, session, thread)
            self._add_record_event(record, session, thread)
            return
        copy = decode_record(data.message)
        child = session_id(f"{self._root}.{data.agent_id}")
        if record.uuid is not None:
            self._state.remember_record(record.uuid, self._node_of_parent(record, self._state.thread))
        if record.parent_tool_use_id is not None and child not in self._state.parents:
            self._link_subagent(child, call_id=record.parent_tool_use_id)
        copy.is_sidechain, copy.agent_id = True, data.agent_id
        copy.session_id = copy.session_id or record.session_id
        copy.timestamp = copy.timestamp or record.timestamp
        self._line.json = bytes(data.message)
        self._handlers.get(copy.type, self._read_fact)(copy)

    def _read_fact(self, record: Record) -> None:
        """A record outside the chain: a fact about the session."""
        if record.uuid is not None and record.type not in TYPES:
            session, thread = self._thread_of(record)
            self._note(record, session, thread)
            self._add_record_event(record, session, thread)
            return
        change = self._session_change(self._session)
        change.position = self._line.position
        reader = self._facts.get(record.type)
        if reader is not None:
            reader(record, change)
        self._add_record_event(record)

    def _read_leaf(self, record: Record, change: SessionChange) -> None:
        """The agent names the end of the active branch.

        The pointer is written late: it may lag behind the records or run ahead of them, so it counts only when it
        names an older message. All zeros mean the very start, but right after a branch they mean that branch.
        """
        thread, leaf = self._state.thread, record.leaf_uuid
        branched, thread.branched = thread.branched, False
        if leaf == _ZERO_LEAF:
            if record.explicit and not branched:
                self._pointers[self._session] = ""
                change.relink = True
            return
        node = self._state.nodes.get(leaf) if leaf is not None else None
        if leaf is None or node in (None, thread.leaf, thread.anchor):
            return
        self._pointers[self._session] = leaf
        change.relink = True

    def _read_summary(self, record: Record, change: SessionChange) -> None:
        """A title for the session that holds the leaf, which is seldom this file: then the store finds it."""
        leaf = record.leaf_uuid
        if record.summary is None or leaf not in self._state.nodes:
            return
        session = self._state.sidechains.get(leaf, self._session)
        self._session_change(session).titles["summary"] = record.summary

    def _read_title(self, record: Record, change: SessionChange) -> None:
        source: TitleSource = "custom" if record.type == "custom-title" else "generated"
        title = record.custom_title if record.type == "custom-title" else record.ai_title
        if title:
            change.titles[source] = title

    def _read_cost(self, record: Record, change: SessionChange) -> None:
        change.reported_cost = record.total_cost_usd

    def _read_name(self, record: Record, change: SessionChange) -> None:
        name = decode_fields(self._line.json).get("agentName")
        if name is not None:
            change.metadata = {"claude-code": {"agent_name": msgspec.json.decode(name)}}

    # Events

    def _add_record_event(
        self, record: Record, session: str | None = None, thread: Thread | None = None, *, known: bool = True
    ) -> None:
        kind = kind_of(record)
        becomes = KINDS.get(kind)
        fields = KEPT_FIELDS.get(kind)
        data = self._kept(fields) if fields else UNSET
        identity = record.uuid or self._event_id()
        event: HistoryEvent
        if becomes is Becomes.RUN_METADATA:
            event = RunMetadataEvent(
                id=identity, position=self._line.position, created_at=record.timestamp, kind=kind, data=data
            )
        else:
            event = RecordEvent(
                id=identity,
                position=self._line.position,
                created_at=record.timestamp,
                kind=kind,
                known=known and becomes is not None,
                data=data,
            )
        self._add_event(event, record, session or self._session, thread or self._state.thread)

    def _kept(self, fields: tuple[str, ...]) -> msgspec.Raw | msgspec.UnsetType:
        found = decode_fields(self._line.json)
        kept = {name: found[name] for name in fields if name in found}
        return msgspec.Raw(msgspec.json.encode(kept)) if kept else UNSET

    def _event_id(self) -> str:
        return f"{self._session}@{self._line.position}"

    def _add_event(
        self, event: HistoryEvent, record: Record, session: str, thread: Thread, *, count: bool = True
    ) -> EventChange:
        node = self._node_of_parent(record, thread) if record.uuid is not None else ROOT
        change = EventChange(
            session_id=session,
            event=event,
            record=(self._line.position, self._line.length),
            record_id=record.uuid,
            parent_id=message_in(node),
        )
        self._changes.events.append(change)
        if record.uuid is not None:
            self._state.remember_record(record.uuid, node)
        if count:
            self._changes.counts.events += 1
        return change

    def _tell(self, reason: str, severity: str, json_path: str | None = None) -> None:
        self._changes.diagnostics.append(
            Diagnostic(
                offset=self._line.position,
                length=self._line.length,
                reason=reason,
                json_path=json_path,
                severity="note" if severity == "note" else "error",
            )
        )


def _session_named_in(data: bytes, agent_id: str | None) -> str | None:
    """The external id of the session that the first record naming one belongs to."""
    for line in data.split(b"\n"):
        if b'"sessionId"' not in line:
            continue
        try:
            record = decode_record(line)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            continue
        if record.session_id:
            agent = agent_id or (record.agent_id if record.is_sidechain else None)
            return f"{record.session_id}.{agent}" if agent else record.session_id
    return None


def _aware(moment: datetime) -> datetime:
    """The moment in UTC; one without a zone is taken as UTC."""
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _stripped_text(block: Block) -> str:
    return (block.text or "").strip()


def _flagged_origin(record: Record) -> Origin | None:
    """The origin that a record's own flags tell."""
    if record.is_compact_summary:
        return Origin.COMPACTION
    if record.is_meta:
        return Origin.HARNESS
    kind = record.origin.kind if record.origin else None
    return Origin.NOTIFICATION if kind not in (None, "human") else None


def _empty_origin(parts: tuple[Part, ...]) -> Origin:
    """A text that is nothing but wrappers came from the harness; one of images or files alone is a prompt."""
    injected = bool(parts) and all(part.type == "text" for part in parts)
    return Origin.HARNESS if injected else Origin.PROMPT


def _file_blocks(attachment: Attachment) -> list[Block]:
    """A mentioned file of versions that did not log what they made of it."""
    content = attachment.content
    if attachment.type != "file" or content is None or isinstance(content, str | list) or content.file is None:
        return []
    file = content.file
    if file.content is not None:
        return [Block(type="text", text=file.content)]
    if file.base64 is not None:
        source = FileSource(type="base64", media_type=file.type, data=file.base64)
        return [Block(type="image", source=source, title=attachment.filename)]
    return []


def _prompt_key(call: CallDraft) -> int | None:
    try:
        found = msgspec.json.decode(call.input, type=dict[str, msgspec.Raw]) if call.input is not UNSET else {}
        prompt = msgspec.json.decode(found["prompt"], type=str)
    except (msgspec.MsgspecError, KeyError, UnicodeDecodeError):
        return None
    return crc32(prompt.encode(errors="replace"))
