"""What each caller sees: a store, a search and live changes that hold their sessions and nothing else."""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Generator, Iterable, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Final, Literal, TypeAlias

from starlette.exceptions import HTTPException

from turnlog.errors import NotFoundError, StoreError
from turnlog.hub.callers import Caller
from turnlog.hub.people.audit import note_in
from turnlog.hub.people.registry import People
from turnlog.hub.people.rules import is_above
from turnlog.hub.people.tables import HubTransaction
from turnlog.hub.replicas import CallerSearcher, Replicas
from turnlog.model import Message, Ownership
from turnlog.server import Settings
from turnlog.server.background import PassProgress
from turnlog.server.context import Context
from turnlog.server.mcp import McpEndpoint
from turnlog.store.base import SessionFilter
from turnlog.store.postgres.connection import TeamConnection
from turnlog.store.postgres.database import Database
from turnlog.store.postgres.logs import SessionLogs
from turnlog.store.postgres.store import PostgresStore
from turnlog.store.postgres.wake_ups import WakeUps
from turnlog.store.values import (
    BlobContent,
    ChangeEntry,
    FileHistory,
    Forgetting,
    Page,
    PlacedMessage,
    RawRecord,
    StoredPart,
    ToolCall,
)

MOST_CONTEXTS: Final = 1000

POLL_SECONDS: Final = 2.0
"""Seconds between two looks for changes of which no notification came."""

GATHER_SECONDS: Final = 0.03
"""Notifications within this time are one."""

_log = logging.getLogger(__name__)


Reading: TypeAlias = Literal["read", "search"]
"""How somebody has read a session, as the audit log calls it."""

_READ: ContextVar[set[tuple[Reading, str]] | None] = ContextVar("sessions that are read", default=None)


@contextmanager
def noting(sessions: set[tuple[Reading, str]]) -> Generator[None]:
    """Within the `with`, put into the set of which sessions the store gives content, and how."""
    token = _READ.set(sessions)
    try:
        yield
    finally:
        _READ.reset(token)


def _note(sessions: Iterable[str], how: Reading = "read") -> None:
    noted = _READ.get()
    if noted is not None:
        noted.update((how, session_id) for session_id in sessions)


FORGET: Final = "forget session"
"""What the audit log calls it."""

TAKE_BACK: Final = "take session back"
"""What it calls that a machine whose level has changed takes back what it has sent, perhaps to send it anew."""


class CallerStore(PostgresStore):
    """The store as one caller sees it, which says what of it was read, and notes what its owner forgets."""

    has_access: Callable[[], bool] = staticmethod(lambda: True)
    """Whether the caller may still read at all: streams are open for longer than tokens are valid."""

    def changes(self, after: int, limit: int = 1000) -> list[ChangeEntry]:
        """As `Store.changes`; none for who has lost access, whose streams are ended in a moment."""
        found = super().changes(after, limit)
        return found if not found or self.has_access() else []

    def forget(
        self, session_id: str, *, note: Callable[[TeamConnection], None] = lambda connection: None
    ) -> Forgetting:
        """As `Store.forget`, with an entry of the audit log."""

        def note_caller(connection: TeamConnection) -> None:
            user = self.viewer or ""
            note_in(HubTransaction(connection.driver), self.team, user, FORGET, session_id, owner=user)
            note(connection)

        return super().forget(session_id, note=note_caller)

    def messages(self, session_id: str, **options: Any) -> list[PlacedMessage]:
        """As `Store.messages`."""
        found = super().messages(session_id, **options)
        _note([session_id])
        return found

    def message(self, message_id: str, **options: Any) -> Message:
        """As `Store.message`."""
        _note(place.session_id for place in self.memberships(message_id))
        return super().message(message_id, **options)

    def part(self, part_id: str, **options: Any) -> StoredPart:
        """As `Store.part`."""
        found = super().part(part_id, **options)
        _note(place.session_id for place in self.memberships(found.message_id))
        return found

    def run_messages(self, run_id: str, **options: Any) -> Page[PlacedMessage]:
        """As `Store.run_messages`."""
        page = super().run_messages(run_id, **options)
        _note(placed.membership.session_id for placed in page.items)
        return page

    def spill(self, session_id: str, name: str) -> bytes:
        """As `Store.spill`."""
        found = super().spill(session_id, name)
        _note([session_id])
        return found

    def blob(self, sha256: str) -> BlobContent:
        """As `Store.blob`. Who has it in a session of their own has read nobody else's."""
        found = super().blob(sha256)
        if _READ.get() is not None:
            owners = self.owners_of_blob(sha256)
            if self.viewer not in owners.values():
                _note(owners)
        return found

    def session_logs(self, session_id: str, to: Path) -> SessionLogs:
        """As `PostgresStore.session_logs`."""
        found = super().session_logs(session_id, to)
        if found.written:
            _note([session_id])
        return found

    def file_history(self, *arguments: Any, **options: Any) -> FileHistory:
        """As `Store.file_history`."""
        found = super().file_history(*arguments, **options)
        _note(touch.call.session_id for touch in found.touches.items)
        return found

    def records(self, message_id: str, **options: Any) -> list[RawRecord]:
        """As `Store.records`."""
        _note(place.session_id for place in self.memberships(message_id))
        return super().records(message_id, **options)

    def tool_calls(self, *arguments: Any, **options: Any) -> Page[ToolCall]:
        """As `Store.tool_calls`."""
        page = super().tool_calls(*arguments, **options)
        _note(call.session_id for call in page.items)
        return page


