"""The fold of one Codex rollout: records in file order -> changes of the model.

A rollout has two streams in one file: what the model saw and said (`response_item`), and what a user interface was
told (`event_msg`). The first is the truth of order and content, the second knows how calls ended. Here items become
messages again, one a response, and what both streams tell is told once. What reaches beyond what is remembered is left
to the store, by id.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from msgspec import UNSET

from turnlog.agents.base import Source
from turnlog.agents.changes import Changes
from turnlog.agents.codex import assistant_messages, events, session, tool_results, user_messages
from turnlog.agents.codex.fold_context import Reading, Told
from turnlog.agents.codex.identity import settle_layout
from turnlog.agents.codex.records import (
    EVENTS,
    ITEMS,
    UNREADABLE,
    Event,
    Item,
    Line,
    TurnItem,
    decode_event,
    decode_item,
    read_item,
    read_lines,
    thread_named_in,
)
from turnlog.agents.codex.sources import NAME
from turnlog.agents.codex.state import State, decode_state, encode_state
from turnlog.agents.jsonl import count_lines
from turnlog.agents.packing import unpack
from turnlog.model import Origin

_NUMBERED = re.compile(r"item-\d+")
"""Ids of what had none, in a log that was migrated."""

_SPAWNED = "You are the newly spawned agent."
"""How the output of the spawning call begins in the copy that a subagent is given (0.11x)."""


def _read_output(reading: Reading, item: Item) -> None:
    text = item.output
    if item.call_id is None and item.name is not None:
        user_messages.read_context(reading, item)
    elif not reading.is_own and isinstance(text, str) and text.startswith(_SPAWNED):
        session.end_copy(reading)
        user_messages.read_spawned(reading, text)
    else:
        tool_results.read_output(reading, item)


_ITEMS: dict[str, Callable[[Reading, Item], None]] = {
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

_EVENTS: dict[str, Callable[[Reading, Event], None]] = {
    "token_count": events.read_token_count,
    "task_started": events.read_task_started,
    "turn_started": events.read_task_started,
    "task_complete": events.read_task_complete,
    "turn_complete": events.read_task_complete,
    "turn_aborted": events.read_turn_aborted,
    "thread_rolled_back": events.read_rollback,
    "error": events.read_error,
    "stream_error": events.read_error,
}

_TWINS: dict[str, Callable[[Reading, Event], Told]] = {
    "user_message": user_messages.read_user_message,
    "agent_message": assistant_messages.hear_message,
    "agent_reasoning": lambda reading, event: assistant_messages.hear_reasoning(reading, event.text or "", None),
    "agent_reasoning_raw_content": lambda reading, event: assistant_messages.hear_reasoning(
        reading, event.text or "", None
    ),
    "exec_command_end": tool_results.read_call_event,
    "mcp_tool_call_end": tool_results.read_call_event,
    "patch_apply_end": tool_results.read_call_event,
    "view_image_tool_call": tool_results.read_call_event,
    "dynamic_tool_call_response": tool_results.read_call_event,
    "collab_agent_spawn_end": tool_results.read_call_event,
}
"""Events that tell what an item tells too, and what each of them is counted as then."""


def _hear_answer(reading: Reading, item: TurnItem) -> Told:
    text = "\n".join([piece.text for piece in item.content or () if piece.text is not None])
    return assistant_messages.hear_text(reading, text, _item_id(item), item.phase)


def _hear_reasoning(reading: Reading, item: TurnItem) -> Told:
    return assistant_messages.hear_reasoning(
        reading, "\n\n".join(item.raw_content or item.summary_text or ()), _item_id(item)
    )


def _item_id(item: TurnItem) -> str | None:
    """The id that the other stream has too: not one that `codex migrate-rollouts` (0.169) numbered."""
    return None if item.id is None or _NUMBERED.fullmatch(item.id) is not None else item.id


_REVIEWS = {"entered_review_mode": True, "exited_review_mode": False}
"""Events between which a review is made."""

_REVIEW_ITEMS = {"EnteredReviewMode": True, "ExitedReviewMode": False}
"""The same since 0.146."""


def _note_review_item(reading: Reading, item: TurnItem) -> None:
    """What is heard between the two has the reviewer's thread; in a log that was migrated this one's."""
    under_way = _REVIEW_ITEMS[item.type]
    if _item_id(item) is None:
        session.note_review(reading, under_way=under_way)
    reading.state.reviewed = not under_way


_OF_REVIEWER = frozenset({*_TWINS, "token_count"})
"""What a log hears of a thread that reviews."""

_ITEM_TWINS: dict[str, Callable[[Reading, TurnItem], Told]] = {
    "UserMessage": user_messages.read_user_item,
    "AgentMessage": _hear_answer,
    "Reasoning": _hear_reasoning,
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
        self._state = decode_state(state) if state is not None else State()

    def feed(self, data: bytes, offset: int) -> Changes:
        """See `turnlog.agents.base.Fold.feed`."""
        state = self._state
        data, problem = unpack(self._source.path, data)
        reading = Reading(self._external_id(data), state)
        if problem is not None:
            reading.tell(problem, "error")
        for line, json, position, length, number in read_lines(data, offset, state.lines + 1, reading.changes):
            reading.json = json
            reading.position = position
            reading.length = length
            reading.line_number = number
            _read_line(reading, line)
        state.lines += count_lines(data)
        return reading.finish()

    def state(self) -> bytes:
        """See `turnlog.agents.base.Fold.state`."""
        return encode_state(self._state)

    def _external_id(self, data: bytes) -> str:
        """Whose log this is: told by its path, else by its first record."""
        if self._source.session_id is not None:
            return self._source.session_id.removeprefix(f"{NAME}:")
        if self._state.thread is None:
            self._state.thread = thread_named_in(data)
        return self._state.thread or ""


def _read_line(reading: Reading, line: Line) -> None:
    payload = line.payload
    if payload is UNSET:
        _read_bare(reading, line)
        return
    reading.note_time(line.timestamp)
    reading.number = line.ordinal
    reading.payload = payload
    if reading.state.origin is not None:
        session.note_pause(reading)
    kind = line.type
    if kind == "response_item":
        try:
            item = decode_item(payload)
        except UNREADABLE:
            item = ITEMS.salvage(payload, reading.tell)
        _read_item(reading, item)
    elif kind == "event_msg":
        try:
            event = decode_event(payload)
        except UNREADABLE:
            event = EVENTS.salvage(payload, reading.tell)
        _read_event(reading, event)
    elif kind in _OTHERS:
        _OTHERS[kind](reading)
    else:
        reading.add_record_event(kind, payload)


_OTHERS: dict[str, Callable[[Reading], None]] = {
    "session_meta": session.read_session_meta,
    "turn_context": session.read_context,
    "token_usage_record": events.read_token_usage_record,
    "compacted": events.read_compaction,
    "inter_agent_communication_metadata": session.read_trigger,
}


def _read_bare(reading: Reading, line: Line) -> None:
    """A record without an envelope: the item itself, or nothing but a mark between two responses."""
    reading.note_time(line.timestamp)
    reading.payload = reading.json
    if line.record_type is not None:
        reading.close_message()
        reading.add_record_event(line.record_type, reading.json)
        return
    item = read_item(reading.json, reading.tell)
    if item.type:
        _read_item(reading, item)
    elif item.id is not None and not reading.state.named:
        session.read_bare_meta(reading, item)
    else:
        reading.add_record_event("", reading.json)


def _read_item(reading: Reading, item: Item) -> None:
    kind, state = item.type, reading.state
    if state.reviewing:
        session.note_review(reading, under_way=False)
    reviewed, state.reviewed = state.reviewed, False
    if state.layout_open and (draft := reading.open_draft()) is not None:
        settle_layout(state, draft.open, told_first=False)
    if item.passthrough is not None and item.passthrough.turn_id is not None:
        session.note_turn(reading, item.passthrough.turn_id)
    if kind == "message":
        if item.role == "assistant":
            if reviewed:
                reading.close_message()
            assistant_messages.read_answer(reading, item, origin=Origin.NOTIFICATION if reviewed else None)
        else:
            user_messages.read_message(reading, item)
        return
    reader = _ITEMS.get(kind)
    if reader is not None:
        reader(reading, item)
    else:
        reading.add_record_event(f"response_item/{kind}", reading.payload)


def _read_event(reading: Reading, event: Event) -> None:
    kind = event.type
    if reading.state.reviewed_apart and kind in _OF_REVIEWER:
        reading.add_record_event(f"event_msg/{kind}", reading.payload)
        return
    reader = _EVENTS.get(kind)
    if reader is not None:
        reader(reading, event)
        return
    told: Told = "events"
    if kind == "item_completed" and event.item is not None:
        kind = f"item_completed/{event.item.type}"
        hear_item = _ITEM_TWINS.get(event.item.type)
        is_own = reading.is_of_thread(event.thread_id)
        if is_own and hear_item is not None and not reading.state.reviewed_apart:
            reading.item_began = event.started_at_ms / 1000 if event.started_at_ms else None
            told = hear_item(reading, event.item)
        elif is_own and event.item.type in _REVIEW_ITEMS:
            _note_review_item(reading, event.item)
    else:
        hear = _TWINS.get(kind)
        if hear is not None:
            told = hear(reading, event)
        elif kind == "thread_name_updated" and event.thread_name:
            reading.session.titles["custom"] = event.thread_name
        elif kind in _REVIEWS:
            session.note_review(reading, under_way=_REVIEWS[kind])
            reading.state.reviewed = not _REVIEWS[kind]
    if told == "duplicates":
        reading.changes.counts.duplicates += 1
    elif told == "messages":
        reading.changes.counts.messages += 1
    elif told == "results":
        reading.changes.counts.results += 1
    else:
        reading.add_record_event(f"event_msg/{kind}", reading.payload)
