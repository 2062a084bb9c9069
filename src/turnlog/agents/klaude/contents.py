"""klaude-code's parts, usage and times become values of the model. Unknown parts keep their JSON."""

from __future__ import annotations

import binascii
from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import PurePath
from typing import Any

import msgspec
from msgspec import UNSET, Raw, UnsetType

from turnlog.agents.decoding import clean_json, fields_of
from turnlog.agents.klaude import NAME
from turnlog.agents.klaude.records import KlaudePart, KlaudeUsage
from turnlog.model import (
    Cost,
    FilePart,
    Part,
    ProviderData,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolKind,
    UnknownPart,
    Usage,
)

TOOL_KINDS: dict[str, ToolKind] = {
    "Agent": ToolKind.SUBAGENT,
    "AskUserQuestion": ToolKind.ASK,
    "Bash": ToolKind.EXECUTE,
    "Edit": ToolKind.EDIT,
    "LookAt": ToolKind.READ,
    "ManageShell": ToolKind.EXECUTE,
    "ManageTasks": ToolKind.EXECUTE,
    "Read": ToolKind.READ,
    "TodoWrite": ToolKind.THINK,
    "WebFetch": ToolKind.FETCH,
    "WebSearch": ToolKind.FETCH,
    "Write": ToolKind.EDIT,
    "apply_patch": ToolKind.EDIT,
}
"""Tools that the versions read offer to the model; any other is of kind `other`."""

PARTS = frozenset({"text", "image_url", "image_file", "thinking_text", "thinking_signature", "tool_call"})
"""The six kinds of parts (R-K1)."""

_DETAILS = "reasoning_details"

_UNNAMED = "unknown"
"""The provider of a thought, when no usage names it."""


def parts_of(raws: Sequence[Raw], message_id: str, provider: str | None = None) -> tuple[Part, ...]:
    """The parts of a message. A signature is added to the thought right before it, or is a separate part (R-K6)."""
    found: list[Part] = []
    wire = wire_parts(raws)
    # MiniMax requires the whole list of details in later requests, so one part with that field is enough to build it.
    details = ReasoningDetails() if any(part.reasoning_field == _DETAILS for part, _ in wire) else None
    for index, (part, raw) in enumerate(wire):
        part_id = f"{message_id}.{index}"
        if part.type == "thinking_signature" and part.signature is not None:
            if details is not None:
                details.add_sealed(found, part, part_id, provider)
            elif not _sign_google_part(found, part, part_id, provider):
                _add_signature(found, part, part_id, provider)
            continue
        found.append(to_part(part, raw, part_id, provider))
        if details is not None:
            details.add_text(found, part)
    return tuple(found)


class ReasoningDetails:
    """The `reasoning_details` of an answer (MiniMax), of which klaude-code logs each as a part.

    The API wants the whole list back, in its order, with the format and id of each. A thought holds its own details and
    the sealed ones right after it.
    """

    def __init__(self) -> None:
        """Begin with none."""
        self._count = 0

    def add_text(self, found: list[Part], part: KlaudePart) -> None:
        """Add the detail of the thought that was found last; other parts have none."""
        thought = found[-1]
        if isinstance(thought, ReasoningPart) and part.reasoning_field == _DETAILS:
            found[-1] = self._with({"type": "reasoning.text", "text": part.text}, thought, part, None)

    def add_sealed(self, found: list[Part], part: KlaudePart, part_id: str, provider: str | None) -> None:
        """Add the content of a signature to the thought right before it, or to one without text."""
        before = found.pop() if found and isinstance(found[-1], ReasoningPart) else None
        thought = before if isinstance(before, ReasoningPart) else ReasoningPart(id=part_id, text="")
        found.append(self._with({"type": "reasoning.encrypted", "data": part.signature}, thought, part, provider))

    def _with(
        self, detail: dict[str, Any], thought: ReasoningPart, part: KlaudePart, provider: str | None
    ) -> ReasoningPart:
        facts = {"id": part.id, "format": part.format, "index": self._count}
        self._count += 1
        detail |= {name: value for name, value in facts.items() if value is not None}
        data = thought.provider or ProviderData(name=provider or _UNNAMED, model=part.model_id)
        opaque = {**data.opaque, _DETAILS: [*data.opaque.get(_DETAILS, ()), detail]}
        return msgspec.structs.replace(thought, provider=msgspec.structs.replace(data, opaque=opaque))