class CallerContext(Context):
    """What one person, or one link, sees in one team."""

    is_hub: ClassVar[bool] = True

    def __init__(self, caller: Caller, database: Database, replicas: Replicas, people: People) -> None:
        """Open nothing yet."""
        self.caller = caller
        self._people = people
        team = caller.team_key
        store = CallerStore(database, team=team, viewer=caller.user)
        searcher = CallerSearcher(
            replicas,
            team,
            lambda: people.sharing.visible(team, caller.user),
            partial(_note, how="search"),
            store.messages_after,
        )
        store.has_access = lambda: not people.without_access(team, [caller])
        self.stored = store
        super().__init__(store, searcher, Settings(), PassProgress(), poll_seconds=POLL_SECONDS)
        self.mcp = McpEndpoint(store, searcher, has_clones=False)

    def version(self) -> int:
        """As `Context.version`: also what the caller may see no longer is a change."""
        return self.stored.last_change_of_all()

    def claim(self, session_id: str) -> None:
        """Make the caller the owner of a new session.

        Raises ConflictError if it is another's, a 403 if the team takes nothing that nobody has redacted.
        """
        highest = self._people.rulebook.rules(self.caller.team_key).highest_level
        if is_above("full", highest):
            raise HTTPException(403, f"this team takes sessions at the level {highest} at most, from machines")
        self._people.sharing.claim(self.caller.team_key, session_id, self.caller.user, self.caller.machine)

    def require_own(self, session_id: str) -> None:
        """Raise a 404 for a session that the caller does not see, a 403 for one that is another's."""
        self.store.session(session_id)
        if self._people.sharing.owned(self.caller.team_key, session_id).owner != self.caller.user:
            raise HTTPException(403, "only its owner may change a session")

    def ownership(self, given: Ownership | None) -> Ownership | None:
        """The caller's, with the task and the machine that are given: nobody names somebody else."""
        given = given or Ownership()
        return Ownership(user=self.caller.user, task=given.task, machine=given.machine)

    def owners(self, session_ids: Collection[str]) -> Mapping[str, str]:
        """Session -> id of the person whose it is."""
        found = self._people.sharing.owners(self.caller.team_key, session_ids)
        return {session_id: owned.owner for session_id, owned in found.items()}

    @property
    def user(self) -> str:
        """Who asks."""
        return self.caller.user

    def require_own_task(self, task_id: str) -> None:
        """Raise a 404 for a task that the caller does not see, a 403 for one that is another's."""
        task = self.store.task(task_id)
        own = SessionFilter(task=task_id, user=self.caller.user, subagents=True)
        if task.user != self.caller.user and (task.user is not None or not self.store.sessions(own, limit=1).items):
            raise HTTPException(403, "only who created a task may change it")

    def require_project(self, path: str) -> None:
        """Raise a 403 for anybody but admins, a 404 for a project of which the caller sees no session."""
        if "admin" not in self.caller.scopes:
            raise HTTPException(403, "only an admin may change this for everybody")
        seen = {name for each in self.store.projects() for name in (each.path, *each.merged)}
        if path not in seen:
            raise NotFoundError(f"there is no project {path}")


