"""The fold of one Codex rollout: records in file order -> changes of the model.

A rollout has two streams in one file: what the model got and wrote (`response_item`), and what a user interface was
sent (`event_msg`). The first decides order and content, the second knows how calls ended. Here items become messages
again, one a response, and what both streams have becomes one part. What refers to records that are no longer remembered
is left to the store, by id.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from msgspec import UNSET

from turnlog.agents.base import Source
from turnlog.agents.changes import Changes
from turnlog.agents.codex import NAME, assistant_messages, session, tool_results, user_messages
from turnlog.agents.codex.carried import read_carried
from turnlog.agents.codex.fold_context import CodexContext, CountedAs
from turnlog.agents.codex.records import (
    EVENTS,
    ITEMS,
    UNREADABLE,
    CodexEvent,
    CodexLine,
    Item,
    TurnItem,
    decode_event,
    decode_item,
    read_item,
    read_lines,
    thread_named_in,
)
from turnlog.agents.codex.state import CodexState, decode_state, encode_state, resolve_layout
from turnlog.agents.files import decompress
from turnlog.agents.jsonl import count_lines
from turnlog.model import Origin

_MIGRATED_ITEM = re.compile(r"item-\d+")
"""Ids that `codex migrate-rollouts` (0.169) gives to items without one."""

_SPAWN_OUTPUT = "You are the newly spawned agent."
"""How the output of the spawning call begins in a subagent's copy of its parent's log (0.11x)."""


def _read_output(context: CodexContext, item: Item) -> None:
    """Read `function_call_output`: a result, injected context, or the end of a subagent's copy."""
    text = item.output
    if item.call_id is None and item.name is not None:
        user_messages.read_context(context, item)
    elif not context.is_own and isinstance(text, str) and text.startswith(_SPAWN_OUTPUT):
        session.end_copy(context)
        user_messages.read_spawned(context, text)
    else:
        tool_results.read_output(context, item)


_ITEM_READERS: dict[str, Callable[[CodexContext, Item], None]] = {
    "reasoning": assistant_messages.read_reasoning,
    "function_call": assistant_messages.read_call,
    "custom_tool_call": assistant_messages.read_call,
    "local_shell_call": assistant_messages.read_call,
    "tool_search_call": assistant_messages.read_call,
    "web_search_call": assistant_messages.read_server_call,
    "image_generation_call": assistant_messages.read_server_call,
    "function_call_output": _read_output,
    "custom_tool_call_output": tool_results.read_output,
    "local_shell_call_output": tool_results.read_output,
    "mcp_tool_call_output": tool_results.read_output,
    "tool_search_output": tool_results.read_search_output,
    "agent_message": user_messages.read_agent_message,
}

_EVENT_READERS: dict[str, Callable[[CodexContext, CodexEvent], None]] = {
    "token_count": session.read_token_count,
    "task_started": session.read_task_started,
    "turn_started": session.read_task_started,
    "task_complete": session.read_task_complete,
    "turn_complete": session.read_task_complete,
    "turn_aborted": session.read_turn_aborted,
    "thread_rolled_back": session.read_rollback,
    "error": session.read_error,
    "stream_error": session.read_error,
    "thread_settings_applied": session.read_settings,
    "session_configured": session.read_settings,
}

_DUPLICATE_EVENTS: dict[str, Callable[[CodexContext, CodexEvent], CountedAs]] = {
    "user_message": user_messages.read_user_message,
    "agent_message": assistant_messages.on_message_event,
    "agent_reasoning": lambda context, event: assistant_messages.on_reasoning(context, event.text or "", None),
    "agent_reasoning_raw_content": lambda context, event: assistant_messages.on_reasoning(
        context, event.text or "", None
    ),
    "exec_command_end": tool_results.read_call_event,
    "mcp_tool_call_end": tool_results.read_call_event,
    "patch_apply_end": tool_results.read_call_event,
    "view_image_tool_call": tool_results.read_call_event,
    "dynamic_tool_call_response": tool_results.read_call_event,
    "collab_agent_spawn_end": tool_results.read_call_event,
}
"""Events that have the same as an item. The readers return what the event is counted as."""


def _on_message_item(context: CodexContext, item: TurnItem) -> CountedAs:
    text = "\n".join([piece.text for piece in item.content or () if piece.text is not None])
    return assistant_messages.on_text(context, text, _item_id(item), item.phase)