def to_part(part: KlaudePart, raw: Raw, part_id: str | None, provider: str | None = None) -> Part:
    """The part of the model for a part that is no signature."""
    if part.type == "text" and part.text is not None:
        return TextPart(id=part_id, text=part.text)
    if part.type == "thinking_text" and part.text is not None:
        return reasoning_part(part_id, part.text, part, provider)
    if part.type == "tool_call" and part.call_id is not None:
        return call_part(part_id, part.call_id, part.tool_name or "", part.arguments_json or "", part.id)
    return file_part(part, part_id) or UnknownPart(id=part_id, kind=part.type, data=Raw(clean_json(bytes(raw))))


def reasoning_part(part_id: str | None, text: str, part: KlaudePart, provider: str | None) -> ReasoningPart:
    """A thought, with what its provider needs to accept it again."""
    facts = {
        "id": part.id,
        "format": part.format,
        "reasoning_field": part.reasoning_field,
        "signature": part.signature,
    }
    known: dict[str, Any] = {name: value for name, value in facts.items() if value is not None}
    # An answer without usage, as an aborted one, names its model on its thoughts alone.
    # Without a signature or an id nothing binds the thought to a provider; only its model is known.
    name = provider if known else None
    data = ProviderData(name=name or _UNNAMED, model=part.model_id, opaque=known) if known or part.model_id else None
    duration = None if part.duration_s is None else round(part.duration_s * 1000)
    return ReasoningPart(id=part_id, text=text, duration_ms=duration, provider=data)


def call_part(part_id: str | None, call_id: str, name: str, arguments: str, item_id: str | None) -> ToolCallPart:
    """The part for a call. Arguments that are not JSON are kept as text."""
    # Arguments are text in the record: a stream that was cut leaves JSON without its end.
    given = exact_json(arguments)
    return ToolCallPart(
        id=part_id,
        tool_call_id=call_id,
        tool_name=name,
        kind=TOOL_KINDS.get(name, ToolKind.OTHER),
        input=given,
        input_text=arguments if given is UNSET else None,
        metadata={NAME: {"id": item_id}} if item_id is not None else {},
    )


def exact_json(text: str) -> Raw | UnsetType:
    """The text as raw JSON; UNSET when it is no JSON."""
    try:
        data = text.encode()
        msgspec.json.decode(data)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return UNSET
    return Raw(data)


def file_part(part: KlaudePart, part_id: str | None) -> FilePart | None:
    """An image with its bytes, its address, or the path of its file; None for a part that is no image."""
    # `image_url` is an object up to 1.9 and has its fields on the part since 2.0.
    url = part.url or (part.image_url.url if part.image_url is not None else None)
    if url is not None and url.startswith("data:"):
        return _inline_image(url, part_id)
    if url is not None:
        return FilePart(id=part_id, media_type=part.mime_type or "image/*", url=url)
    if part.file_path is None:
        return None
    facts = {"sha256": part.sha256, "byte_size": part.byte_size, "file_path": part.file_path}
    known = {name: value for name, value in facts.items() if value is not None}
    return FilePart(
        id=part_id,
        media_type=part.mime_type or "image/*",
        filename=PurePath(part.file_path).name,
        url=f"file://{part.file_path}",
        metadata={NAME: known},
    )


def usage_of(usage: KlaudeUsage | None) -> Usage | None:
    """The usage in disjoint buckets; None if all counts are zero, because then nothing was counted.

    klaude-code's input includes the cached tokens, and its output the reasoning.
    """
    if usage is None:
        return None
    counted = (usage.input_tokens, usage.output_tokens, usage.cached_tokens, usage.cache_write_tokens)
    # A provider that counts nothing is logged with zeros.
    if not any((*counted, usage.reasoning_tokens)):
        return None
    return Usage(
        # Counts come from providers and need not add up; a negative one would lower the totals.
        input=max(0, usage.input_tokens - usage.cached_tokens - usage.cache_write_tokens),
        cache_read=usage.cached_tokens,
        cache_write=usage.cache_write_tokens,
        output=max(0, usage.output_tokens - usage.reasoning_tokens),
        reasoning=usage.reasoning_tokens,
    )


