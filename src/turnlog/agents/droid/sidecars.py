"""The settings next to a log: the model that is chosen, and the tokens of the whole session.

No record has the tokens of a single call, so these are a total of the session. Which call, model and time its tokens
belong to is unknown.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from turnlog.agents.base import Source
from turnlog.agents.changes import ANSWERED_BY, Changes, SessionChange
from turnlog.agents.decoding import Count
from turnlog.agents.droid import NAME
from turnlog.agents.droid.sources import session_id
from turnlog.agents.sidecars import SidecarFold
from turnlog.model import SessionTotal, Usage

_TOTAL = "tokenUsage"
"""The id of the total: there is one."""


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
    token_usage: DroidTokenUsage | None = None
    assistant_active_time_ms: float | None = None
    autonomy_level: str | None = None
    interaction_mode: str | None = None
    archived_at: str | None = None


class _HarmlessSettings(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """Settings with which Droid edits files and reads without asking, and no more (0.215.0)."""

    autonomy_level: Literal["off", "low"] = "off"
    autonomy_mode: Literal["normal", "spec", "auto-low"] = "normal"
    interaction_mode: Literal["auto", "spec"] = "auto"
    tool_execution_mode: Literal["direct_only"] = "direct_only"
    allow_subagents_in_scripts: bool = False
    archived_at: Any = None
    assistant_active_time_ms: Any = None
    child_inclusive_token_usage_by_session_id: Any = None
    compaction_threshold_check_enabled: Any = None
    inclusive_token_usage: Any = None
    last_call_token_usage: Any = None
    model: Any = None
    provider_lock: Any = None
    provider_lock_timestamp: Any = None
    reasoning_effort: Any = None
    tags: Any = None
    token_usage: Any = None


_LARGEST: Final = 1 << 20


def allow_little(path: Path) -> bool:
    """Whether the settings at a path are known to give Droid no more rights than to edit files.

    A field that may give some, or that is not known, is taken for one that does.
    """
    try:
        with path.open("rb") as file:
            settings = msgspec.json.decode(file.read(_LARGEST), type=_HarmlessSettings)
    except (OSError, ValueError, RecursionError, msgspec.MsgspecError):
        return False
    return not settings.allow_subagents_in_scripts


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
        usage = usage_of(facts.token_usage)
        changes.sessions[self._session_id] = SessionChange(
            session_id=self._session_id,
            totals={} if usage is None else {_TOTAL: SessionTotal(model=facts.model, usage=usage)},
            metadata=({NAME: known} if known else {}) | ({ANSWERED_BY: facts.model} if facts.model else {}),
        )


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
    )
