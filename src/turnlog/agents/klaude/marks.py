"""Records that say what became of others: compactions, rewinds, retractions, forks. Nothing is deleted for them.

They name lines by number, or by place among the lines that stand, as klaude-code's own reader counts them.
"""

from __future__ import annotations

from typing import Any
from zlib import crc32

from turnlog.agents.klaude.contents import time_of
from turnlog.agents.klaude.reading import Reading
from turnlog.agents.klaude.records import Data
from turnlog.agents.klaude.sources import NAME, session_id
from turnlog.agents.klaude.state import Line
from turnlog.model import CompactionEvent, Message, Origin, RewindEvent, TextPart


def read_compaction(reading: Reading, kind: str, data: Data) -> None:
    """The lines before the first one kept are compacted; the summary is a message that stands after them."""
    kept = _kept(reading.state.active, data)
    identity = reading.own_id()
    summary_id = f"{identity}.summary"
    reading.add_event(
        CompactionEvent(
            id=identity,
            created_at=time_of(data.created_at),
            summary_message_id=summary_id,
            kept_message_ids=tuple(line.message for line in kept if line.message is not None),
            tokens_before=data.tokens_before,
        )
    )
    _add_summary(reading, summary_id, data, {})
    reading.state.branched = True


def read_fork_summary(reading: Reading, kind: str, data: Data) -> None:
    """What a rewind left behind, carried into the session that the rewind made."""
    facts = {"source_session_id": data.source_session_id}
    _add_summary(reading, reading.message_id(kind, data), data, {NAME: facts} if data.source_session_id else {})
    reading.changes.counts.messages += 1
    if data.source_session_id and session_id(data.source_session_id) != reading.session_id:
        reading.link("fork", parent=data.source_session_id)


def read_rewind(reading: Reading, kind: str, data: Data) -> None:
    """Everything after a checkpoint leaves the branch. No longer written; without the checkpoint nothing happens."""
    state = reading.state
    line = state.checkpoints.get(str(data.checkpoint_id))
    standing = [entry for entry in state.active if line is not None and entry.number <= line]
    facts = {"checkpoint_id": data.checkpoint_id, "note": data.note, "rationale": data.rationale}
    if line is not None and any(entry.number == line for entry in standing):
        state.active = standing
        state.leaf = next((entry.message for entry in reversed(standing) if entry.message is not None), None)
        state.branched = True
    else:
        reading.tell("the rewind's checkpoint is not there", "note")
    reading.add_event(
        RewindEvent(
            id=reading.own_id(), created_at=time_of(data.created_at), to_message_id=state.leaf, metadata={NAME: facts}
        )
    )
    reading.stand()


def read_retraction(reading: Reading, kind: str, data: Data) -> None:
    """The user took the last message back before anything came of it. An entry that fits no message changes nothing."""
    found = _retracted(reading.state.active, data)
    if found is None:
        reading.tell("no message fits the retraction", "note")
    else:
        reading.state.active.remove(found)
        reading.retract(found)
    reading.add_record(kind, data, known=True)
    reading.stand()


def _retracted(active: list[Line], data: Data) -> Line | None:
    by_line = [line for line in active if line.number == data.retracted_line and line.said is not None]
    if by_line:
        return by_line[0]
    last = next((line for line in reversed(active) if line.said is not None), None)
    wanted = crc32((data.retracted_text or "").encode(errors="replace"))
    return last if last is not None and last.said == wanted else None


def _kept(active: list[Line], data: Data) -> list[Line]:
    if data.first_kept_line is not None:
        return [line for line in active if line.number >= (data.first_kept_line or 0)]
    return active[max(data.first_kept_index or 0, 0) :]


def _add_summary(reading: Reading, identity: str, data: Data, metadata: dict[str, Any]) -> None:
    message = Message(
        id=identity,
        role="developer",
        parts=(TextPart(id=f"{identity}.0", text=data.summary or ""),),
        origin=Origin.COMPACTION,
        created_at=time_of(data.created_at),
        metadata=metadata,
    )
    reading.add_message(message)
