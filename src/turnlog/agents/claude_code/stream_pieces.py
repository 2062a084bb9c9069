"""Messages that a stream prints in pieces (`--include-partial-messages`): what is there of them so far, and their ends.

Only the stream has the text of a block that was never finished, and with the end of a message (`message_delta`) its
counts and why it stopped.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from turnlog.agents.claude_code.assistant import read_assistant
from turnlog.agents.claude_code.drafts import MessageDraft
from turnlog.agents.claude_code.events import add_kind
from turnlog.agents.claude_code.reading import Reading
from turnlog.agents.claude_code.records import WireMessage, WireUsage
from turnlog.agents.claude_code.stream_lines import OpenAnswer, StreamState, as_logged, note_agent
from turnlog.agents.claude_code.stream_records import StreamPiece, StreamRecord, stream_kind
from turnlog.model import ReasoningPart, TextPart


def read_piece(state: StreamState, reading: Reading, record: StreamRecord) -> None:
    """An event of the provider's stream: it opens a message, adds to it or ends it."""
    piece, call = record.event, record.parent_tool_use_id or ""
    answer = state.answers.get(call)
    if not isinstance(piece, StreamPiece):
        add_kind(reading, as_logged(state, record), reading.main, stream_kind(record), None, ())
        return
    if piece.type == "message_start" and piece.message is not None and piece.message.id:
        state.answers[call] = OpenAnswer(piece.message.id, piece.message.model, piece.message.usage)
        _tell(state, reading, record, msgspec.structs.replace(piece.message, stop_reason=None, content=[]))
    elif answer is None:
        reading.tell("a piece of a message whose start was not printed", "note")
    elif piece.type == "message_delta":
        reason = piece.delta.stop_reason if piece.delta else None
        usage = _whole(answer.usage, piece.usage)
        _tell(
            state,
            reading,
            record,
            WireMessage(id=answer.message_id, model=answer.model, content=[], stop_reason=reason, usage=usage),
        )
    else:
        _follow(reading, answer, piece)
    reading.changes.counts.messages += piece.type not in ("message_start", "message_delta")


def _tell(state: StreamState, reading: Reading, record: StreamRecord, message: WireMessage) -> None:
    logged = as_logged(state, record)
    note_agent(state, reading, record, logged)
    logged.type, logged.uuid, logged.message = "assistant", None, message
    read_assistant(reading, logged)


def _whole(start: WireUsage | None, end: WireUsage | None) -> WireUsage | None:
    """The counts at a message's end; what they leave out was told at its start."""
    if start is None or end is None:
        return end or start
    fields = {name: getattr(end, name) for name in end.__struct_fields__ if getattr(end, name) is not None}
    return msgspec.structs.replace(start, **fields)


def _follow(reading: Reading, answer: OpenAnswer, piece: StreamPiece) -> None:
    if piece.type == "content_block_start" and piece.content_block is not None:
        answer.block, answer.kind = piece.index, piece.content_block.type
        answer.text = piece.content_block.text or piece.content_block.thinking or ""
    elif piece.type == "content_block_delta" and piece.delta is not None:
        answer.text += piece.delta.text or piece.delta.thinking or ""
    elif piece.type == "content_block_stop":
        _show_text(reading, answer)
        answer.text = ""


def show_open_answers(state: StreamState, reading: Reading) -> None:
    """What is there so far of blocks that are still being printed: perhaps no more will come."""
    for answer in state.answers.values():
        _show_text(reading, answer)


_PARTS: dict[str, Callable[[str, str], TextPart | ReasoningPart]] = {
    "text": lambda part_id, text: TextPart(id=part_id, text=text, state="streaming"),
    "thinking": lambda part_id, text: ReasoningPart(id=part_id, text=text, state="streaming"),
}


def _show_text(reading: Reading, answer: OpenAnswer) -> None:
    open_message = reading.state.messages.get(answer.message_id)
    if not answer.text or answer.block is None or answer.kind not in _PARTS or open_message is None:
        return
    draft = reading.drafts.get(answer.message_id)
    if draft is None:
        draft = MessageDraft(answer.message_id, reading.main.id, open_message, reading.main.fate)
        reading.drafts[answer.message_id] = draft
        reading.order.append(draft)
    draft.add_part(answer.block, _PARTS[answer.kind](f"{answer.message_id}.{answer.block}", answer.text))
