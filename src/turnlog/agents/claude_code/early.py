"""Answers that stand before what they answer.

In a terminal, 2.1.120 to 2.1.300 write the first prompt of a session, and what the harness put beside it, behind the
records of an answer that came within a tenth of a second or so. Here such a prompt is put before that answer again: at
places within the line before it, where no record begins.
"""

from __future__ import annotations

from turnlog.agents.claude_code.reading import Reading, Session
from turnlog.agents.claude_code.records import Record
from turnlog.agents.claude_code.state import ROOT, Early

_ROOM = 64
"""Fewer bytes than any line has."""


def note_early(reading: Reading, record: Record, session: Session) -> None:
    """Take note of an answer that begins the log and hangs under a record which is not there yet."""
    parent, thread = record.parent_uuid, session.thread
    if thread.leaf is None and isinstance(parent, str) and record.timestamp is not None:
        thread.early = Early(reading.position, record.timestamp, parent)


def is_late(record: Record, session: Session) -> bool:
    """Whether a record belongs before the answers that the log begins with."""
    early = session.thread.early
    return (
        early is not None and record.uuid is not None and record.timestamp is not None and record.timestamp < early.at
    )


def late_position(session: Session) -> int:
    """The next place before those answers."""
    early = session.thread.early
    assert early is not None
    early.late += 1
    return max(early.position - _ROOM, 0) + min(early.late, _ROOM) - 1


def settle_late(reading: Reading, record: Record, session: Session, node: str) -> None:
    """When a record came that those answers hang under: now it is known whose turn they are of."""
    thread = session.thread
    if thread.early is None or record.uuid != thread.early.awaited:
        return
    thread.early = None
    for message_id, place in reading.state.messages.items():
        if place.turn is None:
            place.turn = thread.turn or None
            place.parent = place.parent if place.parent != ROOT else node
            reading.reopen(message_id, place, session)
