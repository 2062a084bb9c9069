"""Droid's records: every known kind with its outcome, their shapes, and how they are decoded.

`docs/formats/droid.md` describes every kind and field; a test compares it with this module. The content of a message is
like that of Anthropic's Messages API, whatever API answered.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any, cast

import msgspec
from msgspec import UNSET, Raw, UnsetType

from turnlog.agents.claude_code.records import ContentBlock
from turnlog.agents.decoding import Count
from turnlog.agents.droid import TURN_END
from turnlog.agents.jsonl import JsonLines


class DroidRecordOutcome(StrEnum):
    """What a record turns into."""

    SESSION = "session"
    MESSAGE = "message"
    COMPACTION = "compaction"
    TURN_END = "end of a turn"
    RUN_METADATA = "run metadata"


RECORD_KINDS: dict[str, DroidRecordOutcome] = {
    "session_start": DroidRecordOutcome.SESSION,
    "message": DroidRecordOutcome.MESSAGE,
    "compaction_state": DroidRecordOutcome.COMPACTION,
    TURN_END: DroidRecordOutcome.TURN_END,
    "session_end": DroidRecordOutcome.RUN_METADATA,
    "todo_state": DroidRecordOutcome.RUN_METADATA,
}


# -- shapes


class _Wire(msgspec.Struct, rename="camel", gc=False):
    pass


class AnchorMessage(_Wire, gc=False):
    """The last message that a compaction replaces."""

    id: str | None = None


class DroidRecord(_Wire, gc=False):
    """One line of a log, of any kind."""

    type: str = ""
    id: str | None = None
    parent_id: str | None = None
    timestamp: datetime | None = None
    message: Raw | UnsetType = UNSET
    compaction_summary_id: str | None = None
    title: str | None = None
    session_title: str | None = None
    is_session_title_manually_set: bool | None = None
    version: int | None = None
    cwd: str | None = None
    last_cwd: str | None = None
    parent: str | None = None
    forked_at_message_id: str | None = None
    calling_session_id: str | None = None
    calling_tool_use_id: str | None = None
    summary_text: str | None = None
    summary_tokens: Count | None = None
    summary_kind: str | None = None
    anchor_message: AnchorMessage | None = None
    turn_id: str | None = None
    reason: str | None = None
    others: dict[str, Any] | None = msgspec.field(name="", default=None)
    """Metadata: the fields that no version seen so far writes in a message."""


_CompleteRecord = cast(
    "type[DroidRecord]",
    msgspec.defstruct("_CompleteRecord", (), bases=(DroidRecord,), gc=False, forbid_unknown_fields=True),
)


class DroidBlock(ContentBlock, gc=False, omit_defaults=True):
    """A block of a message: as in the Messages API, with Droid's own fields of a thought."""

    signature_provider: str | None = msgspec.field(name="signatureProvider", default=None)
    duration_ms: float | None = msgspec.field(name="durationMs", default=None)


class DroidMessage(_Wire, gc=False):
    """What a `message` record contains."""

    role: str = ""
    content: str | list[DroidBlock] | None = None
    visibility: str | None = None
    model_id: str | None = None
    openai_message_id: str | None = None
    reasoning_effort: str | None = None
    interaction_mode: str | None = None
    chat_completion_reasoning_field: str | None = None
    chat_completion_reasoning_content: str | None = None
    others: dict[str, Any] | None = msgspec.field(name="", default=None)
    """Metadata: the fields that are not listed here."""


_CompleteMessage = cast(
    "type[DroidMessage]",
    msgspec.defstruct("_CompleteMessage", (), bases=(DroidMessage,), gc=False, forbid_unknown_fields=True),
)


# -- decoding


def _is_record(record: DroidRecord) -> bool:
    return record.type in RECORD_KINDS


LINES = JsonLines(DroidRecord, first_keys=("type",), plausible=_is_record, complete=_CompleteRecord)
"""Reads records out of lines."""

MESSAGES = JsonLines(DroidMessage, first_keys=(), plausible=lambda message: True, complete=_CompleteMessage)
"""Reads the message of a record out of its JSON."""
