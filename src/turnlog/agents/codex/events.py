"""What happens around the messages: turns, rollbacks, token counts, compactions, failures."""

from __future__ import annotations

from msgspec import Raw, UnsetType

from turnlog.agents.codex import identity
from turnlog.agents.codex.assistant_messages import draft_for
from turnlog.agents.codex.drafts import MessageDraft
from turnlog.agents.codex.fold_context import TURN_ORIGINS, CodexContext
from turnlog.agents.codex.identity import resolve_layout
from turnlog.agents.codex.records import (
    Compacted,
    Event,
    WireUsage,
    fields_of,
    read_compacted,
    read_item,
    read_usage_record,
)
from turnlog.agents.codex.responses_api import counts_key, parts_of, usage_of, usage_of_count
from turnlog.agents.codex.session import read_turn_id
from turnlog.agents.codex.state import CodexPendingCall
from turnlog.agents.codex.tool_results import end_calls
from turnlog.agents.codex.user_messages import origin_of_text, prompt_text
from turnlog.agents.decoding import raw_at
from turnlog.model import CompactionEvent, ErrorEvent, InterruptEvent, Message, Origin, RewindEvent, TextPart, Usage

_USER_STOPPED = "interrupted"


def read_task_started(context: CodexContext, event: Event) -> None:
    """Read `task_started` or `turn_started`: a turn begins."""
    # Calls of the turn before that have no output ended with its process.
    end_calls(context, aborted=True)
    if context.state.in_turn and context.is_own:
        context.end_process()
    context.state.in_turn = True
    if context.state.is_subagent:
        context.state.begun_by_user = _is_by_user(context)
    read_turn_id(context, event.turn_id)
    context.close_message()
    context.add_record_event("event_msg/task_started", context.payload)


def _is_by_user(context: CodexContext) -> bool:
    """Whether a person began this turn of a subagent, and no turn of its parent (`turn_attribution`, since 0.16x)."""
    attribution = fields_of(context.payload).get("turn_attribution")
    return attribution is not None and bytes(fields_of(attribution).get("parent_turn_id", b"")) == b"null"


def read_task_complete(context: CodexContext, event: Event) -> None:
    """Read `task_complete` or `turn_complete`: a turn is over. Only this record has the failures of the provider."""
    end_calls(context, aborted=False)
    context.state.in_turn = False
    context.close_message()
    context.add_record_event("event_msg/task_complete", context.payload)
    error = event.error
    if error is None:
        return
    text = error if isinstance(error, str) else error.message
    kind = None if isinstance(error, str) else _error_word(error.codex_error_info)
    context.add_extra_event(
        ErrorEvent(
            id=f"{context.position_id()}/error",
            position=context.position,
            created_at=context.written_at,
            error_text=text or "",
            kind=kind or "turn",
        )
    )


def read_turn_aborted(context: CodexContext, event: Event) -> None:
    """Read `turn_aborted`: an interrupt by the user. For any other reason it is only an event."""
    state = context.state
    state.in_turn = False
    during_tool = any(_was_interrupted(context, call) for call in state.calls.values())
    end_calls(context, aborted=True)
    context.close_message()
    if event.reason not in (None, _USER_STOPPED):
        context.add_record_event("event_msg/turn_aborted", context.payload)
        return
    context.add_event(
        InterruptEvent(
            id=context.position_id(),
            position=context.position,
            created_at=context.written_at,
            during="tool" if during_tool else "answer",
            message_id=state.assistant_message,
        )
    )


def _was_interrupted(context: CodexContext, call: CodexPendingCall) -> bool:
    place = context.state.messages.get(call.message_id)
    return (not call.has_output or call.aborted) and place is not None and place.turn == (context.state.turn or None)


def read_error(context: CodexContext, event: Event) -> None:
    """Read `error` or `stream_error`."""
    context.add_event(
        ErrorEvent(
            id=context.position_id(),
            position=context.position,
            created_at=context.written_at,
            error_text=event.message or "",
            kind=_error_word(event.codex_error_info) or event.type,
        )
    )


def _error_word(info: Raw | UnsetType) -> str | None:
    """The word of `codex_error_info`, which is a string or an object with one field of that name."""
    if not isinstance(info, Raw):
        return None
    return bytes(info).decode(errors="replace").strip('{"').partition('"')[0] or None


# -- rollbacks


def read_rollback(context: CodexContext, event: Event) -> None:
    """Read `thread_rolled_back`: the user went back some turns, and the next message follows what was before them."""
    state = context.state
    count = event.num_turns or 0
    context.close_message()
    if count > 0:
        target = state.turns[-count] if count <= len(state.turns) else None
        del state.turns[-count:]
        state.leaf = target
        state.rolled_back = context.session.relink = True
    context.add_event(
        RewindEvent(
            id=context.position_id(), position=context.position, created_at=context.written_at, to_message_id=state.leaf
        )
    )


# -- tokens


def read_token_count(context: CodexContext, event: Event) -> None:
    """Read `token_count`: the tokens of a response when the total has changed, else a repetition."""
    info = event.info
    total = info.total_token_usage if info is not None else None
    if info is None or total is None:
        context.add_record_event("event_msg/token_count", context.payload)
        return
    state = context.state
    before, state.totals = state.totals, total
    usage = usage_of_count(info, before) if total != before and not state.usage_recorded else None
    if usage is None:
        # A response that broke off also has this record, with the totals of before. Another attempt follows.
        context.close_message()
        context.changes.counts.duplicates += 1
        return
    _add_usage(context, usage, total)


