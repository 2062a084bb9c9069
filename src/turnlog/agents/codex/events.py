"""What happened around the messages: turns that begin and end, tokens, rollbacks, failures."""

from __future__ import annotations

from msgspec import Raw, UnsetType

from turnlog.agents.codex import identity
from turnlog.agents.codex.assistant_messages import draft_for
from turnlog.agents.codex.drafts import MessageDraft
from turnlog.agents.codex.fold_context import TURNS_BEGIN, Reading
from turnlog.agents.codex.identity import settle_layout
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
from turnlog.agents.codex.session import note_turn
from turnlog.agents.codex.state import OpenCall
from turnlog.agents.codex.tool_results import end_calls
from turnlog.agents.codex.user_messages import origin_of_text, said_text
from turnlog.agents.decoding import raw_at
from turnlog.model import CompactionEvent, ErrorEvent, InterruptEvent, Message, Origin, RewindEvent, TextPart, Usage

_USER_STOPPED = "interrupted"


def read_task_started(reading: Reading, event: Event) -> None:
    """A turn begins: what the turn before left open was killed with its process."""
    end_calls(reading, aborted=True)
    if reading.state.in_turn and reading.is_own:
        reading.end_process()
    reading.state.in_turn = True
    if reading.state.is_subagent:
        reading.state.by_person = _is_by_person(reading)
    note_turn(reading, event.turn_id)
    reading.close_message()
    reading.add_record_event("event_msg/task_started", reading.payload)


def _is_by_person(reading: Reading) -> bool:
    """Whether no turn of another thread began this one of a subagent: since 0.16x its first record tells."""
    attribution = fields_of(reading.payload).get("turn_attribution")
    return attribution is not None and bytes(fields_of(attribution).get("parent_turn_id", b"")) == b"null"


def read_task_complete(reading: Reading, event: Event) -> None:
    """A turn is over; failures of the provider are logged here only."""
    end_calls(reading, aborted=False)
    reading.state.in_turn = False
    reading.close_message()
    reading.add_record_event("event_msg/task_complete", reading.payload)
    error = event.error
    if error is None:
        return
    text = error if isinstance(error, str) else error.message
    kind = None if isinstance(error, str) else _word(error.codex_error_info)
    reading.event_beside(
        ErrorEvent(
            id=f"{reading.own_id()}/error",
            position=reading.position,
            created_at=reading.at,
            error_text=text or "",
            kind=kind or "turn",
        )
    )


def read_turn_aborted(reading: Reading, event: Event) -> None:
    """The user stopped the agent, or something else took the turn's place."""
    state = reading.state
    state.in_turn = False
    during_tool = any(_is_cut_off(reading, call) for call in state.calls.values())
    end_calls(reading, aborted=True)
    reading.close_message()
    if event.reason not in (None, _USER_STOPPED):
        reading.add_record_event("event_msg/turn_aborted", reading.payload)
        return
    reading.add_event(
        InterruptEvent(
            id=reading.own_id(),
            position=reading.position,
            created_at=reading.at,
            during="tool" if during_tool else "answer",
            message_id=state.answer,
        )
    )


def _is_cut_off(reading: Reading, call: OpenCall) -> bool:
    place = reading.state.messages.get(call.message_id)
    return (not call.answered or call.aborted) and place is not None and place.turn == (reading.state.turn or None)


def read_error(reading: Reading, event: Event) -> None:
    """`error` and `stream_error`."""
    reading.add_event(
        ErrorEvent(
            id=reading.own_id(),
            position=reading.position,
            created_at=reading.at,
            error_text=event.message or "",
            kind=_word(event.codex_error_info) or event.type,
        )
    )


def _word(info: Raw | UnsetType) -> str | None:
    """`codex_error_info`: a word, or an object whose only name is the word."""
    if not isinstance(info, Raw):
        return None
    return bytes(info).decode(errors="replace").strip('{"').partition('"')[0] or None


# -- rollbacks


def read_rollback(reading: Reading, event: Event) -> None:
    """The user went back some turns: what follows hangs under what stood before them."""
    state = reading.state
    count = event.num_turns or 0
    reading.close_message()
    if count > 0:
        target = state.turns[-count] if count <= len(state.turns) else None
        del state.turns[-count:]
        state.leaf = target
        state.rolled_back = reading.session.relink = True
    reading.add_event(
        RewindEvent(id=reading.own_id(), position=reading.position, created_at=reading.at, to_message_id=state.leaf)
    )


# -- tokens


def read_token_count(reading: Reading, event: Event) -> None:
    """`token_count`: the tokens of a response when the total has changed, else the same once more."""
    info = event.info
    total = info.total_token_usage if info is not None else None
    if info is None or total is None:
        reading.add_record_event("event_msg/token_count", reading.payload)
        return
    state = reading.state
    before, state.totals = state.totals, total
    usage = usage_of_count(info, before) if total != before and not state.recorded else None
    if usage is None:
        # Also told, with the totals of before, where a response broke off: another attempt follows.
        reading.close_message()
        reading.changes.counts.duplicates += 1
        return
    _count(reading, usage, total)


def read_token_usage_record(reading: Reading) -> None:
    """`token_usage_record`: the tokens of one response, exactly; with it the response is complete."""
    record = read_usage_record(reading.payload, reading.tell)
    if record.thread_token_usage is not None:
        reading.state.totals = record.thread_token_usage
    if record.usage is None:
        reading.add_record_event("token_usage_record", reading.payload)
        return
    _count(reading, usage_of(record.usage), record.usage, record.response_id)
    reading.state.recorded = True
    reading.close_message()