def _on_reasoning_item(context: CodexContext, item: TurnItem) -> CountedAs:
    return assistant_messages.on_reasoning(
        context, "\n\n".join(item.raw_content or item.summary_text or ()), _item_id(item)
    )


def _item_id(item: TurnItem) -> str | None:
    """The id that both streams have; None for one that a migration gave."""
    return None if item.id is None or _MIGRATED_ITEM.fullmatch(item.id) is not None else item.id


_REVIEW_EVENTS = {"entered_review_mode": True, "exited_review_mode": False}
"""Events at the beginning (True) and the end of a review."""

_REVIEW_ITEMS = {"EnteredReviewMode": True, "ExitedReviewMode": False}
"""Items at the same places since 0.146."""


def _read_review_item(context: CodexContext, item: TurnItem) -> None:
    """Note the beginning or the end of a review."""
    under_way = _REVIEW_ITEMS[item.type]
    # Events of the review have the reviewer's thread id and are recognised by it. In a migrated log they have this
    # thread's, so only their place shows it.
    if _item_id(item) is None:
        session.set_review(context, under_way=under_way)
    context.state.review_ended = not under_way


_REVIEWER_EVENTS = frozenset({*_DUPLICATE_EVENTS, "token_count"})
"""Events of a reviewing thread that the log of the thread that asked for the review repeats."""

_DUPLICATE_ITEMS: dict[str, Callable[[CodexContext, TurnItem], CountedAs]] = {
    "UserMessage": user_messages.read_user_item,
    "AgentMessage": _on_message_item,
    "Reasoning": _on_reasoning_item,
    "CommandExecution": tool_results.read_call_item,
    "FileChange": tool_results.read_call_item,
    "McpToolCall": tool_results.read_call_item,
    "DynamicToolCall": tool_results.read_call_item,
    "CollabAgentToolCall": tool_results.read_call_item,
    "SubAgentActivity": tool_results.read_call_item,
    "ImageView": tool_results.read_call_item,
    "ImageGeneration": tool_results.read_call_item,
    "WebSearch": tool_results.read_call_item,
    "Sleep": tool_results.read_call_item,
    "FunctionCallOutput": tool_results.read_call_item,
}


class CodexFold:
    """Reads one thread's log. See `turnlog.agents.base.Fold`."""

    def __init__(self, source: Source, state: bytes | None) -> None:
        self._source = source
        self._state = decode_state(state) if state is not None else CodexState()

    def feed(self, data: bytes, offset: int) -> Changes:
        """See `turnlog.agents.base.Fold.feed`."""
        state = self._state
        data, problem = decompress(self._source.path, data)
        context = CodexContext(self._external_id(data), state)
        if problem is not None:
            context.report(problem, "error")
        for line, json, position, length, number in read_lines(data, offset, state.lines + 1, context.changes):
            context.json = json
            context.position = position
            context.length = length
            context.line_number = number
            _read_line(context, line)
        state.lines += count_lines(data)
        return context.finish()

    def state(self) -> bytes:
        """See `turnlog.agents.base.Fold.state`."""
        return encode_state(self._state)

    def _external_id(self, data: bytes) -> str:
        """The session of the log: from its path, else from the first record that names a thread."""
        if self._source.session_id is not None:
            return self._source.session_id.removeprefix(f"{NAME}:")
        if self._state.thread is None:
            self._state.thread = thread_named_in(data)
        return self._state.thread or ""


def _read_line(context: CodexContext, line: CodexLine) -> None:
    payload = line.payload
    if payload is UNSET:
        _read_without_envelope(context, line)
        return
    context.ordinal = line.ordinal
    context.payload = payload
    if context.reads_carried:
        read_carried(context, line)
        return
    if context.state.carried_message is not None:
        context.state.carried_message = None
        context.close_message()
    context.set_time(line.timestamp)
    # Where turns have no ids with a time, only a pause between two records shows where the copy of a legacy fork ends.
    if context.state.origin is not None:
        session.check_pause(context)
    kind = line.type
    if kind == "response_item":
        try:
            item = decode_item(payload)
        except UNREADABLE:
            item = ITEMS.salvage(payload, context.report)
        _read_item(context, item)
    elif kind == "event_msg":
        try:
            event = decode_event(payload)
        except UNREADABLE:
            event = EVENTS.salvage(payload, context.report)
        _read_event(context, event)
    elif kind in _OTHER_READERS:
        _OTHER_READERS[kind](context)
    else:
        context.add_record_event(kind, payload)


