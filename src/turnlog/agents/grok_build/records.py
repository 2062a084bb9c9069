"""The shapes of Grok Build's lines (`docs/formats/grok-build.md`), and how they are decoded."""

from __future__ import annotations

import msgspec
from msgspec import UNSET, Raw, UnsetType

from turnlog.agents.decoding import Count
from turnlog.agents.jsonl import UNREADABLE, JsonLines

METHODS = frozenset({"session/update", "_x.ai/session/update"})


class ToolFacts(msgspec.Struct, gc=False):
    """What Grok Build knows about the tool of a call."""

    name: str | None = None
    kind: str | None = None


class UpdateMeta(msgspec.Struct, gc=False):
    """Facts about an update itself."""

    model: str | None = msgspec.field(name="modelId", default=None)
    prompt_index: int | None = msgspec.field(name="promptIndex", default=None)
    tool: ToolFacts | None = msgspec.field(name="x.ai/tool", default=None)


class TurnUsage(msgspec.Struct, rename="camel", gc=False):
    """Tokens of a turn, in all or of one model. The input includes cached tokens, the output thoughts."""

    input_tokens: Count | None = None
    output_tokens: Count | None = None
    cached_read_tokens: Count | None = None
    reasoning_tokens: Count | None = None
    model_calls: int | None = None
    num_turns: int | None = None
    cost_usd_ticks: int | None = None
    model_usage: Raw | UnsetType = UNSET


def by_model(used: TurnUsage) -> dict[str, TurnUsage]:
    """What was used of each model; empty if the turn does not tell them apart."""
    try:
        return {} if isinstance(used.model_usage, UnsetType) else msgspec.json.decode(used.model_usage, type=_ByModel)
    except UNREADABLE:
        return {}


_ByModel = dict[str, TurnUsage]


class Update(msgspec.Struct, gc=False):
    """What happened. Updates of the protocol have names in camel case, Grok Build's own have not."""

    kind: str = msgspec.field(name="sessionUpdate", default="")
    content: Raw | UnsetType = UNSET
    call_id: str | None = msgspec.field(name="toolCallId", default=None)
    title: str | None = None
    status: str | None = None
    raw_input: Raw | UnsetType = msgspec.field(name="rawInput", default=UNSET)
    raw_output: Raw | UnsetType = msgspec.field(name="rawOutput", default=UNSET)
    meta: UpdateMeta = msgspec.field(name="_meta", default_factory=UpdateMeta)
    prompt_id: str | None = None
    stop_reason: str | None = None
    agent_result: str | None = None
    usage: TurnUsage | None = None
    parent_session_id: str | None = None
    child_session_id: str | None = None
    target_prompt_index: int | None = None
    checkpoint_id: str | None = None


class ParamsMeta(msgspec.Struct, rename="camel", gc=False):
    """Where an update comes from."""

    event_id: str | None = None
    agent_timestamp_ms: int | None = None
    prompt_id: str | None = None
    stream_start_ms: int | None = None


class Params(msgspec.Struct, rename="camel", gc=False):
    """An update with its session."""

    session_id: str | None = None
    update: Update = msgspec.field(default_factory=Update)
    meta: ParamsMeta = msgspec.field(name="_meta", default_factory=ParamsMeta)


class UpdateLine(msgspec.Struct, gc=False):
    """A line. Every field has a default, because a damaged line may lack any."""

    timestamp: float | None = None
    method: str | None = None
    params: Params | None = None


UPDATES = JsonLines(
    UpdateLine, first_keys=("timestamp",), plausible=lambda line: line.method in METHODS and line.params is not None
)
"""Reads lines of a log."""