def cost_of(usage: KlaudeUsage | None) -> Cost | None:
    """The cost that klaude-code computed; None if it knew no price."""
    if usage is None or usage_of(usage) is None:
        return None
    known = [
        Decimal(str(cost))
        for cost in (
            usage.input_cost,
            usage.output_cost,
            usage.cache_read_cost,
            usage.cache_write_cost,
            usage.image_cost,
        )
        if cost is not None
    ]
    return Cost(amount=sum(known, Decimal()), currency=usage.currency, kind="reported") if known else None


def time_of(text: str | None) -> datetime | None:
    """The time in UTC. klaude-code writes local time without a zone, which is taken for that of this machine."""
    if text is None:
        return None
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError, OSError):
        return None


def text_of(parts: Sequence[Part]) -> str:
    """The text of all text parts, joined as klaude-code joins it."""
    return "".join([part.text for part in parts if isinstance(part, TextPart)])


def wire_parts(raws: Sequence[Raw]) -> list[tuple[KlaudePart, Raw]]:
    """Parts as they were logged, each with its JSON."""
    return [(_wire_part(raw), raw) for raw in raws]


def _wire_part(raw: Raw) -> KlaudePart:
    try:
        return msgspec.json.decode(clean_json(bytes(raw)), type=KlaudePart)
    except msgspec.MsgspecError:
        kind = fields_of(raw).get("type")
        return KlaudePart(type=bytes(kind).decode(errors="replace").strip('"') if kind is not None else "part")


def _sign_google_part(found: list[Part], part: KlaudePart, part_id: str, provider: str | None) -> bool:
    """Sign the call or text right before a signature of Gemini, which signs any part; False if there is none."""
    before = found[-1] if found else None
    # Some versions name no format; then the model says whose the signature is.
    is_of_google = part.format.startswith("google") if part.format else "gemini" in (part.model_id or "")
    if not is_of_google or not isinstance(before, ToolCallPart | TextPart):
        return False
    opaque = {"thought_signature": part.signature, **({"format": part.format} if part.format else {})}
    data = ProviderData(name=provider or _UNNAMED, model=part.model_id, opaque=opaque)
    if before.provider is not None:
        # A part has one signature. klaude-code sends the last one, and the one before it is kept without a text (R-K6).
        found.insert(-1, ReasoningPart(id=part_id, text="", provider=before.provider))
    found[-1] = msgspec.structs.replace(before, provider=data)
    return True


def _add_signature(found: list[Part], part: KlaudePart, part_id: str, provider: str | None) -> None:
    before = found[-1] if found else None
    # R-K6: a thought has one signature. A second one, or one after a call or text, becomes a separate part.
    if not isinstance(before, ReasoningPart) or (before.provider and "signature" in before.provider.opaque):
        found.append(reasoning_part(part_id, "", part, provider))
        return
    own = reasoning_part(part_id, "", part, provider).provider
    opaque = {**(before.provider.opaque if before.provider else {}), **(own.opaque if own else {})}
    model = part.model_id or (before.provider.model if before.provider else None)
    data = ProviderData(name=provider or _UNNAMED, model=model, opaque=opaque)
    found[-1] = msgspec.structs.replace(before, provider=data)


def _inline_image(url: str, part_id: str | None) -> FilePart:
    head, _, body = url.removeprefix("data:").partition(",")
    media_type = head.partition(";")[0] or "image/*"
    try:
        data = binascii.a2b_base64(body, strict_mode=True)
    except (binascii.Error, ValueError):
        return FilePart(id=part_id, media_type=media_type, url=url)
    return FilePart(id=part_id, media_type=media_type, data=data)
