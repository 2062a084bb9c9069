"""Rows that belong to sessions and sources as a whole: links between sessions, spilled outputs, diagnostics."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from turnlog.agents.changes import Diagnostic, Link, Spill
from turnlog.store.reconcile.lineage import drop_inferred
from turnlog.store.reconcile.merge import merge_links
from turnlog.store.writing.transaction import SourceRow, Transaction


def save_link(transaction: Transaction, link: Link) -> None:
    """Merge what one side says about two sessions into what is known of them."""
    # What the store inferred of a session holds only as long as no source says how it began.
    drop_inferred(transaction.connection, link.child_session_id)
    row = transaction.connection.execute(
        "SELECT tool_call_id, message_id, inferred, metadata FROM links"
        " WHERE child_id = ? AND parent_id = ? AND kind = ?",
        (link.child_session_id, link.parent_session_id, link.kind),
    ).fetchone()
    if row is not None:
        call, message, inferred, metadata = row
        known = msgspec.structs.replace(
            link,
            tool_call_id=call,
            message_id=message,
            inferred=bool(inferred),
            metadata=msgspec.json.decode(metadata) if metadata else {},
        )
        link = merge_links(known, link)
    transaction.connection.execute(
        "INSERT OR REPLACE INTO links"
        " (agent, parent_id, child_id, kind, tool_call_id, message_id, inferred, metadata)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (
            transaction.source.agent,
            link.parent_session_id,
            link.child_session_id,
            link.kind,
            link.tool_call_id,
            link.message_id,
            link.inferred,
            msgspec.json.encode(link.metadata, order="sorted").decode() if link.metadata else None,
        ),
    )


def save_spill(transaction: Transaction, spill: Spill) -> None:
    """Note the file that holds a whole output."""
    session_key = transaction.sessions.key(spill.session_id)
    if session_key is None:
        return
    transaction.connection.execute(
        "INSERT OR REPLACE INTO spills (session_id, name, source_key, media_type, size) VALUES (?, ?, ?, ?, ?)",
        (spill.session_id, spill.name, transaction.source.key, spill.media_type, spill.size),
    )
    # The messages that preview it have changed: their whole output is known now.
    transaction.connection.execute(
        "UPDATE messages SET changed_seq = ? WHERE key IN (SELECT p.message_key FROM parts p"
        " JOIN memberships m ON m.message_key = p.message_key AND m.session_key = ? WHERE p.spill = ?)",
        (transaction.sessions.sequence(session_key), session_key, spill.name),
    )


def save_diagnostics(transaction: Transaction, diagnostics: Sequence[Diagnostic]) -> None:
    """Write what could not be read of the source."""
    cursor = transaction.connection.executemany(
        "INSERT OR IGNORE INTO diagnostics"
        " (source_key, generation, offset, length, line, json_path, severity, reason)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (
                transaction.source.key,
                transaction.source.generation,
                found.offset,
                found.length,
                found.line,
                found.json_path,
                found.severity,
                found.reason,
            )
            for found in diagnostics
        ],
    )
    transaction.saved.diagnostics += max(0, cursor.rowcount)


def drop_diagnostics(transaction: Transaction, offset: int) -> None:
    """Delete the diagnostics of the source's bytes from `offset` on: they are about to be read again."""
    source = transaction.source
    transaction.connection.execute(
        "DELETE FROM diagnostics WHERE source_key = ? AND generation = ? AND offset >= ?",
        (source.key, source.generation, offset),
    )


def drop_older_diagnostics(transaction: Transaction, source: SourceRow) -> None:
    """Delete the diagnostics of earlier generations of a file."""
    transaction.connection.execute(
        "DELETE FROM diagnostics WHERE source_key = ? AND generation < ?", (source.key, source.generation)
    )
