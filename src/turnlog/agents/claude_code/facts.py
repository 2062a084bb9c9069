"""Records outside the chain: titles, the active leaf, costs, modes, undo points, logs of requests."""

from __future__ import annotations

from datetime import UTC

from turnlog.agents.changes import LeafTitle
from turnlog.agents.claude_code.events import add_record
from turnlog.agents.claude_code.lines import fields_of
from turnlog.agents.claude_code.reading import Reading, Session
from turnlog.agents.claude_code.records import Record
from turnlog.agents.claude_code.sources import NAME
from turnlog.agents.reading import aware, value_of

_START = "00000000-0000-0000-0000-000000000000"


def read_fact(reading: Reading, record: Record) -> None:
    """A fact about the session, or a record of a kind that is not known."""
    if record.uuid is not None:
        if reading.is_known(record):
            return
        session = reading.session_of(record)
    else:
        session = reading.main
        session.change.position = reading.position
        if record.timestamp is not None and record.timestamp.tzinfo is not UTC:
            record.timestamp = aware(record.timestamp)
    reader = _READERS.get(record.type)
    if reader is not None:
        reader(reading, record, session)
    add_record(reading, record, session)


def _read_leaf(reading: Reading, record: Record, session: Session) -> None:
    """The agent names the end of the active branch.

    The pointer is written late: it may lag behind the records or run ahead of them, so it counts only when it
    names an older message. All zeros mean the very start, but right after a branch they mean that branch.
    """
    thread, leaf = session.thread, record.leaf_uuid
    branched, thread.branched = thread.branched, False
    if leaf == _START:
        if record.explicit and not branched:
            session.pointer, session.change.relink = "", True
        return
    node = reading.state.nodes.get(leaf) if leaf is not None else None
    if node is not None and node not in (thread.leaf, thread.anchor):
        session.pointer, session.change.relink = leaf, True


def _read_summary(reading: Reading, record: Record, session: Session) -> None:
    """A title for the session that holds the leaf, which is seldom this file: then the store looks for it."""
    leaf = record.leaf_uuid
    if record.summary is None or leaf is None:
        return
    if leaf not in reading.state.nodes:
        reading.changes.leaf_titles.append(LeafTitle(record_id=leaf, title=record.summary))
        return
    holder = reading.state.sidechains.get(leaf)
    titled = session if holder is None else reading.child(holder.partition(".")[2])
    titled.change.titles["summary"] = record.summary


def _read_custom_title(reading: Reading, record: Record, session: Session) -> None:
    if record.custom_title:
        session.change.titles["custom"] = record.custom_title


def _read_generated_title(reading: Reading, record: Record, session: Session) -> None:
    if record.ai_title:
        session.change.titles["generated"] = record.ai_title


def _read_cost(reading: Reading, record: Record, session: Session) -> None:
    """A running total, helper calls included that no record shows; a fork's goes on from its parent's."""
    if record.total_cost_usd is not None:
        session.change.reported_cost = record.total_cost_usd


def _read_name(reading: Reading, record: Record, session: Session) -> None:
    name = fields_of(reading.json).get("agentName")
    if name is not None:
        session.change.metadata = {NAME: {"agent_name": value_of(name)}}


_READERS = {
    "agent-name": _read_name,
    "ai-title": _read_generated_title,
    "cost-state": _read_cost,
    "custom-title": _read_custom_title,
    "last-prompt": _read_leaf,
    "summary": _read_summary,
}
