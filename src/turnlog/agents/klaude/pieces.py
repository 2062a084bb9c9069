"""Answers up to 1.9: thoughts, signatures, texts, calls and the usage of one answer, a record each.

Records of one answer have the same `response_id`; where they have none, those that stand together are one answer.
"""

from __future__ import annotations

from turnlog.agents.klaude.contents import call_part, thought
from turnlog.agents.klaude.messages import answer_facts, begun
from turnlog.agents.klaude.reading import Reading
from turnlog.agents.klaude.records import Data
from turnlog.agents.klaude.records import Part as WirePart
from turnlog.agents.klaude.state import Open
from turnlog.model import Message, Part, TextPart


def read_piece(reading: Reading, kind: str, data: Data) -> None:
    """One piece of an answer: begins it, or goes on with it."""
    state = reading.state
    known = state.open
    is_new = known is None or known.response != data.response_id
    current = known
    if known is None or is_new:
        identity = f"response:{data.response_id}" if data.response_id else reading.message_id(kind, data)
        current = state.open = Open(identity, data.response_id)
    assert current is not None
    part = _part_of(kind, data, current)
    message = Message(
        id=current.message,
        role="assistant",
        parts=begun(() if part is None else (part,), data),
        response_id=data.response_id,
        **answer_facts(data, data.usage),
    )
    if is_new:
        reading.add_message(message, step=reading.next_step())
    else:
        reading.add_piece(message, step=state.step)
    reading.changes.counts.messages += 1
    if kind == "ResponseMetadataItem":
        state.open = None


def _part_of(kind: str, data: Data, current: Open) -> Part | None:
    if kind == "ResponseMetadataItem":
        return None
    is_proof, is_thought = kind == "ReasoningEncryptedItem", kind == "ReasoningTextItem"
    belongs = (is_proof and current.has_thought) or (is_thought and current.has_proof)
    if not belongs:
        current.parts += 1
    part_id = f"{current.message}.{current.parts - 1}"
    # Anthropic's signatures, which have no format, are logged before the thought (1.9.0), others behind it.
    current.has_proof = is_proof and not belongs and data.format is None
    current.has_thought = is_thought and not belongs
    if kind == "ToolCallItem":
        return call_part(part_id, data.call_id or "", data.name or "", data.arguments or "", data.id)
    if kind == "AssistantMessageItem":
        return TextPart(id=part_id, text=data.content or "")
    proof = WirePart(model_id=data.model, format=data.format, signature=data.encrypted_content)
    text = data.content or "" if kind == "ReasoningTextItem" else ""
    return thought(part_id, text, proof, data.provider)
