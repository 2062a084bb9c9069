"""Compactions: what took the place of a history, its summary, and what of before the model is still given."""

from __future__ import annotations

from turnlog.agents.codex import identity
from turnlog.agents.codex.content import parts_of
from turnlog.agents.codex.drafts import MessageDraft
from turnlog.agents.codex.lines import read_compacted, read_item
from turnlog.agents.codex.messages import origin_of_text, said_text
from turnlog.agents.codex.reading import TURNS_BEGIN, Reading
from turnlog.agents.codex.records import Compacted
from turnlog.agents.decoding import raw_at
from turnlog.model import CompactionEvent, Message, Origin, TextPart


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
