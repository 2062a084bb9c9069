"""What a hand-over does not carry, or carries otherwise than it was: item by item, and summed up for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final, Literal

from turnlog.model.base import Value

LossKind = Literal[
    "injected",
    "reasoning",
    "reasoning-as-text",
    "output-cut",
    "input",
    "number",
    "order",
    "introduced",
    "file",
    "server-tool",
    "unanswered",
    "result",
    "nested-call",
    "renamed",
    "subagent",
    "part",
    "message",
]
"""What can be lost. `docs/reference/handoff.md` says when."""

_SENTENCES: Final[dict[LossKind, tuple[str, str]]] = {
    "injected": ("1 text of the agent itself is left out", "{} texts of the agent itself are left out"),
    "reasoning": ("1 piece of reasoning is left out", "{} pieces of reasoning are left out"),
    "reasoning-as-text": ("1 piece of reasoning becomes text", "{} pieces of reasoning become text"),
    "output-cut": ("1 long text is cut", "{} long texts are cut"),
    "input": ("1 input that is a text is put into an object", "{} inputs that are texts are put into objects"),
    "number": (
        "1 input has a number that the agent cannot hold exactly",
        "{} inputs have numbers that the agent cannot hold exactly",
    ),
    "order": ("1 text is put before a call that it followed", "{} texts are put before calls that they followed"),
    "introduced": ("1 message has words before it", "{} messages have words before them"),
    "file": ("1 file becomes a note", "{} files become notes"),
    "server-tool": ("1 call that the provider ran becomes text", "{} calls that the provider ran become text"),
    "unanswered": ("1 call without a result is closed", "{} calls without a result are closed"),
    "result": ("1 repeated or empty result is changed", "{} repeated or empty results are changed"),
    "nested-call": ("1 call made by code is left out", "{} calls made by code are left out"),
    "renamed": ("1 id or tool name is changed", "{} ids or tool names are changed"),
    "subagent": ("1 subagent's transcript is left out", "{} subagents' transcripts are left out"),
    "part": ("1 source, citation or other part is left out", "{} sources, citations or other parts are left out"),
    "message": ("1 message is left out", "{} messages are left out"),
}


class HandoffLoss(Value, frozen=True, kw_only=True):
    """One thing that is not carried, or carried otherwise."""

    kind: LossKind
    message_id: str
    detail: str
    tool_call_id: str | None = None


class LossSummary(Value, frozen=True, kw_only=True):
    """All losses of one kind."""

    kind: LossKind
    count: int
    sentence: str


def summary_of(losses: Iterable[HandoffLoss]) -> list[LossSummary]:
    """The losses by kind, in the order of `LossKind`."""
    counts = Counter(loss.kind for loss in losses)
    return [
        LossSummary(kind=kind, count=counts[kind], sentence=one if counts[kind] == 1 else many.format(counts[kind]))
        for kind, (one, many) in _SENTENCES.items()
        if counts[kind]
    ]
