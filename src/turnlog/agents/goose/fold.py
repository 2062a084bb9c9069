"""The fold of a session's rows: a line for each message, after a line with facts about all of them.

A row is not always one message. Of an answer with several calls each has a row of its own, with its result behind it;
before 1.40 its text was apart too. `turnlog.agents.goose.messages` joins them.
"""

from __future__ import annotations

from turnlog.agents.conversation import ConversationContext, ConversationFold
from turnlog.agents.decoding import object_of, value_of
from turnlog.agents.goose.database import HEADER, MESSAGES, session_id
from turnlog.agents.goose.facts import model_of
from turnlog.agents.goose.messages import MODEL, TYPE, LoggedMessage, read_message
from turnlog.agents.row_files import ROWS, RowLine, json_in, row_of


class GooseFold(ConversationFold[RowLine]):
    """Reads the messages of a session."""

    records = ROWS
    says_results = True

    def session_id(self) -> str:
        """The path of the source names it."""
        return self._source.session_id or session_id(self._source.path.rpartition("#")[2])

    def read(self, context: ConversationContext, record: RowLine) -> None:
        """See `ConversationFold.read`."""
        if record.table == HEADER:
            self._read_header(context, record)
        elif record.table == MESSAGES:
            read_message(context, _message_in(record))
        else:
            context.report("the line is no row of a session")
            context.changes.counts.unreadable += 1

    def _read_header(self, context: ConversationContext, record: RowLine) -> None:
        # The row of the session is at hand only where the log is made.
        context.state.notes[TYPE] = str(row_of(record).get("session_type") or "")
        context.state.notes[MODEL] = model_of(record) or ""
        context.changes.counts.events += 1


def _message_in(record: RowLine) -> LoggedMessage:
    row = row_of(record)
    content, created = row.get("content_json"), row.get("created_timestamp")
    return LoggedMessage(
        identity=row.get("message_id"),
        role=str(row.get("role")),
        content=content.encode(errors="replace") if isinstance(content, str) else None,
        created=created,
        metadata=object_of(value_of(json_in(record, "metadata_json") or b"null")),
    )
