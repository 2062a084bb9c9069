"""What the model said: items of responses -> one message a response.

A response's items are records of their own, and nothing names the response. It ends where its tokens are told
(`token_usage_record` since 0.16x, a changed `token_count` before), at a prompt, or where the model speaks again after
an output. Up to about 0.4x the tokens come before the items and each call is written with its output; there
`turn_context` separates responses, and `record_type: state` in the logs without envelopes.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET, Raw, UnsetType

from turnlog.agents.codex import identity
from turnlog.agents.codex.drafts import CallDraft, MessageDraft
from turnlog.agents.codex.fold_context import Reading, Told
from turnlog.agents.codex.identity import is_told, next_number, number_of_event, number_of_item
from turnlog.agents.codex.records import Content, Event, Item, clean
from turnlog.agents.codex.responses_api import PROVIDER, citations_of, from_base64, reasoning_part, text_of
from turnlog.agents.codex.sources import NAME
from turnlog.agents.codex.state import OpenCall, OpenMessage
from turnlog.agents.codex.tools import CODE_MODE, KINDS, tool_name
from turnlog.model import FilePart, Origin, ProviderData, ReasoningPart, TextPart, ToolKind, ToolResult, ToolState
from turnlog.model.merge import join_mappings

_STATES = {"completed": ToolState.OUTPUT_AVAILABLE, "failed": ToolState.OUTPUT_ERROR}
"""Of a call that the provider ran, by the word of its item; its result is not logged."""

_SPOKEN = (TextPart, ReasoningPart)
"""Parts that both streams tell."""

_OWN_WORDS = frozenset({"Compact task completed"})
"""What Codex (0.39) said of its own when it had compacted."""


def read_answer(reading: Reading, item: Item, *, origin: Origin | None = None) -> None:
    """A `message` item of the model; with an origin one that no call of this thread gave."""
    text = text_of(item.content)
    draft = draft_for(reading, item.id, text)
    draft.origin = origin or draft.origin
    number = number_of_item(reading.state, draft.open, item.id, (text,))
    provider = None
    if item.id is not None:
        provider = ProviderData(name=PROVIDER, model=reading.state.model, opaque={"id": item.id})
    part = TextPart(
        id=f"{draft.id}.{number}",
        text=text,
        citations=citations_of(item.content),
        metadata=_phase(item.phase),
        provider=provider,
    )
    _put(draft, number, part)
    reading.state.answer_key = identity.text_key(text)
    _note_item(reading, draft, number, item)


def read_reasoning(reading: Reading, item: Item) -> None:
    """A `reasoning` item."""
    texts = _texts(item.summary)
    draft = draft_for(reading, item.id, "\0".join(texts) or item.encrypted_content or "")
    number = number_of_item(reading.state, draft.open, item.id, texts)
    _put(draft, number, reasoning_part(item, f"{draft.id}.{number}", reading.state.model))
    _note_item(reading, draft, number, item)


def read_call(reading: Reading, item: Item) -> None:
    """A `function_call`, `custom_tool_call`, `local_shell_call` or `tool_search_call` item."""
    name = tool_name(item.name or item.type.removesuffix("_call"), item.namespace)
    draft = draft_for(reading, item.call_id or item.id, f"{name}\0{item.input}")
    call = add_call(reading, draft, item.call_id or item.id, name)
    call.input, call.input_text = _input_of(item)
    if item.namespace is not None:
        call.metadata["namespace"] = item.namespace
    if item.id is not None and item.id != call.id:
        call.provider = ProviderData(name=PROVIDER, model=reading.state.model, opaque={"id": item.id})
    began = reading.at.timestamp() if name in CODE_MODE and reading.at is not None else None
    reading.state.remember_call(call.id, OpenCall(draft.id, name, call.number, began=began))
    _note_item(reading, draft, call.number, item)


def read_server_call(reading: Reading, item: Item) -> None:
    """A `web_search_call` or `image_generation_call` item: the provider ran it, and the item is its end."""
    name = item.type.removesuffix("_call")
    draft = draft_for(reading, item.id, item.type)
    number = number_of_item(reading.state, draft.open, item.id, (name,))
    call = add_call(reading, draft, item.id, name, number)
    call.provider_executed = True
    call.state = _STATES.get(item.status or "", ToolState.INPUT_AVAILABLE)
    if isinstance(item.action, Raw):
        call.input = clean(item.action)
    elif item.revised_prompt is not None:
        call.input = Raw(msgspec.json.encode({"revised_prompt": item.revised_prompt}))
    if item.result is not None:
        call.add_result(image_result(reading, call.id, item.result))
    _note_item(reading, draft, number, item)


def image_result(reading: Reading, call_id: str, encoded: str) -> ToolResult:
    """A generated image."""
    data = from_base64(encoded)
    content = FilePart(media_type="image/png", data=data) if data is not None else TextPart(text=encoded)
    return ToolResult(id=f"{call_id}:{len(encoded)}", content=(content,), completed_at=reading.at)


# -- the same thing as a user interface was told


def hear_message(reading: Reading, event: Event) -> Told:
    """An answer; or what Codex itself said in its place, which no model did."""
    text = event.message or ""
    return "events" if text in _OWN_WORDS else hear_text(reading, text, None, event.phase)


def hear_text(reading: Reading, text: str, item_id: str | None, phase: str | None) -> Told:
    """An answer."""
    place = _place_of_event(reading, item_id, text)
    if place is None:
        return "duplicates"
    draft, number = place
    _keep_longer(draft, number, TextPart(id=f"{draft.id}.{number}", text=text, metadata=_phase(phase)))
    return "messages"


def hear_reasoning(reading: Reading, text: str, item_id: str | None) -> Told:
    """A thought, or one section of it."""
    place = _place_of_event(reading, item_id, text, is_section=item_id is None)
    if place is None:
        return "duplicates"
    draft, number = place
    _keep_longer(draft, number, ReasoningPart(id=f"{draft.id}.{number}", text=text))
    return "messages"


def _place_of_event(
    reading: Reading, item_id: str | None, text: str, *, is_section: bool = False
) -> tuple[MessageDraft, int] | None:
    """Where to tell it: as the part that its item will be.

    None when the item was read already, or will be: in a copy that was migrated each text has its item.
    """
    newest = reading.state.messages.get(reading.state.answer or "")
    key = item_id or identity.text_key(text)
    if newest is not None and is_told(newest, key):
        return None
    if _is_of_next(reading):
        reading.close_message()
    draft = draft_for(reading, item_id, text)
    if reading.state.layout_open:
        draft.open.unnumbered.append((key, is_section))
        draft.records.append((reading.position, reading.length, None))
        draft.at(reading.at)
        return None
    number = number_of_event(reading.state, draft.open, key, is_section=is_section)
    draft.records.append((reading.position, reading.length, number))
    draft.at(reading.at)
    return draft, number


def _put(draft: MessageDraft, number: int, part: TextPart | ReasoningPart) -> None:
    """The item's part; where the other stream told more of the text, that text."""
    known = draft.parts.get(number)
    if isinstance(known, _SPOKEN) and _is_shorter(part.text, known.text):
        part = msgspec.structs.replace(part, text=known.text)
    draft.parts[number] = part


