"""The fold of a file that versions before 1.10 wrote: facts about the session first, then its messages."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET, Raw, UnsetType

from turnlog.agents.base import Source, StatelessFold
from turnlog.agents.changes import Changes
from turnlog.agents.conversation import ConversationContext
from turnlog.agents.decoding import text_of
from turnlog.agents.goose.contents import usage_of
from turnlog.agents.goose.database import session_id
from turnlog.agents.goose.messages import LoggedMessage, read_message
from turnlog.agents.jsonl import JsonLines
from turnlog.model import SessionTotal
from turnlog.model.session import title_given


class FileLine(msgspec.Struct):
    """A line of a file. Every field has a default, because a damaged line may lack any."""

    working_dir: str | None = None
    description: str | None = None
    message_count: int | None = None
    schedule_id: str | None = None
    accumulated_input_tokens: int | None = None
    accumulated_output_tokens: int | None = None
    id: str | None = None
    role: str | None = None
    created: int | None = None
    content: Raw | UnsetType = UNSET


_LINES = JsonLines(
    FileLine,
    first_keys=("working_dir", "id", "role"),
    plausible=lambda line: line.role is not None or line.working_dir is not None,
)


class GooseFileFold(StatelessFold):
    """Reads a session."""

    def __init__(self, source: Source) -> None:
        """Read one session."""
        self._session_id = source.session_id or session_id("")

    def feed(self, data: bytes, offset: int) -> Changes:
        """See `turnlog.agents.base.Fold.feed`."""
        context = ConversationContext(self._session_id)
        for line in _LINES.read_into(context, data, offset, 1):
            if line.role is not None:
                content = None if isinstance(line.content, UnsetType) else bytes(line.content)
                read_message(context, LoggedMessage(line.id, line.role, content, line.created, {}))
            elif line.working_dir is not None:
                _read_facts(context, line)
            else:
                context.add_record("", known=False)
        return context.finish()


def _read_facts(context: ConversationContext, line: FileLine) -> None:
    change = context.session
    change.cwd = change.project_path = text_of(line.working_dir)
    if line.description and title_given(line.description):
        change.titles["generated"] = title_given(line.description)
    counts: dict[str, Any] = {
        "inputTokens": line.accumulated_input_tokens,
        "outputTokens": line.accumulated_output_tokens,
    }
    usage = usage_of(counts)
    if usage is not None:
        # What was read from a cache is inside the input.
        change.totals[""] = SessionTotal(usage=msgspec.structs.replace(usage, exactness="estimated"))
    context.changes.counts.events += 1
