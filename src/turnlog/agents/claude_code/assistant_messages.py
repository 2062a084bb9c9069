"""Assistant messages: records of one content block each (up to 0.2.x of one message each) -> messages."""

from __future__ import annotations

from zlib import crc32

import msgspec
from msgspec import UNSET

from turnlog.agents.claude_code import contents
from turnlog.agents.claude_code.blocks import WrittenBlock
from turnlog.agents.claude_code.contents import SUBAGENT_TOOLS
from turnlog.agents.claude_code.fold_context import (
    ClaudeContext,
    SessionContext,
    add_malformed_record,
    note_early_reply,
)
from turnlog.agents.claude_code.records import ApiMessage, ClaudeRecord, ContentBlock
from turnlog.agents.claude_code.responses import follows_repetition, note_response, response_of
from turnlog.agents.claude_code.state import (
    SYNTHETIC,
    ClaudeCallDraft,
    ClaudeMessageDraft,
    ClaudePendingCall,
    ClaudePendingMessage,
)
from turnlog.agents.claude_code.tool_results import add_server_result, settle_rejections
from turnlog.agents.decoding import raw_at
from turnlog.model import Part


def read_assistant(context: ClaudeContext, record: ClaudeRecord) -> None:
    """Read an `assistant` record. Those of one response are one message, whatever records come between them."""
    message = record.message
    if message is None:
        add_malformed_record(context, record)
        return
    # No interrupt record came, so the calls were denied: after Escape it is the very next record.
    if context.state.deferred_rejections:
        settle_rejections(context)
    context.note_text(record)
    session = context.session_of(record)
    context.note_age(record, session)
    message_id = response_of(context, record, message, session)
    place, begins_again = context.state.messages.get(message_id), False
    if place is None:
        place = _place_message(context, message_id, record, message, session)
    elif record.uuid is not None:
        begins_again = _continue_message(context, record, message_id, place, session)
    note_response(place, record, message)
    draft = context.reopen(message_id, place, session)
    if record.uuid is not None:
        draft.record_ids.append(record.uuid)
        if message_id == session.state.leaf:
            session.set_newest_record(record.uuid)
    draft.add_facts(record, message)
    if record.requested_model is not None:
        # Versions that write this also write who decided on a call.
        context.state.logs_decisions = True
    # Each record of a copy says where it is from: only assistant records have `requestSessionId`.
    draft.copied_from = context.copied_from(record)
    carried = context.carried(record)
    draft.handed_over = carried is not None
    if carried is not None and carried.model is not None:
        draft.model = carried.model
    _add_blocks(context, draft, record, message, begins_again=begins_again)
    context.changes.counts.messages += 1


def _place_message(
    context: ClaudeContext, message_id: str, record: ClaudeRecord, message: ApiMessage, session: SessionContext
) -> ClaudePendingMessage:
    """The place of a new message. A model call is a step; a message that Claude Code itself wrote is not."""
    state = session.state
    note_early_reply(context, record, session)
    parent, _ = context.attach(record, session)
    step = None
    # `<synthetic>` messages report an error or an interrupt in the model's name.
    if message.model != SYNTHETIC:
        state.step += 1
        step = state.step
        _add_opening(session)
    # A block that is numbered in the log has its number in a copy too.
    is_copy = context.reads_copy and record.api_block_index is None
    follows = context.state.texts.get(parent)
    place = ClaudePendingMessage(
        context.position,
        parent,
        state.turn or None,
        step,
        is_copy=is_copy,
        follows=follows,
        session=None if session is context.main else session.id,
        response_id=message.id if message.id != message_id else None,
    )
    forgotten = context.state.remember_message(message_id, place)
    # Blocks of a forgotten message are numbered from 0 again, so it must not continue in the same draft: with another
    # split of the same bytes it would not.
    if forgotten is not None:
        context.drafts.pop(forgotten, None)
    context.advance(record, session, message_id, None)
    return place


def _add_opening(session: SessionContext) -> None:
    state = session.state
    if not state.opened:
        state.opened = True
        if state.opening:
            session.change.titles["opening"] = state.opening
            state.opening = ""


def _continue_message(
    context: ClaudeContext, record: ClaudeRecord, message_id: str, place: ClaudePendingMessage, session: SessionContext
) -> bool:
    """Give a later record of a message its node: the message, or context injected since, if the record follows that.

    Return whether it follows neither, but a repetition of what the message follows.
    """
    node = context.parent_node(record, session)
    state = session.state
    follows_injected = node == state.leaf and state.anchor == message_id
    assert record.uuid is not None
    context.state.remember_record(record.uuid, node if follows_injected else message_id)
    return not follows_injected and node != message_id and follows_repetition(context, place, node, session)


