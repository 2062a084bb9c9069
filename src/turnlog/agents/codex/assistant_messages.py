"""Assistant messages: the items of a response -> one message a response.

The items of a response are separate records, and nothing names the response. It ends with the record of its tokens
(`token_usage_record` since 0.16x, a changed `token_count` before), with a prompt, or where the model continues after
an output. Up to about 0.4x the tokens come before the items and each call is written with its output; there
`turn_context` separates responses, or `record_type: state` in logs without envelopes.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET, Raw, UnsetType

from turnlog.agents.codex import NAME
from turnlog.agents.codex.fold_context import CodexCallDraft, CodexContext, CodexMessageDraft, CountedAs
from turnlog.agents.codex.records import CodexContent, CodexEvent, Item, clean
from turnlog.agents.codex.responses_api import PROVIDER, citations_of, from_base64, reasoning_part, text_of
from turnlog.agents.codex.state import (
    CodexPendingCall,
    CodexPendingMessage,
    derived_id,
    id_in_thread,
    next_number,
    number_of_event,
    number_of_item,
    text_key,
    was_read,
)
from turnlog.agents.codex.tools import CODE_MODE, TOOL_KINDS, tool_name
from turnlog.model import FilePart, Origin, ProviderData, ReasoningPart, TextPart, ToolKind, ToolResult, ToolState
from turnlog.model.merge import join_mappings

_STATES = {"completed": ToolState.OUTPUT_AVAILABLE, "failed": ToolState.OUTPUT_ERROR}
"""`status` of a call that the provider ran -> its state; its result is not logged."""

_TEXT_PARTS = (TextPart, ReasoningPart)
"""Parts that both streams of a rollout have."""

_CODEX_TEXTS = frozenset({"Compact task completed", "<EXTERNAL SESSION IMPORTED>"})
"""Texts in events of the model's messages that Codex itself wrote: after a compaction (0.39), and after an import."""


def read_assistant_message(context: CodexContext, item: Item, *, origin: Origin | None = None) -> None:
    """Read a `message` item of the model. `origin` is given where no model call of this thread wrote it."""
    text = text_of(item.content)
    draft = draft_for(context, item.id, text)
    draft.origin = origin or draft.origin
    number = number_of_item(context.state, draft.pending, item.id, (text,))
    provider = None
    if item.id is not None:
        provider = ProviderData(name=PROVIDER, model=context.state.model, opaque={"id": item.id})
    part = TextPart(
        id=f"{draft.id}.{number}",
        text=text,
        citations=citations_of(item.content),
        metadata=_phase(item.phase),
        provider=provider,
    )
    _set_part(draft, number, part)
    context.state.assistant_text_key = text_key(text)
    _count_item(context, draft, number, item)


def read_reasoning(context: CodexContext, item: Item) -> None:
    """Read a `reasoning` item."""
    texts = _texts(item.summary)
    draft = draft_for(context, item.id, "\0".join(texts) or item.encrypted_content or "")
    number = number_of_item(context.state, draft.pending, item.id, texts)
    _set_part(draft, number, reasoning_part(item, f"{draft.id}.{number}", context.state.model))
    _count_item(context, draft, number, item)


def read_call(context: CodexContext, item: Item) -> None:
    """Read a `function_call`, `custom_tool_call`, `local_shell_call` or `tool_search_call` item."""
    name = tool_name(item.name or item.type.removesuffix("_call"), item.namespace)
    draft = draft_for(context, item.call_id or item.id, f"{name}\0{item.input}")
    call = add_call(context, draft, item.call_id or item.id, name)
    call.input, call.input_text = input_of(item)
    if item.namespace is not None:
        call.metadata["namespace"] = item.namespace
    # The API takes a call back by the id of its item (`fc_…`), results name `call_id`.
    if item.id is not None and item.id != call.id:
        call.provider = ProviderData(name=PROVIDER, model=context.state.model, opaque={"id": item.id})
    # Only `exec` and `wait` run code. The calls made by code are recognised by the time at which they began.
    started_at = context.written_at.timestamp() if name in CODE_MODE and context.written_at is not None else None
    context.state.remember_call(call.id, CodexPendingCall(draft.id, name, call.number, started_at=started_at))
    _count_item(context, draft, call.number, item)


def read_server_call(context: CodexContext, item: Item) -> None:
    """Read a `web_search_call` or `image_generation_call` item, which is written when the provider has run it."""
    name = item.type.removesuffix("_call")
    draft = draft_for(context, item.id, item.type)
    number = number_of_item(context.state, draft.pending, item.id, (name,))
    call = add_call(context, draft, item.id, name, number)
    call.provider_executed = True
    call.state = _STATES.get(item.status or "", ToolState.INPUT_AVAILABLE)
    if isinstance(item.action, Raw):
        call.input = clean(item.action)
    elif item.revised_prompt is not None:
        call.input = Raw(msgspec.json.encode({"revised_prompt": item.revised_prompt}))
    if item.result is not None:
        call.add_result(image_result(context, call.id, item.result))
    _count_item(context, draft, number, item)


def image_result(context: CodexContext, call_id: str, encoded: str) -> ToolResult:
    """The result that a generated image in Base64 is."""
    data = from_base64(encoded)
    content = FilePart(media_type="image/png", data=data) if data is not None else TextPart(text=encoded)
    return ToolResult(id=f"{call_id}:{len(encoded)}", content=(content,), completed_at=context.written_at)


# -- the same texts in the other stream, for a user interface


def on_message_event(context: CodexContext, event: CodexEvent) -> CountedAs:
    """Read an `agent_message` event: a text of the model, or of Codex itself in its place."""
    text = event.message or ""
    return "events" if text in _CODEX_TEXTS else on_text(context, text, None, event.phase)


