"""The reconciliation passes: what a transaction computes after all its feeds were written. `Batch.close` runs them.

A pass is a function of the stored rows and of the results of earlier passes, so neither the order of sources nor the
split into transactions matters. `PASSES` lists what each pass reads and writes, which passes it must follow, and why. A
test records what the passes really touch and compares.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from turnlog.agents.changes import ANSWERED_BY
from turnlog.store.archive import Archive
from turnlog.store.reconcile.activity import measure_activity
from turnlog.store.reconcile.call_orders import note_numbered_apart, original_numbers
from turnlog.store.reconcile.calls import abort_in_subagents, find_abandoned_calls, link_spawn_calls
from turnlog.store.reconcile.fates import BranchTracker, replaced_in, update_fates
from turnlog.store.reconcile.forks import place_shared_messages
from turnlog.store.reconcile.lesser_sources import supersede_chat_answers, supersede_hook_events, supersede_streams
from turnlog.store.reconcile.lineage import attach_parents, settle_shared, sharing
from turnlog.store.reconcile.precedence import CHAT, HOOKS, STREAM
from turnlog.store.reconcile.projects import place_folders, settle_projects
from turnlog.store.reconcile.totals import count_totals
from turnlog.store.rows import MESSAGE_COUNTS, USAGE_COUNTS
from turnlog.store.writing.events import EventRows
from turnlog.store.writing.message_updates import MessageUpdates
from turnlog.store.writing.messages import MessageInserts
from turnlog.store.writing.transaction import SourceRow, Transaction


class Reconciliation(msgspec.Struct, kw_only=True):
    """The shared data of one transaction's passes."""

    transaction: Transaction
    inserts: MessageInserts
    updates: MessageUpdates
    events: EventRows
    branches: BranchTracker
    archive: Archive | None
    """The bytes of what was read; None where nothing is archived."""
    linked: set[str]
    """Ids of the sessions that a feed linked to a parent."""
    rewritten: Sequence[SourceRow]
    """Files that were rewritten and folded from their beginning."""
    streamed: set[int] = msgspec.field(default_factory=set[int])
    """Keys of sessions in which stream messages were superseded."""
    forked: set[int] = msgspec.field(default_factory=set[int])
    """Keys of forks whose shared places changed."""
    shared: set[int] = msgspec.field(default_factory=set[int])
    """Keys of touched sessions that share messages with others."""
    relinked: set[str] = msgspec.field(default_factory=set[str])
    """Ids of sessions whose links to a parent may have changed."""
    attached: set[int] = msgspec.field(default_factory=set[int])
    """Keys of sessions that now have another parent."""


class Pass(msgspec.Struct, frozen=True, kw_only=True):
    """One step of `Batch.close`."""

    name: str
    run: Callable[[Reconciliation], None]
    reads: frozenset[str]
    """Names in `AREAS`."""
    writes: frozenset[str]
    """Names in `AREAS`."""
    follows: tuple[str, ...] = ()
    """Passes that must run earlier, not counting those that these follow. They write what this one reads, or read what
    it writes."""
    why: str
    """The reason for its place in the order."""


_WITHOUT_MODEL = (
    "SELECT m.key FROM memberships s JOIN messages m ON m.key = s.message_key"
    " WHERE s.session_key = ? AND m.role = 'assistant' AND m.model_key IS NULL"
)

