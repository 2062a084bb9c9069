"""Turns to a receiver of OpenTelemetry as they end, while a server runs.

The store is the queue: a turn is read from it when it is over, and the place in the change sequence moves on once the
receiver has it. So nothing is lost while the receiver is away, and little is in memory. The place is in a file beside
the store. What ended before the export was first switched on is not sent: `otel_push` does that.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

import turnlog
from turnlog import paths
from turnlog.atomic_files import write_atomically
from turnlog.errors import NotFoundError, TurnlogError
from turnlog.exports.otel_push import Receiver, RefusedError, batches, send
from turnlog.exports.source import ExportSource
from turnlog.formats.otel import OtelConversation, resource_spans
from turnlog.model import ToolCallPart
from turnlog.runs.states import session_states
from turnlog.store import open_store
from turnlog.store.base import Store
from turnlog.store.values import PlacedMessage
from turnlog.store.window import MessageRow

LOOK_SECONDS: Final = 1.0
"""Between two looks for changes."""

AGAIN_SECONDS: Final = 10.0
"""Between two looks at turns that had not ended: a session becomes quiet without a change."""

LONGEST_PAUSE: Final = 60.0
"""Between two tries while the receiver is away."""

MOST_SESSIONS: Final = 5_000
"""Of which is known how far they were sent."""

_PAGE: Final = 200

_AFTER_ALL: Final = 1 << 62

_MANY: Final = 1_000
"""Changes of a session at one look; where there are more, its turns that were sent are not sent again."""

_UNFIT: Final = frozenset({400, 413, 422})
"""Answers that say that this request is wrong, not the address or the access: another one may be taken."""


class _Kept(msgspec.Struct):
    """What is remembered, in the file."""

    endpoint: str
    since: datetime
    """When the export was switched on."""
    sequence: int
    """Changes up to this number are done."""
    turns: dict[str, int] = {}
    """Session -> its last turn that was sent. The session that was sent last is the last one."""
    unended: set[str] = set()
    """Sessions with a turn that had not ended."""


class _Change(NamedTuple):
    """What has changed in a session."""

    session_id: str
    turns: frozenset[int]
    """Turns with new or other content, where there are not too many."""


class _StoppedError(TurnlogError):
    """The server ends."""


class LiveExport:
    """Sends what ends in one store to one receiver."""

    def __init__(
        self,
        store_path: Path,
        receiver: Receiver,
        *,
        content: bool = False,
        announce: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Send nothing yet.

        Args:
            store_path: The store. It is opened by `start`.
            receiver: Where turns go.
            content: Whether prompts, answers, inputs and outputs go too, without secrets.
            announce: Told what is wrong, each thing once, and that it is over.

        Raises:
            TurnlogError: The receiver has no `http` or `https` address.
            ImportError: The binary form without the extra `otel`.
        """
        receiver.check()
        self._store_path = store_path
        self._receiver = receiver
        self._content = content
        self._announce = announce
        self._end = threading.Event()
        self._problem: str | None = None
        self._thread = threading.Thread(target=self._run, name="turnlog-otel", daemon=True)

    def start(self) -> None:
        """Send what ends from now on, on a thread of its own."""
        self._thread.start()

    def stop(self) -> None:
        """End, after the request under way or five seconds."""
        self._end.set()
        self._thread.join(5)

    def _run(self) -> None:
        pause = LOOK_SECONDS
        while True:
            try:
                with open_store(self._store_path, create=True) as store:
                    self._follow(store)
                return
            except _StoppedError:
                return
            except Exception as error:  # whatever goes wrong, the server goes on, and the next try may succeed
                self._announce_once(str(error) or type(error).__name__)
                pause = min(2 * pause, LONGEST_PAUSE)
            if self._end.wait(pause):
                return

    def _follow(self, store: Store) -> None:
        kept, pause, looked_at = self._load(store), LOOK_SECONDS, 0.0
        while not self._end.wait(pause):
            try:
                self._send_changes(store, kept)
                if kept.unended and time.monotonic() - looked_at >= AGAIN_SECONDS:
                    looked_at = time.monotonic()
                    self._send_turns(store, kept, [_Change(each, frozenset()) for each in kept.unended])
                    self._save(kept)
                self._announce_once(None)
                pause = LOOK_SECONDS
            except _StoppedError:
                raise
            except TurnlogError as error:
                self._announce_once(str(error))
                pause = min(2 * pause, LONGEST_PAUSE)

    def _send_changes(self, store: Store, kept: _Kept) -> None:
        if kept.sequence > store.last_change():
            # The store was made anew.
            kept.sequence = 0
        while entries := store.changes(kept.sequence):
            until = entries[-1].sequence
            changed = dict.fromkeys(entry.session_id for entry in entries if entry.session_id is not None)
            self._send_turns(store, kept, [_change(store, each, kept.sequence, until) for each in changed])
            kept.sequence = until
            self._save(kept)

    def _send_turns(self, store: Store, kept: _Kept, changes: Iterable[_Change]) -> None:
        """Send what has ended of these sessions, and note it once the receiver has it."""
        sent: dict[str, int] = {}
        unended: dict[str, bool] = {}
        for batch, count in batches(self._resources(store, kept, changes, sent, unended)):
            try:
                send(self._receiver, batch, self._sleep)
            except RefusedError as error:
                if error.status not in _UNFIT:
                    raise
                self._announce(f"{error}: {count} spans are left out")
        for session_id, turn in sent.items():
            kept.turns.pop(session_id, None)
            kept.turns[session_id] = turn
        for session_id in list(kept.turns)[:-MOST_SESSIONS]:
            del kept.turns[session_id]
        kept.unended.difference_update(each for each, is_one in unended.items() if not is_one)
        kept.unended.update(each for each, is_one in unended.items() if is_one)

    def _resources(
        self,
        store: Store,
        kept: _Kept,
        changes: Iterable[_Change],
        sent: dict[str, int],
        unended: dict[str, bool],
    ) -> Iterator[dict[str, Any]]:
        """The spans of turns that have ended; `sent` and `unended` are filled meanwhile."""
        for change in changes:
            session_id = change.session_id
            states = session_states(store, [session_id])
            if session_id not in states:  # forgotten meanwhile
                unended[session_id] = False
                continue
            is_unended = states[session_id].state in ("running", "waiting")
            unended[session_id] = is_unended
            through = kept.turns.get(session_id)
            if is_unended and through is not None and not any(turn <= through for turn in change.turns):
                # Only the turn that goes on has changed.
                last = store.messages(session_id, before=_AFTER_ALL, limit=1)
                if last and _turn(last[0]) <= through + 1:
                    continue
            found, first = _recent(store, change, through, kept.since)
            turns = {_turn(each) for each in found if _turn(each) >= first}
            if through is not None:
                turns = {turn for turn in turns if turn > through or turn in change.turns}
            if is_unended and found:
                turns.discard(_turn(found[-1]))
            if turns:
                sent[session_id] = max(turns) if through is None else max(through, *turns)
                yield from self._spans(store, session_id, found, turns)

    def _spans(
        self, store: Store, session_id: str, found: list[PlacedMessage], turns: set[int]
    ) -> Iterator[dict[str, Any]]:
        try:
            source = ExportSource(store, session_id, redact=self._content, content=self._content)
            root = source.root_id()
        except NotFoundError:
            return
        conversation = OtelConversation(source.session, source.priced(found))
        yield from resource_spans([conversation], root, turnlog.__version__, content=self._content, turns=turns)

    def _load(self, store: Store) -> _Kept:
        with suppress(OSError, msgspec.DecodeError):
            kept = msgspec.json.decode(paths.live_export_path(self._store_path).read_bytes(), type=_Kept)
            if kept.endpoint == self._receiver.endpoint:
                return kept
        made = _Kept(self._receiver.endpoint, datetime.now(UTC), store.last_change())
        self._save(made)
        return made

    def _save(self, kept: _Kept) -> None:
        try:
            write_atomically(paths.live_export_path(self._store_path), msgspec.json.encode(kept), 0o600)
        except OSError as error:
            raise TurnlogError(f"cannot note what was sent: {error}") from error

    def _sleep(self, seconds: float) -> None:
        if self._end.wait(seconds):
            raise _StoppedError("the server ends")

    def _announce_once(self, problem: str | None) -> None:
        if problem == self._problem:
            return
        self._problem = problem
        self._announce(f"{self._receiver.url} takes traces again" if problem is None else problem)