class Contexts:
    """The contexts of one process, and the thread that wakes them."""

    def __init__(self, database: Database, people: People, cache: Path) -> None:
        """Keep files of searches below `cache`."""
        self._database = database
        self._people = people
        self.replicas = Replicas(database, cache)
        self._lock = threading.Lock()
        self._known: OrderedDict[Caller, CallerContext] = OrderedDict()
        self._is_closed = False
        self._listener = threading.Thread(target=self._listen, name="turnlog-listen", daemon=True)
        self._listener.start()

    def of(self, caller: Caller) -> CallerContext:
        """What this caller sees."""
        with self._lock:
            found = self._known.get(caller)
            if found is None:
                found = self._known[caller] = CallerContext(caller, self._database, self.replicas, self._people)
            self._known.move_to_end(caller)
            if len(self._known) > MOST_CONTEXTS:
                self._drop_idle()
            return found

    def _drop_idle(self) -> None:
        for key in [key for key, each in self._known.items() if not each.live_topics.topics][: MOST_CONTEXTS // 10]:
            self._known.pop(key).close()

    def wake(self, team: int) -> None:
        """Look for changes in a team now, and end the streams of whoever may not read there any more."""
        self.replicas.wake(team)
        self._end_streams(team)
        with self._lock:
            found = [each for caller, each in self._known.items() if caller.team_key == team]
        for each in found:
            each.live_topics.wake()

    def end_streams(self) -> None:
        """End all streams: they have no end of their own."""
        with self._lock:
            known = list(self._known.values())
        for each in known:
            each.live_topics.close()

    def close(self) -> None:
        """End all streams and threads."""
        self._is_closed = True
        with self._lock:
            for each in self._known.values():
                each.close()
            self._known.clear()
        # The listener waits for one. Without a database, it waits for nothing but a moment.
        with suppress(StoreError):
            self._people.teams.wake_listeners()
        self._listener.join(POLL_SECONDS * 2)
        self.replicas.close()

    def _end_streams(self, team: int | None = None) -> None:
        """End streams whose readers have left, or read with a secret that has ended; in one team, or in all."""
        with self._lock:
            watched = [each for each in self._known.values() if each.live_topics.topics]
        teams = {each.caller.team_key for each in watched} if team is None else {team}
        for each_team in teams:
            callers = [each.caller for each in watched if each.caller.team_key == each_team]
            if not callers:
                continue
            try:
                ended = self._people.without_access(each_team, callers)
            except StoreError as error:
                # Nothing is sent meanwhile: a store that cannot say who may read has no changes either.
                _log.warning("cannot see who may still read: %s", error)
                return
            for caller in ended:
                with self._lock:
                    context = self._known.pop(caller, None)
                if context is not None:
                    context.close()

    def _listen(self) -> None:
        """Wait for notifications on a connection of its own, and make another when it breaks."""
        while not self._is_closed:
            try:
                with WakeUps(self._database.url) as wake_ups:
                    looked = time.monotonic()
                    while not self._is_closed:
                        for team in wake_ups.wait(POLL_SECONDS):
                            self.wake(team)
                        # Of what expires, nobody is notified.
                        if time.monotonic() - looked > POLL_SECONDS:
                            self._end_streams()
                            looked = time.monotonic()
                        time.sleep(GATHER_SECONDS)
            except StoreError as error:
                _log.warning("no notifications from the database: %s", error)
                time.sleep(POLL_SECONDS)
