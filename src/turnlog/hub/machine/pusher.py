"""Brings what has changed in this machine's store to its hub, batch by batch, from wherever the hub says it is.

The store is the queue: nothing is lost while the hub is away, and a batch whose answer was lost is sent again. The next
batch is made while one is under way. Log files and large contents follow the batch that names them; what is still to
be sent is noted first, so that a killed push goes on where it ended.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from turnlog.errors import NotFoundError, StoreBusyError
from turnlog.hub.machine.client import BehindError, HubClient, HubRefusedError, pack
from turnlog.hub.machine.leaving import Leaving, Sieve
from turnlog.hub.machine.levels import LEVELS, Level, Levels, Place, is_lower
from turnlog.hub.machine.metrics import HashedNames
from turnlog.hub.machine.state import MachineState, Sent
from turnlog.hub.sync.wire import LARGEST_CONTENT
from turnlog.redact import rules_digest
from turnlog.settings import load_settings
from turnlog.store.external_content import load_blob
from turnlog.store.feed.copies import (
    AbsenceNeededError,
    CopiesNeededError,
    MessagesNeededError,
    MoreNeededError,
    pack_ids,
)
from turnlog.store.feed.reading import (
    Shared,
    bodies_of,
    last_change,
    message_ids,
    projects_of_paths,
    projects_of_sessions,
    projects_of_sources,
    read_archived,
    read_batch,
    read_messages,
    shared_messages,
    snapshot,
    time_of_change,
)
from turnlog.store.feed.values import ArchivedBytes, ArchivedSizes, FeedBatch, FeedPosition

if TYPE_CHECKING:
    from turnlog.store.connection import Connection

MANY_MESSAGES: Final = 3000
"""Of a batch. A live session has a few."""

TOO_LARGE: Final = 413

_MOST_ARCHIVED: Final = 8 << 20
"""Bytes of compressed frames in one request."""

_PATHS_AT_ONCE: Final = 500


class PushReport(msgspec.Struct):
    """What a push did."""

    batches: int = 0
    messages: int = 0
    sessions: dict[str, Level] = {}
    """Session -> level, for those that were sent."""
    refused: set[str] = set()
    """Sessions that somebody else has on the hub."""
    taken_back: set[str] = set()
    """Sessions that were on the hub, and of which nothing leaves any more."""
    lowered: set[str] = set()
    """Sessions that were on the hub at a higher level than they have now."""
    masked: Counter[str] = msgspec.field(default_factory=Counter[str])
    """Rule -> secrets that were taken out."""
    in_full: dict[str, set[int]] = {}
    """Session at `redacted` -> keys of its messages that left with their secrets, as a session at `full` has them."""
    files: int = 0
    """Log files of which bytes were sent."""
    contents: int = 0
    too_large: int = 0
    """Contents that are larger than a hub takes."""


def current_levels(state: MachineState) -> Levels:
    """The levels that the user has chosen: by the command, else in the settings. Raises SettingsError."""
    hub = load_settings().hub
    return Levels(hub.level, {**hub.projects, **state.levels()})


class _Change(NamedTuple):
    """A session whose level is another one than before."""

    sent: list[Sent]
    """How it was sent, and may have been sent, too."""
    level: Level

    @property
    def withdrawn(self) -> set[str]:
        """Its ids on the hub where that has, or may have, more of it than it may have now."""
        return {each.name for each in self.sent if is_lower(self.level, each.level)}


class StorePusher:
    """Pushes one store. One thread at a time uses it."""

    def __init__(self, store_path: Path, state: MachineState, client: HubClient) -> None:
        """Keep what it works with."""
        self._store_path = store_path
        self._state = state
        self._client = client
        self._connection = state.connection()
        self._most_messages = MANY_MESSAGES
        self._asked: set[tuple[FeedPosition, str, str]] = set()
        """What the hub asked for in this push, after the last position where it asked: what of which session."""
        self._repeated: tuple[FeedPosition, set[int]] = FeedPosition(), set()
        """Which messages were sent again after which position, before what follows it."""
        self._absent = set[str]()
        """Ids on the hub of sessions that leave as if they were not here."""
        self._outgoing_failed: StoreBusyError | None = None

    def push(self, on_batch: Callable[[PushReport], None] = lambda _: None) -> PushReport:
        """Send everything that has changed.

        Raises StoreError if the hub cannot be reached or refuses, SettingsError for levels that there are not. If
        taking out secrets fails, nothing of that batch has left.
        """
        report = PushReport()
        store = self._state.store_id()
        self._repeated, self._asked = (FeedPosition(), set()), set()
        after = self._begin(store)
        sieve = self._sieve(self._state.ids_secret)
        # Another level may have other ids and texts: everything comes again, and what was sent at a higher one goes.
        changed = self._changed_levels() if after == FeedPosition() else {}
        withdrawn = sorted({name for each in changed.values() for name in each.withdrawn})
        if not changed:  # else the hub may still have, and ask for, what is about to go
            self._push_outgoing(report)
        with ThreadPoolExecutor(1, "turnlog-hub") as thread:
            following = thread.submit(self._packed, after, sieve, self._state.generation, withdrawn)
            while (found := following.result()) is not None:
                leaving, packed = found
                after = leaving.batch.after
                # The next batch is read, cleaned and packed while the hub takes this one.
                following = thread.submit(self._packed, leaving.batch.until, sieve, self._state.generation)
                # Noted before the batch leaves: if no answer comes, its files are sent all the same, and its sessions
                # are taken back when their level is lowered.
                self._state.note_sending(_sent(leaving.sessions))
                self._state.add_outgoing(leaving.archives, leaving.contents)
                self._state.note_clean(leaving.clean)
                try:
                    accepted = self._client.push(store, packed)
                except (BehindError, MoreNeededError, HubRefusedError) as error:
                    following.result()
                    after = self._again(after, _names(leaving.batch), error)
                    following = thread.submit(self._packed, after, sieve, self._state.generation, withdrawn)
                    continue
                report.taken_back |= {each for each, change in changed.items() if change.level == "none"}
                report.lowered |= {each for each, change in changed.items() if change.withdrawn} - report.taken_back
                self._note(leaving, changed, set(accepted.refused))
                # Said once: the batches that follow bring these sessions again, at their new level.
                changed, withdrawn = {}, []
                _add(report, leaving, set(accepted.refused))
                on_batch(report)
                self._push_outgoing(report)
        self._state.note_answered()
        if report.batches:
            self._note_change()
        if self._outgoing_failed is not None:
            raise self._outgoing_failed
        return report

    def _again(
        self, after: FeedPosition, names: set[str], error: BehindError | MoreNeededError | HubRefusedError
    ) -> FeedPosition:
        """Where to go on after a batch, with these sessions, was not taken. Raises the error if nothing helps."""
        self._repeated = FeedPosition(), set()
        if isinstance(error, MoreNeededError):
            new = names.intersection(error.session_ids) - self._asked_of(after, error.needed)
            if not new:  # it has been said, and the same batch would be sent for ever
                raise error
            self._asked = {each for each in self._asked if each[0] == after}
            self._asked |= {(after, error.needed, name) for name in new}
            if isinstance(error, CopiesNeededError):
                self._state.note_shared(new)
            elif isinstance(error, AbsenceNeededError):
                self._state.note_absent(new)
                self._absent |= new
            return after
        if isinstance(error, HubRefusedError):
            if error.status != TOO_LARGE or self._most_messages == 1:
                raise error
            self._most_messages = max(1, self._most_messages // 8)
            return after
        # The hub was restored, or a copy of this store has pushed.
        if error.generation > self._state.generation:
            self._state.generation = error.generation + 1
            self._absent.clear()
        return error.position if error.generation == self._state.generation else FeedPosition()

    def plan(self) -> PushReport:
        """What the next push would send. Nothing is sent; only which messages have no secrets is noted."""
        report = PushReport()
        self._repeated = FeedPosition(), set()
        after, generation, secret = self._client.position(self._state.store_id())
        sieve = self._sieve(secret)
        if generation != self._state.generation or self._is_other(secret):
            after = FeedPosition()
        while (leaving := self._next(after, sieve)) is not None:
            _add(report, leaving, set())
            self._state.note_clean(leaving.clean)
            report.files += len(leaving.archives)
            report.contents += len(leaving.contents)
            after = leaving.batch.until
        return report

    def _sieve(self, ids_secret: str) -> Sieve:
        self._absent = self._state.absent()
        self._state.keep_clean(rules_digest())
        return Sieve(
            current_levels(self._state),
            HashedNames.of_machine(self._connection.team, self._connection.user, ids_secret, self._state.secret()),
            self._load_blob,
            self._places_of_sources,
            self._state.clean_of,
            self._bodies_of,
            self._absent,
        )

    def _packed(
        self, after: FeedPosition, sieve: Sieve, generation: int, withdrawn: Sequence[str] = ()
    ) -> tuple[Leaving, bytes] | None:
        """What leaves of the next batch, and the batch as it is sent; `withdrawn` goes with it."""
        leaving = self._next(after, sieve)
        if leaving is None:
            return None
        return leaving, pack(msgspec.structs.replace(leaving.batch, generation=generation, withdrawn=list(withdrawn)))

    def _next(self, after: FeedPosition, sieve: Sieve) -> Leaving | None:
        """What leaves of the next batch; None if nothing has changed. On a connection of its own thread."""
        with snapshot(self._store_path) as connection:
            batch = read_batch(connection, after, most_messages=self._most_messages)
            if batch is None:
                return None
            shared = shared_messages(connection, batch) if sieve.asks_who_shares else Shared()
            repeated = self._repeated[1] if self._repeated[0] == after else set[int]()
            torn = self._torn(batch, sieve)
            needed = _only_named(batch, torn)
            # Some messages first, if what follows only names them.
            if raised := sieve.raised(shared) - needed - repeated:
                batch, shared = self._read_again(connection, after, raised, repeated), Shared()
            elif needed := needed - repeated:
                # The hub has them in no session: those that it did not ask for say nothing of what may be shown there.
                batch, shared = self._read_again(connection, after, needed, repeated, sessions=torn), Shared()
        leaving = sieve.pass_through(batch, shared)
        leaving.batch.forgotten = self._forgotten(batch, sieve)
        leaving.batch.copies = self._copies(leaving, sieve)
        return leaving

    def _read_again(
        self,
        connection: Connection,
        after: FeedPosition,
        again: set[int],
        repeated: set[int],
        *,
        sessions: set[int] | None = None,
    ) -> FeedBatch:
        """A batch with some of these messages, which are noted as repeated; with their places in some sessions only."""
        batch = read_messages(connection, after, sorted(again), sessions=sessions, most_messages=self._most_messages)
        self._repeated = after, repeated | batch.bodies.keys()
        return batch

    def _torn(self, batch: FeedBatch, sieve: Sieve) -> set[int]:
        """The sessions of a batch of which the hub has asked for messages."""
        asked = self._asked_of(batch.after, MessagesNeededError.needed)
        if not asked:
            return set()
        names = {key: ":".join(name) for key, name in batch.names.get("sessions", {}).items()}
        return {key for key, name in names.items() if name in asked or sieve.hidden_name(name) in asked}

    def _asked_of(self, after: FeedPosition, needed: str) -> set[str]:
        return {name for position, what, name in self._asked if (position, what) == (after, needed)}

    def _copies(self, leaving: Leaving, sieve: Sieve) -> dict[int, bytes]:
        """The ids of all messages of the sessions that other machines have, too."""
        keys = {":".join(name): key for key, name in leaving.batch.names.get("sessions", {}).items()}
        found: dict[int, bytes] = {}
        shared = self._state.shared()
        for session_id, (name, level) in leaving.sessions.items():
            if name in shared:
                with snapshot(self._store_path) as connection:
                    ids = message_ids(connection, session_id)
                found[keys[name]] = pack_ids([sieve.hidden_id(each) for each in ids] if level == "metrics" else ids)
        return found

    def _load_blob(self, sha256: str) -> bytes:
        with snapshot(self._store_path) as connection:
            return load_blob(connection, sha256).data

    def _places_of_sources(self, keys: set[int]) -> dict[int, set[Place]]:
        with snapshot(self._store_path) as connection:
            found = projects_of_sources(connection, keys)
        return {key: {Place(*each) for each in places} for key, places in found.items()}

    def _bodies_of(self, session_keys: set[int]) -> Iterator[bytes]:
        with snapshot(self._store_path) as connection:
            yield from bodies_of(connection, session_keys)

    def _begin(self, store: str) -> FeedPosition:
        """Where to go on. Begins a new generation if everything is to be sent again."""
        state = self._state
        position, generation, secret = self._client.position(store)
        if generation > state.generation:
            # The notes of this machine are older than what it has sent.
            state.generation = generation + 1
        elif state.rules is not None and (self._is_other(secret) or self._changed_levels()):
            state.generation = max(generation, state.generation) + 1
        elif generation == state.generation:
            with snapshot(self._store_path) as connection:
                if position.sequence > last_change(connection) or not self._is_known(connection):
                    # The store was made anew, or restored. Noted now: a push that is cut off goes on where it was.
                    state.generation = generation + 1
                    self._note_change()
        state.rules, state.ids_secret = current_levels(state).digest(), secret
        return position if generation == state.generation else FeedPosition()

    def _is_known(self, connection: Connection) -> bool:
        """Whether the store is the one of the last push, as far as that was noted."""
        known = self._state.last_change
        return known is None or time_of_change(connection, known[0]) == known[1]

    def _note_change(self) -> None:
        with snapshot(self._store_path) as connection:
            number = last_change(connection)
            changed_at = time_of_change(connection, number)
        if changed_at is not None:
            self._state.last_change = number, changed_at

    def _is_other(self, ids_secret: str) -> bool:
        """Whether everything was sent by other levels than now, or with ids that have another secret."""
        state = self._state
        return (state.rules, state.ids_secret) != (current_levels(state).digest(), ids_secret)

    def _changed_levels(self) -> dict[str, _Change]:
        """Those sessions that were sent, may have been, or were held back, by another level than they have now."""
        levels, known = current_levels(self._state), self._state.sending()
        for session_id, sent in self._state.sent().items():
            known.setdefault(session_id, []).append(sent)
        with snapshot(self._store_path) as connection:
            now: dict[str, Level] = {
                session_id: levels.of(*place) for session_id, *place in projects_of_sessions(connection)
            }
        return {
            session_id: _Change(sent, now[session_id])
            for session_id, sent in known.items()
            if session_id in now and {now[session_id]} != {each.level for each in sent}
        }

    def _forgotten(self, batch: FeedBatch, sieve: Sieve) -> list[str]:
        """Ids on the hub of sessions that were forgotten here."""
        if not batch.forgotten:
            return []
        levels, sent, sending = current_levels(self._state), self._state.sent(), self._state.sending()
        names: set[str] = set()
        for session_id in batch.forgotten:
            names |= {sieve.hidden_name(session_id), sieve.earlier_name(session_id)}
            names |= {each.name for each in sending.get(session_id, ())}
            known = sent.get(session_id)
            # Of one that another machine may have sent, the id is said only if words of it might leave.
            if known is not None:
                names.add(known.name)
            elif levels.of(None) in ("redacted", "full"):
                names.add(session_id)
        return sorted(names)

    def _note(self, leaving: Leaving, changed: dict[str, _Change], refused: set[str]) -> None:
        # The hub has a session at its old level until it comes again. Noted at the new one, it is no change any more:
        # a push that is cut off goes on where it was.
        raised = {
            each: max(change.sent, key=lambda sent: LEVELS.index(sent.level))
            for each, change in changed.items()
            if not change.withdrawn
        }
        sent = {each: Sent(old.name, changed[each].level) for each, old in raised.items() if old.level != "none"}
        gone = changed.keys() - sent.keys()
        sent |= _sent({each: said for each, said in leaving.sessions.items() if said[0] not in refused})
        sent |= {session_id: Sent(session_id, "none") for session_id in leaving.held_back}
        self._state.note_sent(sent, gone)

    def _push_outgoing(self, report: PushReport) -> None:
        """Send log files and large contents of batches that the hub has.

        Where the hub cannot keep them now, messages go on without them, and the error is kept for the end.
        """
        if self._outgoing_failed is not None:
            return
        try:
            self._push_archives(report)
            self._push_contents(report)
        except StoreBusyError as error:
            self._outgoing_failed = error

    def _push_archives(self, report: PushReport) -> None:
        paths = self._state.archives()
        for start in range(0, len(paths), _PATHS_AT_ONCE):
            some = paths[start : start + _PATHS_AT_ONCE]
            left = self._whole_files(some)
            have = self._client.archived_sizes(left) if left else ArchivedSizes({})
            for pieces in _together(self._archived(left, have, report)):
                self._client.push_archived(pieces)
            self._state.drop_archives(some)

    def _whole_files(self, paths: Sequence[str]) -> list[str]:
        """Those of these files that leave byte for byte: their level may be another one than when they were noted."""
        levels = current_levels(self._state)
        with snapshot(self._store_path) as connection:
            found = projects_of_paths(connection, paths)
        return [path for path in paths if levels.lowest(Place(*each) for each in found.get(path, ())) == "full"]

    def _archived(self, paths: Sequence[str], have: ArchivedSizes, report: PushReport) -> Generator[ArchivedBytes]:
        """The bytes of these files that the hub lacks, in pieces."""
        with snapshot(self._store_path) as connection:
            for path in paths:
                archived = read_archived(connection, have, path)
                report.files += archived is not None
                yield from _pieces(archived)

    def _push_contents(self, report: PushReport) -> None:
        tried = set[str]()
        # The hub answers some at a time, and goes on naming those that this machine does not have.
        while missing := [sha256 for sha256 in self._client.missing_blobs() if sha256 not in tried]:
            for sha256 in missing:
                tried.add(sha256)
                data = self._content(sha256)
                if data is not None and len(data) > LARGEST_CONTENT:
                    report.too_large += 1
                elif data is not None:
                    self._client.push_blob(sha256, data)
                    report.contents += 1
        if not tried:
            self._state.drop_contents()

    def _content(self, sha256: str) -> bytes | None:
        cleaned = self._state.content(sha256)
        # The session may have been forgotten here since the hub took the message.
        try:
            return self._load_blob(sha256) if cleaned is None else cleaned
        except NotFoundError:
            return None


def _names(batch: FeedBatch) -> set[str]:
    return {":".join(name) for name in batch.names.get("sessions", {}).values()}


def _only_named(batch: FeedBatch, sessions: set[int]) -> set[int]:
    """The messages of these sessions that a batch does not bring."""
    placed = [row for table in ("memberships", "superseded") for row in batch.rows.get(table, ())]
    return {row[2] for row in placed if row[0] in sessions} - {row[0] for row in batch.rows.get("messages", ())}


def _sent(sessions: Mapping[str, tuple[str, Level]]) -> dict[str, Sent]:
    return {session_id: Sent(name, level) for session_id, (name, level) in sessions.items()}


def _add(report: PushReport, leaving: Leaving, refused: set[str]) -> None:
    report.batches += 1
    report.messages += len(leaving.batch.bodies)
    report.refused |= refused
    report.masked += leaving.masked
    for session_id, keys in leaving.in_full.items():
        report.in_full.setdefault(session_id, set()).update(keys)
    report.sessions |= {
        session_id: level for session_id, (name, level) in leaving.sessions.items() if name not in refused
    }


def _together(pieces: Iterable[ArchivedBytes]) -> Generator[list[ArchivedBytes]]:
    """Pieces that one request takes."""
    some: list[ArchivedBytes] = []
    size = 0
    for piece in pieces:
        length = sum(len(frame[3]) for frame in piece.frames)
        if some and size + length > _MOST_ARCHIVED:
            yield some
            some, size = [], 0
        some.append(piece)
        size += length
    if some:
        yield some


def _pieces(archived: ArchivedBytes | None) -> Generator[ArchivedBytes]:
    """The frames of a file, some at a time."""
    if archived is None:
        return
    frames: list[tuple[int, int, int, bytes]] = []
    size = 0
    for frame in archived.frames:
        if frames and size + len(frame[3]) > _MOST_ARCHIVED:
            yield ArchivedBytes(archived.path, frames[0][0], frames[0][1], frames)
            frames, size = [], 0
        frames.append(frame)
        size += len(frame[3])
    yield ArchivedBytes(archived.path, frames[0][0], frames[0][1], frames)