def _count(reading: Reading, usage: Usage, told: WireUsage, response_id: str | None = None) -> None:
    """Give tokens to the response that is being written; to one of its own when there is none that lacks them.

    A response of which nothing else is logged (the user stopped it) was paid for all the same.
    """
    draft = reading.open_draft()
    if draft is None or draft.open.counted:
        if reading.state.is_subagent and not reading.is_own:
            # Since 0.13x a copy leaves out the calls: their responses are the parent's.
            reading.changes.counts.duplicates += 1
            return
        reading.close_message()
        draft = draft_for(reading, response_id, counts_key(told))
    draft.open.counted = True
    draft.open.counted_first = draft.open.items == 0
    settle_layout(reading.state, draft.open, told_first=True)
    draft.usage = usage if reading.is_own or not reading.state.is_subagent else None
    draft.response_id = reading.state.answer_response = response_id
    draft.records.append((reading.position, reading.length, None))
    draft.at(reading.at)
    reading.changes.counts.messages += 1


def read_compaction(reading: Reading) -> None:
    """`compacted`: another history took the place of this one.

    The model wrote the summary as an answer, just before; in older logs this record alone has it.
    """
    record = read_compacted(reading.payload, reading.tell)
    state = reading.state
    summary_id = _summary_of(reading, record)
    kept = _kept(reading, record)
    if summary_id is not None:
        kept.append(summary_id)
    reading.close_message()
    reading.session.relink = True
    reading.add_event(
        CompactionEvent(
            id=reading.own_id(),
            position=reading.position,
            created_at=reading.at,
            summary_message_id=summary_id,
            kept_message_ids=tuple(dict.fromkeys(kept)),
            replacement=_replacement(reading, record),
        )
    )
    # What is said from here on may be said in the words of before, in the same turn.
    state.turn_key, state.said = identity.next_turn_key(state.turn_key, record.message or ""), {}


def _summary_of(reading: Reading, record: Compacted) -> str | None:
    state = reading.state
    text = record.message or ""
    if state.answer is not None and _is_summary(reading, record, text):
        draft = reading.draft_of(state.answer)
        if draft is not None:
            draft.origin = Origin.COMPACTION
        return state.answer
    if not text:
        return None
    counted = _counted_alone(reading)
    if counted is not None:
        counted.origin = Origin.COMPACTION
        counted.parts[0] = TextPart(id=f"{counted.id}.0", text=text)
        counted.open.parts = 1
        counted.records.append((reading.position, reading.length, None))
        return counted.id
    message_id = identity.made_up(reading.thread, state.turn_key, "compaction", text, state.said)
    reading.add_message(
        Message(
            id=message_id,
            role="developer",
            parts=(TextPart(id=f"{message_id}.0", text=text),),
            origin=Origin.COMPACTION,
            created_at=reading.at,
        )
    )
    return message_id


def _counted_alone(reading: Reading) -> MessageDraft | None:
    """The newest message, where it is a response of which only the tokens were told: up to 0.14x that of a summary."""
    answer = reading.state.answer
    place = reading.state.messages.get(answer) if answer is not None else None
    if answer is None or place is None or place.parts or answer != reading.state.leaf:
        return None
    return reading.draft_of(answer)


def _is_summary(reading: Reading, record: Compacted, text: str) -> bool:
    """Whether the newest answer is the summary: by the id of its response, else by its text at the end of `text`."""
    state = reading.state
    if record.compaction_response_id is not None and state.answer_response is not None:
        return record.compaction_response_id == state.answer_response
    key = state.answer_key
    length = identity.length_in(key) if key is not None else 0
    return length > 0 and identity.text_key(text[-length:]) == key


def _kept(reading: Reading, record: Compacted) -> list[str]:
    """The messages that the model is still given: by their ids; prompts without, or with others, by their text."""
    known = reading.state.prompts
    prompts: dict[str, list[str]] = {}
    for message_id, key in known.items():
        prompts.setdefault(key, []).append(message_id)
    found: list[str] = []
    for raw in reversed(record.replacement_history or ()):
        item = read_item(raw, reading.tell)
        name = identity.named(reading.thread, item.id) if item.id is not None else None
        if item.role == "user" and name not in known:
            same = prompts.get(identity.text_key(said_text(item.content)))
            name = same.pop() if same else name
        if name is not None:
            found.append(name)
        if item.id is not None and name not in known:
            found.extend(identity.named(base, item.id) for base in reading.state.bases)
    return found[::-1]


def _replacement(reading: Reading, record: Compacted) -> tuple[Message, ...]:
    """The history that the model was given instead."""
    found: list[Message] = []
    for number, raw in enumerate(record.replacement_history or ()):
        item = read_item(raw, reading.tell)
        if item.type != "message":
            continue
        message_id = f"{reading.own_id()}.{number}"
        origin = None
        if item.role != "assistant":
            text = item.content if isinstance(item.content, str) else "".join(p.text or "" for p in item.content or ())
            origin = Origin.HARNESS if item.role != "user" else origin_of_text(text) or Origin.PROMPT
        found.append(
            Message(
                id=message_id,
                role="assistant" if origin is None else "user" if origin in TURNS_BEGIN else "developer",
                origin=origin,
                parts=parts_of(item.content, message_id, lambda index, raw=raw: raw_at(raw, "content", index)),
            )
        )
    return tuple(found)
