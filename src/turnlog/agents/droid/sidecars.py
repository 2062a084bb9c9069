"""The settings next to a log: the model that is chosen, and the tokens of the whole session.

No record has the tokens of a single call. The totals become a message without parts beside the conversation, marked as
estimated: which call, model and time they belong to is unknown.
"""

from __future__ import annotations

from datetime import datetime

import msgspec

from turnlog.agents.base import HOOKED_FROM, Source
from turnlog.agents.changes import Changes, MessageChange, Placement, SessionChange
from turnlog.agents.decoding import Count, aware
from turnlog.agents.droid import NAME
from turnlog.agents.droid.sources import session_id
from turnlog.agents.sidecars import SidecarFold
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


class DroidSidecarFold(SidecarFold[DroidSettings]):
    """Reads the settings of one session."""

    kind = DroidSettings

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self._session_id = source.session_id or session_id("")

    def add_facts(self, facts: DroidSettings, size: int, changes: Changes) -> None:
        """See `SidecarFold.add_facts`."""
        known = {
            "assistant_active_time_ms": facts.assistant_active_time_ms,
            "autonomy_level": facts.autonomy_level,
            "interaction_mode": facts.interaction_mode,
            "archived_at": facts.archived_at,
        }
        known = {name: value for name, value in known.items() if value is not None}
        changes.sessions[self._session_id] = SessionChange(
            session_id=self._session_id, metadata={NAME: known} if known else {}
        )
        usage = usage_of(facts.token_usage)
        if usage is not None:
            changes.messages.append(self._totals(facts, usage, size))

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