def on_text(context: CodexContext, text: str, item_id: str | None, phase: str | None) -> CountedAs:
    """Add a text of the model, when its item has not been read."""
    place = _part_of_event(context, item_id, text)
    if place is None:
        return "duplicates"
    draft, number = place
    _keep_longer(draft, number, TextPart(id=f"{draft.id}.{number}", text=text, metadata=_phase(phase)))
    return "messages"


def on_reasoning(context: CodexContext, text: str, item_id: str | None) -> CountedAs:
    """Add reasoning, or one section of it, when its item has not been read."""
    place = _part_of_event(context, item_id, text, is_section=item_id is None)
    if place is None:
        return "duplicates"
    draft, number = place
    if number in draft.pending.sections:
        # It may be no part of its own. Shown too early, it could not be taken back.
        draft.pending.sections[number] = text
    else:
        _keep_longer(draft, number, ReasoningPart(id=f"{draft.id}.{number}", text=text))
    return "messages"


def _part_of_event(
    context: CodexContext, item_id: str | None, text: str, *, is_section: bool = False
) -> tuple[CodexMessageDraft, int] | None:
    """The draft and number of the part that an event has, and that its item will have.

    None if the item was read already, or will be read: in a migrated copy every text has its item.
    """
    newest = context.state.messages.get(context.state.assistant_message or "")
    key = item_id or text_key(text)
    if newest is not None and was_read(newest, key):
        return None
    if _belongs_to_next(context):
        context.close_message()
    draft = draft_for(context, item_id, text)
    # A migrated copy does not record the version it was copied from, which would say where its texts are.
    if context.state.layout_unknown:
        draft.pending.unnumbered.append((key, is_section))
        draft.records.append((context.position, context.length, None))
        draft.add_time(context.written_at)
        return None
    number = number_of_event(context.state, draft.pending, key, is_section=is_section)
    draft.records.append((context.position, context.length, None if number in draft.pending.sections else number))
    draft.add_time(context.written_at)
    return draft, number


def _set_part(draft: CodexMessageDraft, number: int, part: TextPart | ReasoningPart) -> None:
    """Set the part of an item. Where the event had more of the text, that text stays."""
    known = draft.parts.get(number)
    if isinstance(known, _TEXT_PARTS) and _is_shorter(part.text, known.text):
        part = msgspec.structs.replace(part, text=known.text)
    draft.parts[number] = part


def _keep_longer(draft: CodexMessageDraft, number: int, part: TextPart | ReasoningPart) -> None:
    known = draft.parts.get(number)
    if not isinstance(known, _TEXT_PARTS) or _is_shorter(known.text, part.text):
        draft.parts[number] = part


def _is_shorter(text: str, other: str) -> bool:
    """Whether `other` is longer. Of two equally long texts the later one in the alphabet wins, whatever their order."""
    return text != other and (len(text), text) < (len(other), other)


# -- the current message


def draft_for(context: CodexContext, item_id: str | None, text: str) -> CodexMessageDraft:
    """The draft of the response that an item belongs to. The first item of a response begins it and names it."""
    draft = context.current_draft()
    if draft is not None and not _is_complete(context, draft.pending):
        return draft
    if item_id is not None:
        return context.begin_message(id_in_thread(context.id_prefix, item_id))
    state = context.state
    return context.begin_message(derived_id(context.id_prefix, state.turn_key, "assistant", text, state.text_counts))


def add_call(
    context: CodexContext, draft: CodexMessageDraft, call_id: str | None, name: str, number: int | None = None
) -> CodexCallDraft:
    """Add a call after the parts that the message has, or return the one with the same id."""
    known = context.calls.get(call_id) if call_id is not None else None
    if known is not None and known.draft is draft:
        return known
    pending = context.state.calls.get(call_id) if call_id is not None else None
    # An earlier feed read the call: its part keeps its number, so that the store joins both readings.
    if number is None and pending is not None and pending.message_id == draft.id:
        number = pending.number
    if number is None:
        number = next_number(context.state, draft.pending)
    part_id = f"{draft.id}.{number}"
    call = CodexCallDraft(draft, number, call_id or part_id, name, TOOL_KINDS.get(name, ToolKind.OTHER))
    call.started_at = context.written_at
    draft.parts[number] = call
    context.calls[call.id] = call
    return call


def _is_complete(context: CodexContext, place: CodexPendingMessage) -> bool:
    """Whether the response was complete before this item."""
    if place.has_usage and not place.usage_first:
        return True
    # The model continues only after it was sent the output. In the old layouts an output follows its call at once, and
    # more items of the same response may come after it.
    return place.has_output and not (context.state.pairwise or place.usage_first)


def _belongs_to_next(context: CodexContext) -> bool:
    """Whether an event begins another response: in the layout where all texts and the tokens come before the items.

    A copy by 0.169 lacks the `turn_context` that 0.39 writes between the two responses.
    """
    draft = context.current_draft() if context.state.texts_first else None
    return draft is not None and draft.pending.usage_first and draft.pending.items > 0


def _count_item(context: CodexContext, draft: CodexMessageDraft, number: int, item: Item) -> None:
    if item.others:
        draft.metadata = join_mappings(draft.metadata, item.others)
    draft.pending.items += 1
    draft.records.append((context.position, context.length, number))
    draft.add_time(context.written_at)
    context.changes.counts.messages += 1


def _texts(pieces: list[CodexContent] | None) -> list[str]:
    return [piece.text for piece in pieces if piece.text] if pieces else []


def _phase(phase: str | None) -> dict[str, Any]:
    return {} if phase is None else {NAME: {"phase": phase}}


def input_of(item: Item) -> tuple[Raw | UnsetType, str | None]:
    """A call's input as JSON, or as text where it is not JSON."""
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
