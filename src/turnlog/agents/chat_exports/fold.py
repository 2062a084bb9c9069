"""The fold of one conversation of an export, which is one line: what the services have in common."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import msgspec

from turnlog.agents.chat_exports.sources import CONVERSATION, JSON
from turnlog.agents.conversation import Conversation, ConversationFold
from turnlog.agents.decoding import object_of
from turnlog.agents.jsonl import UNREADABLE
from turnlog.agents.row_files import ROWS, RowLine, json_in


class ExportFold(ConversationFold[RowLine]):
    """Reads a conversation, which is one line."""

    records = ROWS
    agent: ClassVar[str]

    def session_id(self) -> str:
        """The path of a conversation names it."""
        return self._source.session_id or f"{self.agent}:{self._source.path.rpartition('#')[2].replace('/', '_')}"

    def read(self, context: Conversation, record: RowLine) -> None:
        """See `ConversationFold.read`."""
        try:
            found = object_of(msgspec.json.decode(json_in(record, JSON) or b"null"))
        except UNREADABLE:
            found = {}
        if record.table != CONVERSATION or not found:
            context.report("the line is no conversation")
            context.changes.counts.unreadable += 1
            return
        self.read_conversation(context, found, record)
        context.changes.counts.messages += 1

    @abstractmethod
    def read_conversation(self, context: Conversation, conversation: dict[str, Any], row: RowLine) -> None:
        """Add what a conversation says; `row` has the files that it names."""