AREAS: dict[str, tuple[str, ...]] = {
    "messages": ("messages", "messages.key", "messages.agent", "messages.external_id"),
    "call orders": ("call_orders",),
    "bodies": ("messages.*", "frames", "archived_texts", "blobs", "blob_uses"),
    "parts": ("parts", "more_paths"),
    "billing": ("messages.billed_key",),
    "places": ("memberships", "superseded"),
    "fates": ("memberships.fate", "memberships.fate_cause", "memberships.parent_id"),
    "events": ("events",),
    "links": ("links",),
    "spawn calls": ("links.found_call_id", "links.found_message_id"),
    "sessions": ("sessions",),
    "parents": ("sessions.parent_key", "sessions.relationship"),
    "diagnostics": ("diagnostics",),
    "projects": ("projects", "sessions.project_key"),
    "activity": ("sessions.active_ms", "sessions.active_since", "sessions.active_until"),
    "counts": (
        *("usage", "call_totals", "edit_totals"),
        *(f"sessions.{name}" for name in ("turns", "events", *MESSAGE_COUNTS, *USAGE_COUNTS)),
    ),
    "changes": ("changes", "gone"),
    "session drafts": (),
    "usage drafts": (),
    "touched": (),
    "sharing": (),
    "streamed": (),
    "forked": (),
    "shared": (),
    "relinked": (),
    "attached": (),
}
"""What passes read and write, by name. An area is made of tables: `table` is the rows of one, and its columns that no
area names; `table.column` one column, `table.*` all columns that no area names.

Without columns are the facts that passes hand on in memory: what `SessionRows` and `UsageRows` have to write, which
sessions the transaction speaks of (`touched`), which of them share messages (`sharing`), and the fields of
`Reconciliation`. `changed_seq` is in no area: it only grows, and no pass decides anything by it. A table that is in no
area (`sources`, `streams`, `answers`, `runs`) is input that no pass may write.
"""


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
    # A new line nearly always continues its branch, so most transactions compute no fates at all.
    changed = sessions.without_fates | work.branches.changed() | work.streamed | work.forked
    if work.rewritten:
        # A session whose messages are all there again has none that is replaced, and needs its fates all the same.
        files = {source.key for source in work.rewritten}
        described = sessions.keys
        changed |= described | replaced_in(work.transaction.connection, files, described)
    connection = work.transaction.connection
    for key in sorted(changed):
        for message_key, before, now in update_fates(connection, key, sessions.sequence(key)):
            sessions.count_by_fate(key, message_key, before, now)
        if work.rewritten:
            # A replaced message may have begun a turn, and the session has the turns of the file as it is now.
            sessions.count_turns(key)


def _bill_shared_messages(work: Reconciliation) -> None:
    connection, sessions = work.transaction.connection, work.transaction.sessions
    # A link that a record states replaces an inferred one, although no message of the session has changed.
    shared = sessions.shared | sharing(connection, work.linked)
    if not shared:
        return
    work.shared = shared
    found = settle_shared(connection, shared)
    for change in found.billing:
        work.transaction.usage.bill(change.message_key, change.old, change.new)
        # The cost of the message in each of the two sessions has changed.
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


def _name_models(work: Reconciliation) -> None:
    sessions = work.transaction.sessions
    for draft in map(sessions.draft, sorted(sessions.keys)):
        model = draft.facts.metadata.get(ANSWERED_BY)
        if isinstance(model, str):
            found = work.transaction.connection.execute(_WITHOUT_MODEL, (draft.key,)).fetchall()
            for (message_key,) in found:
                work.updates.name_model(draft.session_id, message_key, model)


def _order_calls(work: Reconciliation) -> None:
    connection, updates = work.transaction.connection, work.updates
    if work.archive is None:
        return
    note_numbered_apart(connection, updates.numbered_apart)
    touched = work.transaction.sessions.ids | work.linked | work.relinked
    found = original_numbers(connection, work.archive, touched, updates.call_ids)
    for session_id, message_key, original in list(found):
        updates.renumber(session_id, message_key, original)


def _attach_parents(work: Reconciliation) -> None:
    sessions = work.transaction.sessions
    work.attached = attach_parents(work.transaction.connection, sessions.created | work.linked, work.relinked)


def _settle_projects(work: Reconciliation) -> None:
    sessions, connection = work.transaction.sessions, work.transaction.connection
    # Folders of a store that an older version wrote have no repository yet: `place_folders` finds them with the next
    # transaction, whatever it is about.
    for key in settle_projects(connection, sessions.keys | work.attached | place_folders(connection)):
        sessions.sequence(key)


