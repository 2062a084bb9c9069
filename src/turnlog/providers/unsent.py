"""What of an answer did not get into a request: signatures, sealed reasoning and phases that its API has no place for.

A writer carries such things where it can. This looks at what it wrote, so that no writer can drop one in silence.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import takewhile
from typing import Any, cast

from turnlog.model import Message, Part, ReasoningPart, TextPart, ToolCallPart
from turnlog.providers.base import Report
from turnlog.providers.request_parts import PROOFS, agent_fact, proof

_NAMES = frozenset({"signature", "data", "encrypted_content", "thoughtSignature"})
"""The fields in which a request carries a proof."""

_DETAILS = "reasoning_details"


def lose_unsent(messages: Iterable[Message], written: list[dict[str, Any]], report: Report) -> None:
    """Report every proof of an answer that is not in the request.

    Args:
        messages: The messages that were written.
        written: The messages, contents or items of the request.
        report: What was lost already counts as reported, and so does reasoning that nothing follows.
    """
    proven = [
        (message, part)
        for message in messages
        for part in message.parts
        if part.provider is not None and any(_proofs_of(part))
    ]
    if not proven:
        return
    sent = set(_sent(written))
    reported = {(loss.message_id, loss.part_id) for loss in report.losses}
    cut = {repair.message_id for repair in report.repairs if repair.kind == "trailing-reasoning"}
    for message, part in proven:
        is_told = (message.id, part.id) in reported or (message.id in cut and part.id in _trailing(message))
        if not is_told and not sent.issuperset(_proofs_of(part)):
            what = "sealed reasoning" if isinstance(part, ReasoningPart) else f"the signature of a {part.type}"
            report.lose(
                "signature-omitted", message.id, f"{what} is not sent: only its model can read it", part=part.id
            )


def _trailing(message: Message) -> set[str | None]:
    """The ids of the reasoning that nothing follows."""
    behind = takewhile(lambda part: not _is_said(part), reversed(message.parts))
    return {part.id for part in behind if isinstance(part, ReasoningPart)}


def _is_said(part: Part) -> bool:
    return isinstance(part, ToolCallPart) or (isinstance(part, TextPart) and part.text.strip() != "")


def lose_phases(messages: Iterable[Message], report: Report) -> None:
    """Report the phases of answers to an API that knows none."""
    for message in messages:
        if message.role == "assistant" and any(phase_of(part, message) is not None for part in message.parts):
            report.lose("phase-omitted", message.id, "whether it was commentary or the final answer is not sent")


def phase_of(part: Part, message: Message) -> str | None:
    """Whether an answer was commentary or final, as its model or the agent's log says; None if neither says so."""
    noted = (agent_fact(metadata, "phase") for metadata in (getattr(part, "metadata", {}), message.metadata))
    found = proof(part, "phase") or next((phase for phase in noted if phase is not None), None)
    return found if isinstance(found, str) else None


def _proofs_of(part: Part) -> Iterator[str]:
    if part.provider is None:
        return
    for name in PROOFS:
        found = proof(part, name)
        if name == _DETAILS and found is not None:
            yield from map(_as_key, found)
        elif found is not None:
            yield found


def _as_key(detail: Mapping[str, Any]) -> str:
    return json.dumps(detail, sort_keys=True, default=str)


def _sent(written: object) -> Iterator[str]:
    if isinstance(written, list):
        for item in cast("list[object]", written):
            yield from _sent(item)
    elif isinstance(written, dict):
        for name, value in cast("dict[str, object]", written).items():
            if name in _NAMES and isinstance(value, str):
                yield value
            elif name == _DETAILS:
                yield from map(_as_key, cast("list[dict[str, Any]]", value))
            yield from _sent(value)
