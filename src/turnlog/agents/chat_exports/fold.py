"""The fold of one conversation of an export, which is one line: what the services have in common."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

from turnlog.agents.chat_exports.export_files import Service, given_id, read_object
from turnlog.agents.chat_exports.sources import CONVERSATION, JSON
from turnlog.agents.conversation import ConversationContext, ConversationFold
from turnlog.agents.decoding import object_of
from turnlog.agents.row_files import ROWS, RowLine, json_in


class ExportFold(ConversationFold[RowLine]):
    """Reads a conversation, which is one line."""

    records = ROWS
    service: ClassVar[Service]

    def session_id(self) -> str:
        """The path of a conversation names it."""
        name = self._source.path.rpartition("#")[2].replace("/", "_")
        return self._source.session_id or f"{self.service.agent}:{name}"

    def read(self, context: ConversationContext, record: RowLine) -> None:
        """See `ConversationFold.read`."""
        found, replaced = read_object(json_in(record, JSON) or b"null")
        if record.table != CONVERSATION or not found:
            context.report("the line is no conversation")
            context.changes.counts.unreadable += 1
            return
        if record.note is not None:
            context.report(record.note)
        for reason in replaced:
            context.report(reason, "note")
        self.read_conversation(context, found, record)
        if given_id(self.service, found) is None:
            context.report("the conversation has no id: that of the session was made from its beginning", "note")
            agent, facts = self.service.agent, context.session.metadata
            context.session.metadata = facts | {agent: object_of(facts.get(agent)) | {"id_is_inferred": True}}
        context.changes.counts.messages += 1

    @abstractmethod
    def read_conversation(self, context: ConversationContext, conversation: dict[str, Any], row: RowLine) -> None:
        """Add what a conversation says; `row` has the files that it names."""