def _measure_activity(work: Reconciliation) -> None:
    measure_activity(work.transaction.connection, work.transaction.sessions.drafts.values())


def _count_totals(work: Reconciliation) -> None:
    count_totals(work.transaction)


def _link_spawn_calls(work: Reconciliation) -> None:
    link_spawn_calls(work.transaction.connection, work.transaction.sessions.ids | work.linked)


def _abort_in_subagents(work: Reconciliation) -> None:
    touched = work.transaction.sessions.ids | work.linked
    abort_in_subagents(work.transaction.connection, touched, work.updates.abort_open_calls)


def _names(*names: str) -> frozenset[str]:
    return frozenset(names)


PASSES: tuple[Pass, ...] = (
    Pass(
        name="finish messages",
        run=_finish_messages,
        reads=_names(),
        writes=_names("messages", "bodies"),
        why="The last messages may still be being compressed, and every pass looks for messages by SQL.",
    ),
    Pass(
        name="drop moved events",
        run=_drop_moved_events,
        reads=_names("events"),
        writes=_names("events", "session drafts"),
        why="Only now the newest generation of a rewritten file has all its events. Passes that read events must not"
        " find one of them twice.",
    ),
    Pass(
        name="write sessions",
        run=_flush,
        reads=_names("sessions", "projects", "counts", "changes", "session drafts", "usage drafts"),
        writes=_names("sessions", "projects", "counts", "changes", "session drafts", "usage drafts"),
        follows=("drop moved events",),
        why="Passes find sessions, the ends of their branches and their flags by SQL.",
    ),
    Pass(
        name="supersede streams",
        run=_supersede_streams,
        reads=_names(
            "messages", "bodies", "billing", "parts", "places", "fates", "events", "links", "sessions", "projects"
        )
        | _names("touched"),
        writes=_names("billing", "parts", "places", "events", "counts")
        | _names("session drafts", "usage drafts", "touched", "streamed"),
        follows=("finish messages", "write sessions"),
        why=f"A stream is second in precedence: {STREAM.why}. It comes before the lesser sources, which are compared"
        " with the messages of their session: where there is a log, these must be the log's.",
    ),
    Pass(
        name="supersede hook events",
        run=_supersede_hook_events,
        reads=_names("messages", "bodies", "billing", "parts", "places", "fates", "events", "sessions", "touched"),
        writes=_names("billing", "parts", "places", "events", "session drafts", "usage drafts"),
        follows=("supersede streams",),
        why=f"Hooks are third in precedence: {HOOKS.why}.",
    ),
    Pass(
        name="supersede chat answers",
        run=_supersede_chat_answers,
        reads=_names("messages", "bodies", "billing", "parts", "places", "fates", "sessions", "projects", "touched"),
        writes=_names("billing", "parts", "places", "session drafts", "usage drafts", "touched"),
        follows=("supersede hook events",),
        why=f"Chats come last in precedence: {CHAT.why}.",
    ),
    Pass(
        name="place shared messages",
        run=_place_shared_messages,
        reads=_names("messages", "bodies", "places", "fates", "links", "sessions", "projects", "touched"),
        writes=_names("places", "fates", "session drafts", "touched", "sharing", "forked"),
        follows=("supersede chat answers",),
        why="A fork shares the places that its parent has in the end: a superseded message is not copied.",
    ),
    Pass(
        name="update fates",
        run=_update_fates,
        reads=_names("messages", "bodies", "places", "fates", "events", "links", "sessions", "touched")
        | _names("streamed", "forked"),
        writes=_names("fates", "counts", "session drafts"),
        follows=("place shared messages",),
        why="Fates depend on all messages and events of a session, the shared ones of a fork among them, and on"
        " which of them the newest generation of their file still has.",
    ),
    Pass(
        name="bill shared messages",
        run=_bill_shared_messages,
        reads=_names("messages", "bodies", "billing", "parts", "places", "links", "sessions", "sharing"),
        writes=_names("billing", "links", "session drafts", "usage drafts", "shared", "relinked"),
        follows=("update fates",),
        why="Which sessions hold a message is known once superseded places are gone and forks have theirs. The links"
        " between sessions that it infers must not be there when the compactions of a fork are looked for.",
    ),
    Pass(
        name="abort abandoned calls",
        run=_abort_abandoned_calls,
        reads=_names("messages", "bodies", "billing", "parts", "places", "fates", "sessions", "projects", "shared"),
        writes=_names("bodies", "billing", "parts", "session drafts", "usage drafts", "touched"),
        follows=("bill shared messages",),
        why="A call is abandoned in a session that shares its message. The message changes, which is billed by"
        " difference to the session that is billed by now.",
    ),
    Pass(
        name="name models",
        run=_name_models,
        reads=_names("messages", "bodies", "billing", "parts", "places", "fates", "touched"),
        writes=_names("bodies", "billing", "parts", "session drafts", "usage drafts"),
        follows=("abort abandoned calls",),
        why="A file next to a log names the model of its answers, and either may be read first. The message changes,"
        " which is billed by difference to the session that is billed by now.",
    ),
    Pass(
        name="order calls",
        run=_order_calls,
        reads=_names("messages", "bodies", "billing", "parts", "places", "fates", "links", "sessions", "projects")
        | _names("touched", "relinked", "call orders"),
        writes=_names("bodies", "billing", "parts", "session drafts", "usage drafts", "touched", "call orders"),
        follows=("name models",),
        why="Which session has the original of a shared message is known once all places and links are.",
    ),
    Pass(
        name="attach parents",
        run=_attach_parents,
        reads=_names("links", "parents", "sessions", "relinked"),
        writes=_names("parents", "diagnostics", "attached"),
        follows=("bill shared messages",),
        why="A session may have only the parent that was just inferred from the messages it shares.",
    ),
    Pass(
        name="link spawn calls",
        run=_link_spawn_calls,
        reads=_names("messages", "bodies", "parts", "places", "links", "sessions", "touched"),
        writes=_names("spawn calls"),
        follows=("order calls",),
        why="A call of a superseded message starts nothing, and an abandoned call has its last form.",
    ),
    Pass(
        name="abort in subagents",
        run=_abort_in_subagents,
        reads=_names(
            "messages",
            "bodies",
            "billing",
            "parts",
            "places",
            "fates",
            "links",
            "spawn calls",
            "sessions",
            "projects",
            "touched",
        ),
        writes=_names("bodies", "billing", "parts", "session drafts", "usage drafts", "touched"),
        follows=("link spawn calls",),
        why="A subagent ends with the call that started it, which may have been found only now, or aborted only now.",
    ),
    Pass(
        name="settle projects",
        run=_settle_projects,
        reads=_names("sessions", "parents", "projects", "touched", "attached"),
        writes=_names("projects", "session drafts"),
        follows=("attach parents", "abort in subagents"),
        why="A subagent without a folder belongs to the project of its parent, which must be known, and every session"
        " that the transaction speaks of is looked at.",
    ),
    Pass(
        name="measure activity",
        run=_measure_activity,
        reads=_names("messages", "bodies", "places", "sessions", "activity"),
        writes=_names("activity"),
        follows=("settle projects",),
        why="Every session has the messages that it keeps, and every session that the transaction changes has a draft.",
    ),
    Pass(
        name="write differences",
        run=_flush,
        reads=_names("sessions", "counts", "changes", "session drafts", "usage drafts"),
        writes=_names("sessions", "counts", "changes", "session drafts", "usage drafts"),
        follows=("measure activity",),
        why="What the passes changed is written once.",
    ),
    Pass(
        name="count totals",
        run=_count_totals,
        reads=_names("messages", "bodies", "sessions", "counts"),
        writes=_names("sessions", "counts"),
        follows=("write differences",),
        why="A total is at the last time of its session, and covers the calls that are billed to it in the end. It is"
        " left out where another source has the tokens of its calls.",
    ),
)
"""In the order in which they run."""
