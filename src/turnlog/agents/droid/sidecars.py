"""The settings next to a log: the model that is chosen, and the tokens of the whole session.

No record has the tokens of a single call. The totals become a message without parts beside the conversation, marked as
estimated: which call, model and time they belong to is unknown.
"""

from __future__ import annotations

from datetime import datetime

import msgspec

from turnlog.agents.base import HOOKED_FROM, Source
from turnlog.agents.changes import Changes, Diagnostic, MessageChange, Placement, SessionChange
from turnlog.agents.decoding import Count, aware
from turnlog.agents.droid import NAME
from turnlog.agents.droid.sources import session_id
from turnlog.agents.jsonl import UNREADABLE
from turnlog.model import Fate, Message, Usage

_TOTALS_POSITION = HOOKED_FROM - 1
"""The position of the totals: after every record of the log."""


class DroidTokenUsage(msgspec.Struct, rename="camel", gc=False):
    """Tokens of all calls of a session. `input_tokens` excludes what was read from the cache or written to it."""

    input_tokens: Count | None = None
    output_tokens: Count | None = None
    cache_creation_tokens: Count | None = None
    cache_read_tokens: Count | None = None
    thinking_tokens: Count | None = None
    factory_credits: float | None = None


class DroidSettings(msgspec.Struct, rename="camel", gc=False):
    """The fields of the settings that are read."""

    model: str | None = None
    provider_lock_timestamp: datetime | None = None
    token_usage: DroidTokenUsage | None = None
    assistant_active_time_ms: float | None = None
    autonomy_level: str | None = None
    interaction_mode: str | None = None
    archived_at: str | None = None


class DroidSidecarFold:
    """Reads a file that is rewritten whole each time. It remembers nothing."""

    def __init__(self, source: Source) -> None:
        self._session_id = source.session_id or session_id("")

    def feed(self, data: bytes, offset: int) -> Changes:
        """See `turnlog.agents.base.Fold.feed`."""
        changes = Changes()
        try:
            settings = msgspec.json.decode(data, type=DroidSettings)
        except UNREADABLE as error:
            changes.counts.unreadable = 1
            changes.diagnostics.append(Diagnostic(offset=0, length=len(data), line=1, reason=str(error)))
            return changes
        changes.counts.events = 1
        facts = {
            "assistant_active_time_ms": settings.assistant_active_time_ms,
            "autonomy_level": settings.autonomy_level,
            "interaction_mode": settings.interaction_mode,
            "archived_at": settings.archived_at,
        }
        known = {name: value for name, value in facts.items() if value is not None}
        changes.sessions[self._session_id] = SessionChange(
            session_id=self._session_id, metadata={NAME: known} if known else {}
        )
        usage = usage_of(settings.token_usage)
        if usage is not None:
            changes.messages.append(self._totals(settings, usage, len(data)))
        return changes

    def state(self) -> bytes:
        """See `turnlog.agents.base.Fold.state`."""
        return b""

    def _totals(self, settings: DroidSettings, usage: Usage, size: int) -> MessageChange:
        began = settings.provider_lock_timestamp
        message = Message(
            # The totals only grow: of two readings the larger one counts.
            id=f"{self._session_id.partition(':')[2]}:totals",
            role="assistant",
            model=settings.model,
            usage=usage,
            created_at=None if began is None else aware(began),
            metadata={NAME: {"totals": True}},
        )
        placement = Placement(
            session_id=self._session_id,
            position=_TOTALS_POSITION,
            records=((0, size, None),),
            fate=Fate.SIDECAR,
        )
        return MessageChange(message=message, placement=placement)


def usage_of(tokens: DroidTokenUsage | None) -> Usage | None:
    """The totals in disjoint buckets; None if nothing was counted.

    `output_tokens` includes the thinking. Droid writes 0 thinking tokens where a provider counts none of them apart.
    """
    if tokens is None:
        return None
    counts = (tokens.input_tokens, tokens.output_tokens, tokens.cache_creation_tokens, tokens.cache_read_tokens)
    if not any(counts):
        return None
    output, thinking = tokens.output_tokens, tokens.thinking_tokens or None
    return Usage(
        input=tokens.input_tokens,
        cache_read=tokens.cache_read_tokens,
        cache_write=tokens.cache_creation_tokens,
        output=None if output is None else max(0, output - (thinking or 0)),
        reasoning=thinking,
        exactness="estimated",
    )