_OTHER_READERS: dict[str, Callable[[CodexContext], None]] = {
    "session_meta": session.read_session_meta,
    "turn_context": session.read_context,
    "token_usage_record": session.read_token_usage_record,
    "compacted": session.read_compaction,
    "inter_agent_communication_metadata": session.read_trigger,
}


def _read_without_envelope(context: CodexContext, line: CodexLine) -> None:
    """Read a record without an envelope (up to 0.3x): an item, or only a mark between two responses."""
    context.set_time(line.timestamp)
    context.payload = context.json
    # `record_type: state` has no content, but separates two responses.
    if line.record_type is not None:
        context.close_message()
        context.add_record_event(line.record_type, context.json)
        return
    item = read_item(context.json, context.report)
    if item.type:
        _read_item(context, item)
    elif item.id is not None and not context.state.named:
        session.read_bare_meta(context, item)
    else:
        context.add_record_event("", context.json)


def _read_item(context: CodexContext, item: Item) -> None:
    kind, state = item.type, context.state
    # Items are of this thread only. One within a review (up to 0.14x) means that the review has ended, or was killed.
    if state.reviewing:
        session.set_review(context, under_way=False)
    reviewed, state.review_ended = state.review_ended, False
    # Items before any tokens: this copy was written by 0.73 or later, where texts keep the places of their items.
    if state.layout_unknown and (draft := context.current_draft()) is not None:
        resolve_layout(state, draft.pending, texts_first=False)
    # Newer items name their turn. Before that only `turn_context` and `task_started` do.
    if item.passthrough is not None and item.passthrough.turn_id is not None:
        session.read_turn_id(context, item.passthrough.turn_id)
    if kind == "message":
        if item.role == "assistant":
            # The findings are no part of the response before: no model call of this thread wrote them.
            if reviewed:
                context.close_message()
            assistant_messages.read_assistant_message(context, item, origin=Origin.NOTIFICATION if reviewed else None)
        else:
            user_messages.read_message(context, item)
        return
    reader = _ITEM_READERS.get(kind)
    if reader is not None:
        reader(context, item)
    else:
        context.add_record_event(f"response_item/{kind}", context.payload)


def _read_event(context: CodexContext, event: CodexEvent) -> None:
    kind = event.type
    # The log of the reviewing thread has these records too, and is billed for their tokens.
    if context.state.reviewed_elsewhere and kind in _REVIEWER_EVENTS:
        context.add_record_event(f"event_msg/{kind}", context.payload)
        return
    reader = _EVENT_READERS.get(kind)
    if reader is not None:
        reader(context, event)
        return
    counted_as: CountedAs = "events"
    if kind == "item_completed" and event.item is not None:
        kind = f"item_completed/{event.item.type}"
        on_item = _DUPLICATE_ITEMS.get(event.item.type)
        is_own = context.is_about_this_thread(event.thread_id)
        if is_own and on_item is not None and not context.state.reviewed_elsewhere:
            context.item_started = event.started_at_ms / 1000 if event.started_at_ms else None
            counted_as = on_item(context, event.item)
        elif is_own and event.item.type in _REVIEW_ITEMS:
            _read_review_item(context, event.item)
    else:
        on_event = _DUPLICATE_EVENTS.get(kind)
        if on_event is not None:
            counted_as = on_event(context, event)
        elif kind == "thread_name_updated" and event.thread_name:
            context.session.titles["custom"] = event.thread_name
        elif kind in _REVIEW_EVENTS:
            session.set_review(context, under_way=_REVIEW_EVENTS[kind])
            context.state.review_ended = not _REVIEW_EVENTS[kind]
    if counted_as == "duplicates":
        context.changes.counts.duplicates += 1
    elif counted_as == "messages":
        context.changes.counts.messages += 1
    elif counted_as == "results":
        context.changes.counts.results += 1
    else:
        context.add_record_event(f"event_msg/{kind}", context.payload)