def _add_blocks(
    context: ClaudeContext,
    draft: ClaudeMessageDraft,
    record: ClaudeRecord,
    message: ApiMessage,
    *,
    begins_again: bool,
) -> None:
    content = message.content
    if isinstance(content, str):
        content = [ContentBlock(type="text", text=content)]
    # A stream's `message_start` and `message_delta` have counts and no block.
    if not content:
        draft.records.append((context.position, context.length, None))
        return
    own = [(index, block) for index, block in enumerate(content) if block.tool_use_id is None or not _is_result(block)]
    first = record.api_block_index
    if first is not None:
        numbers = [first + index for index, _ in own]
    else:
        is_open = message.stop_reason is None
        written = [_written_block(context, block, index, is_open=is_open) for index, block in own]
        numbers = draft.numbers_of(record, written, begins_again=begins_again)
    # In the order that the store has them in.
    for number in sorted({*numbers}) if len(numbers) > 1 else numbers:
        draft.records.append((context.position, context.length, number))
    for (index, block), number in zip(own, numbers, strict=True):
        draft.add_part(number, _assistant_part(context, draft, record, block, number, index))
    if len(own) < len(content):
        for index, block in enumerate(content):
            if _is_result(block):
                add_server_result(context, draft, record, block, index)


def _is_result(block: ContentBlock) -> bool:
    # `web_search_tool_result` and similar blocks are in the assistant message itself, not in a user record.
    return block.tool_use_id is not None and block.type.endswith("tool_result")


def _written_block(context: ClaudeContext, block: ContentBlock, index: int, *, is_open: bool) -> WrittenBlock:
    """What tells a block from others of its message.

    Args:
        context: The feed.
        block: The block.
        index: Its place in its record.
        is_open: The record has no stop reason.
    """
    if block.id is not None:
        return WrittenBlock("call", "", call_id=block.id)
    if block.type == "text" and block.text is not None:
        proof = msgspec.json.encode(block.citations).decode() if block.citations else None
        return WrittenBlock("text", block.text, proof=proof, is_open=is_open)
    if block.type == "thinking" and block.thinking is not None:
        return WrittenBlock("thinking", block.thinking, proof=block.signature, is_open=is_open and not block.signature)
    json = bytes(raw_at(context.json, "message", "content", index))
    return WrittenBlock(block.type, json.decode(errors="replace"))


def _assistant_part(
    context: ClaudeContext,
    draft: ClaudeMessageDraft,
    record: ClaudeRecord,
    block: ContentBlock,
    number: int,
    index: int,
) -> Part | ClaudeCallDraft:
    part_id = draft.part_id(number)
    kind = block.type
    if kind == "text" and block.text is not None:
        return contents.text_part(block, part_id)
    if kind in contents.CALL_BLOCKS and block.id is not None:
        return _call_of(context, draft, record, block, number)
    if kind in contents.REASONING_BLOCKS:
        return contents.reasoning_part(block, part_id, draft.model, record.thinking_duration_ms)
    json = context.json
    return contents.part_of(block, part_id, lambda: raw_at(json, "message", "content", index))


def _call_of(
    context: ClaudeContext, draft: ClaudeMessageDraft, record: ClaudeRecord, block: ContentBlock, number: int
) -> ClaudeCallDraft:
    call_id, name = block.id or "", block.name or ""
    known = context.calls.get(call_id)
    if known is not None and known.draft is draft:
        return known
    call = ClaudeCallDraft(draft, draft.part_id(number), call_id, name)
    call.input, repaired = contents.exact_input(block.input)
    if repaired:
        context.report("bytes that are not UTF-8 became U+FFFD", "note", "$.message.content")
    # `server_tool_use` and `mcp_tool_use` ran at the provider.
    call.provider_executed = block.type != "tool_use"
    call.started_at = record.timestamp
    context.calls[call_id] = call
    prompt = _prompt_key(call) if name in SUBAGENT_TOOLS else None
    session = None if draft.session_id == context.main.id else draft.session_id
    context.state.remember_call(call_id, ClaudePendingCall(draft.id, draft.copied_from, prompt, name, number, session))
    return call


def abort_pending_calls(context: ClaudeContext, session: SessionContext) -> None:
    """Mark the calls without a result as aborted, because a turn begins: they ended with their process or were stopped.

    A result that comes later counts nevertheless. Calls of the session that this one was copied from may still run.
    """
    own = None if session is context.main else session.id
    for call_id, known in context.state.calls.items():
        place = context.state.messages.get(known.message_id)
        # A copied call may still run in the session that it was copied from.
        if known.settled or known.copied_from is not None or known.session != own or place is None:
            continue
        known.settled = True
        call = context.calls.get(call_id) or _reopen_call(context, call_id, known, place, session)
        call.abandoned = True


def _reopen_call(
    context: ClaudeContext, call_id: str, known: ClaudePendingCall, place: ClaudePendingMessage, session: SessionContext
) -> ClaudeCallDraft:
    """The draft of a call that an earlier feed emitted."""
    draft = context.reopen(known.message_id, place, session)
    call = context.calls[call_id] = ClaudeCallDraft(draft, draft.part_id(known.number), call_id, known.name)
    draft.add_part(known.number, call)
    return call


def _prompt_key(call: ClaudeCallDraft) -> int | None:
    """The key of the prompt in a subagent call's input; None if there is none."""
    if call.input is UNSET:
        return None
    try:
        prompt = msgspec.json.decode(call.input, type=dict[str, msgspec.Raw])["prompt"]
        return prompt_key(msgspec.json.decode(prompt, type=str))
    except (msgspec.MsgspecError, KeyError, UnicodeDecodeError):
        return None


def prompt_key(prompt: str) -> int:
    """A checksum of a prompt."""
    return crc32(prompt.encode(errors="replace"))
