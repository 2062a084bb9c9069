"""The fold of a session's messages: a line for each row, in the order of the conversation."""

from __future__ import annotations

from typing import Any

from turnlog.agents.conversation import ConversationContext, ConversationFold
from turnlog.agents.crush import NAME
from turnlog.agents.crush.contents import STOP_REASONS, Parts, part_of, parts_in, result_of, time_of
from turnlog.agents.crush.database import MESSAGES, call_in, session_id
from turnlog.agents.databases import Row
from turnlog.agents.decoding import text_of
from turnlog.agents.row_files import ROWS, RowLine, row_of
from turnlog.model import CompactionEvent, InterruptEvent, Message, MessageError, Origin, TextPart

_FINISH, _SHELL = "finish", "shell_command"


class CrushFold(ConversationFold[RowLine]):
    """Reads the messages of a session."""

    records = ROWS
    says_results = True

    def session_id(self) -> str:
        """The path of the source names it."""
        return self._source.session_id or session_id(self._source.path.rpartition("#")[2])

    def read(self, context: ConversationContext, record: RowLine) -> None:
        """See `ConversationFold.read`."""
        row = row_of(record)
        parts = parts_in(row.get("parts")) if record.table == MESSAGES else None
        if parts is None or not text_of(row.get("id")):
            context.report("the line is no message of a session")
            context.changes.counts.unreadable += 1
            return
        reader = _READERS.get(str(row.get("role")))
        if reader is None:
            context.add_record(str(row.get("role")), known=False)
        else:
            reader(self, context, row, parts)

    def read_prompt(self, context: ConversationContext, row: Row, parts: Parts) -> None:
        """Read a prompt, or a command that the user ran in Crush."""
        identity, at = str(row["id"]), time_of(row.get("created_at"))
        commands = [part.data for part, _ in parts if part.type == _SHELL]
        shown = [(part, raw) for part, raw in parts if part.type not in (_FINISH, _SHELL)]
        visible = tuple(part_of(part, raw, f"{identity}.{number}", at) for number, (part, raw) in enumerate(shown))
        if visible or not commands:
            is_task = call_in(context.external_id) is not None and not context.state.turn
            origin = Origin.SUBAGENT_PROMPT if is_task else Origin.PROMPT
            context.add(Message(id=identity, role="user", parts=visible, origin=origin, created_at=at))
        for number, command in enumerate(commands):
            name = f"{identity}.shell{number}"
            typed = command.command or ""
            context.add(
                Message(
                    id=name,
                    role="user",
                    parts=(TextPart(id=f"{name}.0", text=typed),),
                    origin=Origin.SHELL,
                    created_at=at,
                    metadata={NAME: {"command": {"name": "!", "arguments": typed}}},
                ),
                position=context.position + 2 * number + 1,
                is_counted=not visible and number == 0,
            )
            context.add(
                Message(
                    id=f"{name}.output",
                    role="developer",
                    parts=(TextPart(id=f"{name}.output.0", text=command.output or ""),),
                    origin=Origin.SHELL_OUTPUT,
                    created_at=at,
                    metadata={NAME: {"exit_code": command.exit_code}},
                ),
                position=context.position + 2 * number + 2,
                is_counted=False,
            )

    def read_system(self, context: ConversationContext, row: Row, parts: Parts) -> None:
        """Read what Crush itself says to the model."""
        identity, at = str(row["id"]), time_of(row.get("created_at"))
        shown = [(part, raw) for part, raw in parts if part.type != _FINISH]
        visible = tuple(part_of(part, raw, f"{identity}.{number}", at) for number, (part, raw) in enumerate(shown))
        context.add(Message(id=identity, role="developer", parts=visible, origin=Origin.HARNESS, created_at=at))

    def read_answer(self, context: ConversationContext, row: Row, parts: Parts) -> None:
        """Read an answer: one model call. A summary is one too, and takes the place of what was said before."""
        identity, at = str(row["id"]), time_of(row.get("created_at"))
        shown = [(part, raw) for part, raw in parts if part.type != _FINISH]
        finish = next((part.data for part, _ in parts if part.type == _FINISH), None)
        is_summary = bool(row.get("is_summary_message"))
        if is_summary:
            context.add_event(CompactionEvent(id=f"{identity}.compaction", created_at=at, summary_message_id=identity))
            context.state.is_branched = True
        reason = finish.reason if finish is not None else None
        words = [text for text in (finish.message, finish.details) if text] if finish is not None else []
        metadata: dict[str, Any] = {"provider": row["provider"]} if row.get("provider") else {}
        context.add(
            Message(
                id=identity,
                role="developer" if is_summary else "assistant",
                parts=tuple(part_of(part, raw, f"{identity}.{number}", at) for number, (part, raw) in enumerate(shown)),
                origin=Origin.COMPACTION if is_summary else None,
                created_at=at,
                completed_at=time_of(finish.time) if finish is not None else None,
                model=None if is_summary else text_of(row.get("model")),
                stop_reason=STOP_REASONS.get(reason or ""),
                raw_stop_reason=reason,
                error=MessageError(text=": ".join(words) or "error") if reason == "error" else None,
                metadata={NAME: metadata} if metadata else {},
            )
        )
        if reason == "canceled":
            ended = time_of(finish.time) if finish is not None else None
            context.add_event(
                InterruptEvent(id=f"{identity}.interrupt", created_at=ended, during="answer", message_id=identity)
            )

    def read_results(self, context: ConversationContext, row: Row, parts: Parts) -> None:
        """Read the results of calls, one or more in a row."""
        identity, at = str(row["id"]), time_of(row.get("created_at"))
        found = [part.data for part, _ in parts if part.type == "tool_result"]
        for number, data in enumerate(found):
            name = f"{identity}.{number}"
            context.add_result(data.tool_call_id or name, result_of(data, name, at), record_ids=(identity,))
        context.changes.counts.results += 1


_READERS = {
    "user": CrushFold.read_prompt,
    "system": CrushFold.read_system,
    "assistant": CrushFold.read_answer,
    "tool": CrushFold.read_results,
}
"""Role of a row -> its reader."""

ROLES = frozenset(_READERS)
"""The roles that are known."""
