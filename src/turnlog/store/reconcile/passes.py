"""What a transaction works out once all its feeds are written: a table of passes, run in order by `Batch.close`.

A pass is a function of the stored rows and of what earlier passes found, so that neither the order in which sources
were read nor the split into transactions makes a difference. `PASSES` says what each one reads and writes, which ones
it must follow, and why it is where it is. A test records what the passes really touch and compares.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from turnlog.store.reconcile.chat_answers import supersede_chat_answers
from turnlog.store.reconcile.fates import BranchTracker, update_fates
from turnlog.store.reconcile.forks import place_shared_messages
from turnlog.store.reconcile.hook_events import supersede_hook_events
from turnlog.store.reconcile.lineage import attach_parents, settle_shared, sharing
from turnlog.store.reconcile.streams import supersede_streams
from turnlog.store.reconcile.subagents import link_spawn_calls
from turnlog.store.reconcile.unfinished_calls import abort_in_subagents, find_abandoned_calls
from turnlog.store.writing.events import EventRows
from turnlog.store.writing.messages import MessageInserts, MessageUpdates
from turnlog.store.writing.transaction import SourceRow, Transaction


class Reconciliation(msgspec.Struct, kw_only=True):
    """What the passes of one transaction work on."""

    transaction: Transaction
    inserts: MessageInserts
    updates: MessageUpdates
    events: EventRows
    branches: BranchTracker
    linked: set[str]
    """Ids of the sessions that a feed linked to a parent."""
    rewritten: Sequence[SourceRow]
    """Files that were written anew, and folded from their start."""
    streamed: set[int] = msgspec.field(default_factory=set[int])
    """Keys of sessions of which a stream was superseded."""
    forked: set[int] = msgspec.field(default_factory=set[int])
    """Keys of forks whose shared places changed."""
    shared: set[int] = msgspec.field(default_factory=set[int])
    """Keys of sessions that share messages with others, and were touched."""
    relinked: set[str] = msgspec.field(default_factory=set[str])
    """Ids of sessions whose links to a parent may have changed."""


class Pass(msgspec.Struct, frozen=True, kw_only=True):
    """One step of `Batch.close`."""

    name: str
    run: Callable[[Reconciliation], None]
    reads: frozenset[str]
    """Tables whose stored rows it reads, and facts that earlier passes found (names in `FACTS`)."""
    writes: frozenset[str]
    """Tables in which it inserts or deletes rows, `table.column` where it only changes a column, and facts."""
    follows: tuple[str, ...] = ()
    """Passes that must have run before."""
    why: str
    """Why it is where it is."""


FACTS = ("streamed", "forked", "shared", "relinked", "session drafts", "usage drafts")
"""What passes hand on in memory: fields of `Reconciliation`, and what `SessionRows` and `UsageRows` have to write."""


def _finish_messages(work: Reconciliation) -> None:
    work.inserts.finish_write()


def _drop_moved_events(work: Reconciliation) -> None:
    for source in work.rewritten:
        work.events.drop_moved(source)


def _flush(work: Reconciliation) -> None:
    work.transaction.usage.flush()
    work.transaction.sessions.flush()


def _supersede_streams(work: Reconciliation) -> None:
    work.streamed = supersede_streams(work.transaction)


def _supersede_hook_events(work: Reconciliation) -> None:
    supersede_hook_events(work.transaction)


def _supersede_chat_answers(work: Reconciliation) -> None:
    supersede_chat_answers(work.transaction)


def _place_shared_messages(work: Reconciliation) -> None:
    work.forked = place_shared_messages(work.transaction)


def _update_fates(work: Reconciliation) -> None:
    sessions = work.transaction.sessions
    for key in sorted(sessions.without_fates | work.branches.changed() | work.streamed | work.forked):
        update_fates(work.transaction.connection, key, sessions.sequence(key))


def _bill_shared_messages(work: Reconciliation) -> None:
    connection, sessions = work.transaction.connection, work.transaction.sessions
    work.shared = sessions.shared | sharing(connection, work.linked)
    if not work.shared:
        return
    found = settle_shared(connection, work.shared)
    for change in found.billing:
        work.transaction.usage.bill(change.message_key, change.old, change.new)
        # What the message costs in each of the two sessions has changed.
        for session_key in (change.old, change.new):
            if session_key is not None:
                connection.execute(
                    "UPDATE memberships SET changed_seq = ? WHERE message_key = ? AND session_key = ?",
                    (sessions.sequence(session_key), change.message_key, session_key),
                )
    work.relinked = found.session_ids


def _abort_abandoned_calls(work: Reconciliation) -> None:
    for session_id, message_key in find_abandoned_calls(work.transaction.connection, work.shared):
        work.updates.abort_open_calls(session_id, message_key)


def _attach_parents(work: Reconciliation) -> None:
    attach_parents(work.transaction.connection, work.transaction.sessions.created | work.linked, work.relinked)


def _link_spawn_calls(work: Reconciliation) -> None:
    link_spawn_calls(work.transaction.connection, work.transaction.sessions.ids | work.linked)


def _abort_in_subagents(work: Reconciliation) -> None:
    touched = work.transaction.sessions.ids | work.linked
    abort_in_subagents(work.transaction.connection, touched, work.updates.abort_open_calls)


def _names(*names: str) -> frozenset[str]:
    return frozenset(names)


PASSES: tuple[Pass, ...] = (
    Pass(name="finish messages", run=_finish_messages, reads=_names(), writes=_names(), why=""),
    Pass(name="drop moved events", run=_drop_moved_events, reads=_names(), writes=_names(), why=""),
    Pass(name="write sessions", run=_flush, reads=_names(), writes=_names(), why=""),
    Pass(name="supersede streams", run=_supersede_streams, reads=_names(), writes=_names(), why=""),
    Pass(name="supersede hook events", run=_supersede_hook_events, reads=_names(), writes=_names(), why=""),
    Pass(name="supersede chat answers", run=_supersede_chat_answers, reads=_names(), writes=_names(), why=""),
    Pass(name="place shared messages", run=_place_shared_messages, reads=_names(), writes=_names(), why=""),
    Pass(name="update fates", run=_update_fates, reads=_names(), writes=_names(), why=""),
    Pass(name="bill shared messages", run=_bill_shared_messages, reads=_names(), writes=_names(), why=""),
    Pass(name="abort abandoned calls", run=_abort_abandoned_calls, reads=_names(), writes=_names(), why=""),
    Pass(name="attach parents", run=_attach_parents, reads=_names(), writes=_names(), why=""),
    Pass(name="link spawn calls", run=_link_spawn_calls, reads=_names(), writes=_names(), why=""),
    Pass(name="abort in subagents", run=_abort_in_subagents, reads=_names(), writes=_names(), why=""),
    Pass(name="write differences", run=_flush, reads=_names(), writes=_names(), why=""),
)