def read_token_usage_record(context: CodexContext) -> None:
    """Read `token_usage_record`: the exact tokens of one response, which is complete with it."""
    record = read_usage_record(context.payload, context.report)
    if record.thread_token_usage is not None:
        context.state.totals = record.thread_token_usage
    if record.usage is None:
        context.add_record_event("token_usage_record", context.payload)
        return
    _add_usage(context, usage_of(record.usage), record.usage, record.response_id)
    context.state.usage_recorded = True
    context.close_message()


def _add_usage(context: CodexContext, usage: Usage, counts: WireUsage, response_id: str | None = None) -> None:
    """Give tokens to the current response, or to a new message when there is none without tokens.

    A response of which nothing else is logged, because the user stopped it, is billed too.
    """
    draft = context.current_draft()
    if draft is None or draft.pending.has_usage:
        if context.state.is_subagent and not context.is_own:
            # Since 0.13x the copy for a subagent leaves out calls. Their responses are in the parent's log.
            context.changes.counts.duplicates += 1
            return
        context.close_message()
        draft = draft_for(context, response_id, counts_key(counts))
    draft.pending.has_usage = True
    draft.pending.usage_first = draft.pending.items == 0
    resolve_layout(context.state, draft.pending, texts_first=True)
    draft.usage = usage if context.is_own or not context.state.is_subagent else None
    draft.response_id = context.state.assistant_response = response_id
    draft.records.append((context.position, context.length, None))
    draft.add_time(context.written_at)
    context.changes.counts.messages += 1


# -- compactions


def read_compaction(context: CodexContext) -> None:
    """Read `compacted`: another history replaces this one.

    The assistant message just before is the summary. In older logs only this record has it.
    """
    record = read_compacted(context.payload, context.report)
    state = context.state
    summary_id = _summary_of(context, record)
    kept = _kept(context, record)
    if summary_id is not None:
        kept.append(summary_id)
    context.close_message()
    context.session.relink = True
    context.add_event(
        CompactionEvent(
            id=context.position_id(),
            position=context.position,
            created_at=context.written_at,
            summary_message_id=summary_id,
            kept_message_ids=tuple(dict.fromkeys(kept)),
            replacement=_replacement(context, record),
        )
    )
    # Texts from here on may repeat texts of before in the same turn, so their ids need another turn key.
    state.turn_key, state.text_counts = identity.next_turn_key(state.turn_key, record.message or ""), {}


def _summary_of(context: CodexContext, record: Compacted) -> str | None:
    state = context.state
    text = record.message or ""
    if state.assistant_message is not None and _is_summary(context, record, text):
        draft = context.draft_of(state.assistant_message)
        if draft is not None:
            draft.origin = Origin.COMPACTION
        return state.assistant_message
    if not text:
        return None
    counted = _usage_only_message(context)
    if counted is not None:
        counted.origin = Origin.COMPACTION
        counted.parts[0] = TextPart(id=f"{counted.id}.0", text=text)
        counted.pending.parts = 1
        counted.records.append((context.position, context.length, None))
        return counted.id
    message_id = identity.derived_id(context.thread, state.turn_key, "compaction", text, state.text_counts)
    context.add_message(
        Message(
            id=message_id,
            role="developer",
            parts=(TextPart(id=f"{message_id}.0", text=text),),
            origin=Origin.COMPACTION,
            created_at=context.written_at,
        )
    )
    return message_id


def _usage_only_message(context: CodexContext) -> MessageDraft | None:
    """The newest message, when only its tokens are logged: up to 0.14x the response with the summary."""
    message_id = context.state.assistant_message
    place = context.state.messages.get(message_id) if message_id is not None else None
    if message_id is None or place is None or place.parts or message_id != context.state.leaf:
        return None
    return context.draft_of(message_id)


def _is_summary(context: CodexContext, record: Compacted, text: str) -> bool:
    """Whether the newest assistant message is the summary: by its response's id, else because `text` ends with it."""
    state = context.state
    if record.compaction_response_id is not None and state.assistant_response is not None:
        return record.compaction_response_id == state.assistant_response
    key = state.assistant_text_key
    length = identity.length_of_key(key) if key is not None else 0
    return length > 0 and identity.text_key(text[-length:]) == key


def _kept(context: CodexContext, record: Compacted) -> list[str]:
    """Ids of the messages that the model still gets. Prompts with another id or with none are found by their text."""
    known = context.state.prompts
    prompts: dict[str, list[str]] = {}
    for message_id, key in known.items():
        prompts.setdefault(key, []).append(message_id)
    found: list[str] = []
    for raw in reversed(record.replacement_history or ()):
        item = read_item(raw, context.report)
        name = identity.id_in_thread(context.thread, item.id) if item.id is not None else None
        if item.role == "user" and name not in known:
            same = prompts.get(identity.text_key(prompt_text(item.content)))
            name = same.pop() if same else name
        if name is not None:
            found.append(name)
        if item.id is not None and name not in known:
            found.extend(identity.id_in_thread(base, item.id) for base in context.state.base_threads)
    return found[::-1]


def _replacement(context: CodexContext, record: Compacted) -> tuple[Message, ...]:
    """The messages that the model gets instead of the history."""
    found: list[Message] = []
    for number, raw in enumerate(record.replacement_history or ()):
        item = read_item(raw, context.report)
        if item.type != "message":
            continue
        message_id = f"{context.position_id()}.{number}"
        origin = None
        if item.role != "assistant":
            text = item.content if isinstance(item.content, str) else "".join(p.text or "" for p in item.content or ())
            origin = Origin.HARNESS if item.role != "user" else origin_of_text(text) or Origin.PROMPT
        found.append(
            Message(
                id=message_id,
                role="assistant" if origin is None else "user" if origin in TURN_ORIGINS else "developer",
                origin=origin,
                parts=parts_of(item.content, message_id, lambda index, raw=raw: raw_at(raw, "content", index)),
            )
        )
    return tuple(found)
