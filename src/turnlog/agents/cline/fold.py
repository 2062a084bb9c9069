"""The fold of one file of messages, which Cline rewrites whole after each turn.

What a later version of the file leaves out or changes is in an earlier generation of the source; the store keeps it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
from msgspec import Raw

from turnlog.agents.base import Source, SourceKind, StatelessFold
from turnlog.agents.changes import Changes, EventChange, Link, MessageChange, Placement, ResultChange, SessionChange
from turnlog.agents.cline import NAME
from turnlog.agents.cline.contents import blocks_of, call_of, cost_of, part_of, result_of, time_of, usage_of
from turnlog.agents.cline.records import FILES, MESSAGES, ClineBlock, ClineMessage, MessageFile
from turnlog.agents.cline.sidecars import ClineCompaction, compaction_of, place_of
from turnlog.agents.cline.sources import session_id
from turnlog.agents.decoding import LineContext, aware, fields_of, text_of
from turnlog.agents.json_file import locate_items, read_object
from turnlog.model import (
    CompactionEvent,
    InterruptEvent,
    Message,
    MessageError,
    Origin,
    Part,
    ProviderData,
    RunMetadataEvent,
    TextPart,
)
from turnlog.model.session import title_from

_SUMMARIES = frozenset({"compaction", "compaction_summary"})
"""`metadata.kind` of a message with what is left of earlier ones."""


def _is_message(fields: dict[str, Any]) -> bool:
    """Whether an object is a message and not a block of one."""
    return isinstance(fields.get("role"), str) and "content" in fields


class ClineFold(StatelessFold):
    """Reads one file of messages."""

    def __init__(self, source: Source) -> None:
        """Read the messages of a session or of a subagent."""
        self._source = source

    def feed(self, data: bytes, offset: int) -> Changes:
        """See `turnlog.agents.base.Fold.feed`."""
        reading = _Reading(self._source)
        reading.read(data)
        return reading.changes


class _Reading(LineContext):
    """One reading of a file: its header, then its messages in order."""

    def __init__(self, source: Source) -> None:
        super().__init__(Changes())
        # An imported file may be in any folder: then its name is all that names the session.
        external = (source.session_id or "").partition(":")[2] or Path(source.path).name.partition(".")[0]
        self._external = external
        self._is_subagent = source.kind is SourceKind.SUBAGENT
        self._session = SessionChange(
            session_id=session_id(external),
            # A later version of the file may have dropped messages, of which this one says nothing.
            has_branches=True,
        )
        self.changes.sessions[self._session.session_id] = self._session
        folder, self._session.git_branch = place_of(source)
        # A subagent's messages name no folder, and a session's own do neither: only the manifest has it.
        if folder:
            self._session.cwd = self._session.project_path = folder
        # The summary is in no record of this file. `compaction.json` says only behind which message it belongs, so the
        # file of messages has to place it.
        self._compaction = compaction_of(source)
        self._leaf: str | None = None
        self._turn = 0
        self._step = 0
        self._calls: dict[str, str] = {}

    def read(self, data: bytes) -> None:
        """Read a whole file; of a damaged one the messages that are complete."""
        record = read_object(self, data, FILES, _is_message)
        if record is None:
            return
        self._read_header(record)
        # Each message keeps its own bytes in the file, so that `turnlog raw` and the archive can show the record that
        # it came from, although the file is one JSON object.
        for raw, position, length in list(locate_items(record.messages or (), self.json, self.position)):
            self._read_item(raw, position, length)

    def _read_header(self, file: MessageFile) -> None:
        at = None if file.updated_at is None else aware(file.updated_at)
        self._session.last_at = at
        origin = file.origin
        if origin is not None:
            self._session.agent_version = origin.version
        if self._is_subagent:
            # Cline's own id of a subagent is `<parent>__<file>`; the header names the parent too, but a header that is
            # damaged loses it.
            parent = (origin.parent_thread_id if origin is not None else None) or self._external.partition("__")[0]
            # An imported file without `__` in its name would otherwise be its own parent.
            if session_id(parent) != self._session.session_id:
                self.changes.links.append(
                    Link(
                        kind="subagent",
                        parent_session_id=session_id(parent),
                        child_session_id=self._session.session_id,
                    )
                )
        # `system_prompt`, `version` and `origin` are in no message. The messages are left out: each is a record with
        # its own place.
        fields = {name: raw for name, raw in fields_of(self.json).items() if name != "messages"}
        event = RunMetadataEvent(
            id=f"{self._external}@header", created_at=at, kind="header", data=Raw(msgspec.json.encode(fields))
        )
        self.changes.events.append(
            EventChange(session_id=self._session.session_id, event=event, record=(self.position, self.length))
        )
        self.changes.counts.events += 1

    def _read_item(self, raw: Raw, position: int, length: int) -> None:
        found = MESSAGES.decode(bytes(raw))
        if isinstance(found, str):
            self.report(found, json_path="$.messages")
            self.changes.counts.unreadable += 1
            return
        for problem in found.problems:
            self.report(problem.reason, problem.severity, problem.json_path)
        message = found.record
        at = time_of(message.ts)
        if at is not None:
            change = self._session
            change.first_at = at if change.first_at is None else min(change.first_at, at)
            change.last_at = at if change.last_at is None else max(change.last_at, at)
        blocks = list(blocks_of(message.content))
        # A message of the role `user` holds the results of calls, as in Anthropic's API. Each of several parallel calls
        # has such a message.
        results = [block for block, _ in blocks if block.type == "tool_result" and block.tool_use_id]
        # The file is rewritten whole, so an offset names a message only as long as nothing before it changes; Cline
        # gave every recorded message an `id`.
        identity = message.id or f"{self._external}@{position}"
        for number, block in enumerate(results):
            self._add_result(block, identity, number, message, (position, length))
        rest = [(block, raw) for block, raw in blocks if block not in results]
        # Nobody wrote a message that holds only results: it begins no turn.
        if results and not rest:
            self.changes.counts.results += 1
            return
        if message.role == "assistant":
            self._add_answer(message, identity, rest, (position, length))
        else:
            self._add_input(message, identity, rest, (position, length))
        self.changes.counts.messages += 1

    def _add(self, message: Message, record: tuple[int, int], *, step: int | None = None) -> None:
        placement = Placement(
            session_id=self._session.session_id,
            position=record[0],
            records=((*record, None),),
            record_ids=(message.id,),
            parent_id=self._leaf,
            turn=self._turn or None,
            step=step,
        )
        self.changes.messages.append(MessageChange(message=message, placement=placement))
        self._leaf = self._session.active_leaf = message.id
        # `sourceLastMessageKey` names the last message that was replaced. Later ones were not compacted.
        if self._compaction is not None and self._compaction.after == message.id:
            self._add_compaction(self._compaction, record)

    def _add_compaction(self, compaction: ClineCompaction, record: tuple[int, int]) -> None:
        """Add what the newest compaction left, behind the last message that it replaced."""
        found = [_message_of(raw) for raw in compaction.messages]
        at = None if compaction.updated_at is None else aware(compaction.updated_at)
        event = CompactionEvent(
            id=f"{self._external}@compaction.{self._leaf}",
            # Between this message and the next.
            position=sum(record),
            created_at=at,
            # A message with an id was copied from the conversation; one without was written by the compaction.
            kept_message_ids=tuple([message.id for message in found if message.id]),
            replacement=tuple(
                [
                    Message(
                        id=f"{self._external}@compaction.{number}",
                        role="developer",
                        parts=tuple(
                            [
                                part_of(*block, f"{number}.{place}")
                                for place, block in enumerate(blocks_of(message.content))
                            ]
                        ),
                        origin=Origin.COMPACTION,
                        created_at=at,
                        metadata=_metadata_of(message),
                    )
                    for number, message in enumerate(found)
                    if not message.id
                ]
            ),
        )
        self.changes.events.append(EventChange(session_id=self._session.session_id, event=event, parent_id=self._leaf))

    def _add_input(
        self, message: ClineMessage, identity: str, blocks: list[tuple[ClineBlock, Raw]], record: tuple[int, int]
    ) -> None:
        origin = self._origin_of(message)
        if origin in (Origin.PROMPT, Origin.SUBAGENT_PROMPT):
            self._turn += 1
            self._step = 0
        parts = tuple(part_of(block, raw, f"{identity}.{number}") for number, (block, raw) in enumerate(blocks))
        # A summary is a message of the role `user` too, and would be the title of a session that begins with it.
        if origin is not Origin.COMPACTION:
            title = title_from("".join([part.text for part in parts if isinstance(part, TextPart)]))
            if title:
                self._session.titles.setdefault("prompt", title)
        at = time_of(message.ts)
        if origin is Origin.COMPACTION:
            event = CompactionEvent(
                id=f"{identity}.compaction", position=record[0], created_at=at, summary_message_id=identity
            )
            self.changes.events.append(
                EventChange(session_id=self._session.session_id, event=event, record=record, parent_id=self._leaf)
            )
        self._add(
            Message(
                id=identity,
                role="developer" if origin in (Origin.COMPACTION, Origin.HARNESS) else "user",
                parts=parts,
                origin=origin,
                created_at=at,
                metadata=_metadata_of(message),
            ),
            record,
        )

    def _origin_of(self, message: ClineMessage) -> Origin:
        facts = message.metadata or {}
        if text_of(facts.get("kind")) in _SUMMARIES:
            return Origin.COMPACTION
        # Messages that Cline shows but does not send, and those that it sends for itself, carry one of these; what the
        # user typed has neither.
        if facts.get("displayOnly") is True or facts.get("kind") is not None:
            return Origin.HARNESS
        # The first message of a subagent's file is the `task` of the call that started it; later ones would be typed by
        # the user.
        return Origin.SUBAGENT_PROMPT if self._is_subagent and self._turn == 0 else Origin.PROMPT

    def _add_answer(
        self, message: ClineMessage, identity: str, blocks: list[tuple[ClineBlock, Raw]], record: tuple[int, int]
    ) -> None:
        facts, at = message.metadata or {}, time_of(message.ts)
        info = message.model_info
        answerer = None
        if info is not None and info.provider:
            answerer = ProviderData(name=info.provider, model=info.id)
        parts: list[Part] = []
        for number, (block, raw) in enumerate(blocks):
            if block.type == "tool_use":
                call = call_of(block, f"{identity}.{number}", at)
                self._calls[call.tool_call_id] = identity
                parts.append(call)
            else:
                parts.append(part_of(block, raw, f"{identity}.{number}", answerer))
        text = "".join([part.text for part in parts if isinstance(part, TextPart)])
        # A refused request leaves no answer of the model. Cline writes its notice as a message of the assistant.
        is_error = facts.get("displayOnly") is True and facts.get("displayRole") == "error"
        self._step += 1
        self._add(
            Message(
                id=identity,
                role="assistant",
                # What Cline shows in place of an answer is no text of the model.
                parts=() if is_error else tuple(parts),
                created_at=at,
                model=info.id if info is not None else None,
                error=MessageError(text=text) if is_error else None,
                stop_reason="error" if is_error else None,
                usage=usage_of(message.metrics),
                cost=cost_of(message.metrics),
                provider=answerer,
                metadata=_metadata_of(message),
            ),
            record,
            step=self._step,
        )

    def _add_result(
        self, block: ClineBlock, identity: str, number: int, message: ClineMessage, record: tuple[int, int]
    ) -> None:
        call_id = block.tool_use_id or ""
        result = result_of(block, f"{identity}.{number}", time_of(message.ts))
        # Nothing records that the user pressed Escape; only the words of the result show it.
        if result.status == "aborted":
            event = InterruptEvent(
                id=f"{result.id}.interrupt",
                position=record[0],
                created_at=result.completed_at,
                during="tool",
                message_id=self._calls.get(call_id),
                derived=True,
            )
            self.changes.events.append(EventChange(session_id=self._session.session_id, event=event, record=record))
        self.changes.results.append(
            ResultChange(
                session_id=self._session.session_id,
                tool_call_id=call_id,
                result=result,
                position=record[0],
                record=record,
                record_ids=(identity,),
                message_id=self._calls.get(call_id),
            )
        )


def _message_of(raw: Raw) -> ClineMessage:
    found = MESSAGES.decode(bytes(raw))
    return ClineMessage() if isinstance(found, str) else found.record


def _metadata_of(message: ClineMessage) -> dict[str, Any]:
    family = message.model_info.family if message.model_info is not None else None
    facts = {**(message.metadata or {}), **({"family": family} if family else {}), **(message.others or {})}
    return {NAME: facts} if facts else {}