def _keep_longer(draft: MessageDraft, number: int, part: TextPart | ReasoningPart) -> None:
    known = draft.parts.get(number)
    if not isinstance(known, _SPOKEN) or _is_shorter(known.text, part.text):
        draft.parts[number] = part


def _is_shorter(text: str, other: str) -> bool:
    """Whether `other` tells more; of two as long the later in the alphabet, so that their order is all the same."""
    return text != other and (len(text), text) < (len(other), other)


# -- the message


def draft_for(reading: Reading, item_id: str | None, text: str) -> MessageDraft:
    """The response that an item belongs to; the first item of one begins it and names it."""
    draft = reading.open_draft()
    if draft is not None and not _is_over(reading, draft.open):
        return draft
    if item_id is not None:
        return reading.begin_message(identity.named(reading.thread, item_id))
    state = reading.state
    return reading.begin_message(identity.made_up(reading.thread, state.turn_key, "assistant", text, state.said))


def add_call(
    reading: Reading, draft: MessageDraft, call_id: str | None, name: str, number: int | None = None
) -> CallDraft:
    """Put a call behind the parts that the message has; one that is told of again is the same call."""
    known = reading.calls.get(call_id) if call_id is not None else None
    if known is not None and known.draft is draft:
        return known
    told = reading.state.calls.get(call_id) if call_id is not None else None
    if number is None and told is not None and told.message_id == draft.id:
        number = told.number
    if number is None:
        number = next_number(reading.state, draft.open)
    part_id = f"{draft.id}.{number}"
    call = CallDraft(draft, number, call_id or part_id, name, KINDS.get(name, ToolKind.OTHER))
    call.started_at = reading.at
    draft.parts[number] = call
    reading.calls[call.id] = call
    return call


def _is_over(reading: Reading, place: OpenMessage) -> bool:
    """Whether the response was complete before this item."""
    if place.counted and not place.counted_first:
        return True
    return place.answered and not (reading.state.pairwise or place.counted_first)


def _is_of_next(reading: Reading) -> bool:
    """Whether what an event tells is of another response: where all texts of one and its tokens come before its items.

    A copy (0.169) leaves out the `turn_context` of 0.39 that stands between the two.
    """
    draft = reading.open_draft() if reading.state.told_first else None
    return draft is not None and draft.open.counted_first and draft.open.items > 0


def _note_item(reading: Reading, draft: MessageDraft, number: int, item: Item) -> None:
    if item.others:
        draft.metadata = join_mappings(draft.metadata, item.others)
    draft.open.items += 1
    draft.records.append((reading.position, reading.length, number))
    draft.at(reading.at)
    reading.changes.counts.messages += 1


def _texts(pieces: list[Content] | None) -> list[str]:
    return [piece.text for piece in pieces if piece.text] if pieces else []


def _phase(phase: str | None) -> dict[str, Any]:
    return {} if phase is None else {NAME: {"phase": phase}}


def _input_of(item: Item) -> tuple[Raw | UnsetType, str | None]:
    """A call's input as JSON, or its text where it is none."""
    if item.input is not None:
        return UNSET, item.input
    if isinstance(item.action, Raw):
        return clean(item.action), None
    if not isinstance(item.arguments, Raw):
        return UNSET, None
    arguments = clean(item.arguments)
    if not bytes(arguments).startswith(b'"'):
        return arguments, None
    text = msgspec.json.decode(arguments, type=str)
    try:
        return msgspec.json.decode(text, type=Raw), None
    except (msgspec.MsgspecError, UnicodeEncodeError, RecursionError):
        return UNSET, text