def _change(store: Store, session_id: str, after: int, until: int) -> _Change:
    try:
        changes = store.session_changes(session_id, after, until, limit=_MANY)
    except NotFoundError:
        changes = None
    if changes is None:
        return _Change(session_id, frozenset())
    # Behind those with other content are those with only another place: a compaction does not send a session again.
    rows = msgspec.json.decode(changes.rows, type=list[MessageRow])[: len(changes.messages)]
    return _Change(session_id, frozenset(row.turn or 0 for row in rows))


def _recent(store: Store, change: _Change, through: int | None, since: datetime) -> tuple[list[PlacedMessage], int]:
    """The messages of turns that may have to be sent and of the turn before them, and the first of these turns.

    Of a session of which nothing was sent: from the first turn on in which something happened after `since`.
    """
    found: list[PlacedMessage] = []
    first = _AFTER_ALL if through is None else min([through + 1, *change.turns])
    before = _AFTER_ALL
    while page := store.messages(change.session_id, before=before, limit=_PAGE):
        found[:0] = page
        before = page[0].membership.position
        if through is None:
            first = min([first, *(_turn(each) for each in page if _is_since(each, since))])
        if _turn(page[0]) < first - 1:
            break
    return found, first


def _turn(placed: PlacedMessage) -> int:
    return placed.membership.turn or 0


def _is_since(placed: PlacedMessage, since: datetime) -> bool:
    """Whether something of a message happened after a time; what has no time may have."""
    message = placed.message
    times = [message.created_at, message.completed_at]
    for part in message.parts:
        if isinstance(part, ToolCallPart):
            times += [result.completed_at for result in part.results]
    known = [time for time in times if time is not None]
    return not known or max(known) >= since
