"""Shared by all writers of one transaction: connection, names, sessions, usage, and the source that is being read.

Each module around it writes its own kind of row (`messages`, `events`, `sessions`); `batch.Batch` calls them in order.
"""

from __future__ import annotations

import sqlite3
from datetime import datetime
from typing import Any

import msgspec

from turnlog.agents.base import SourceKind
from turnlog.agents.files import is_compressed
from turnlog.model import SessionTotal
from turnlog.store.external_content import Feed
from turnlog.store.keys import Names
from turnlog.store.reconcile.precedence import HOOKS, LOG, STREAM, rank_of
from turnlog.store.rows import MessageColumns, believable
from turnlog.store.writing.prepared import Pricer
from turnlog.store.writing.sessions import SessionRows, UsageRows


class SourceRow(msgspec.Struct, frozen=True):
    """The facts about a source that writers need."""

    key: int
    agent: str
    path: str
    generation: int
    session_id: str | None
    kind: SourceKind = SourceKind.SESSION

    @property
    def is_log(self) -> bool:
        """Whether the archive keeps its bytes unchanged as long as anything read from them is stored."""
        return self.kind in (SourceKind.SESSION, SourceKind.SUBAGENT) and not is_compressed(self.path)

    @property
    def is_unnamed(self) -> bool:
        """Whether only its records say which sessions it describes, as of an import."""
        return self.session_id is None and self.kind in (*LOG.kinds, *STREAM.kinds)

    @property
    def is_stream(self) -> bool:
        """Whether the session's own log supersedes it as a whole: see `reconcile.lesser_sources`."""
        return self.kind in STREAM.kinds

    @property
    def is_hooks(self) -> bool:
        """Whether the session's own log supersedes it message by message: see `reconcile.lesser_sources`."""
        return self.kind in HOOKS.kinds


class SavedChanges(msgspec.Struct):
    """What a transaction wrote."""

    sessions: set[str] = msgspec.field(default_factory=set[str])
    created: list[int] = msgspec.field(default_factory=list[int])
    """Keys of the sessions that are new."""
    messages: int = 0
    diagnostics: int = 0
    last_change: int = 0


class Transaction:
    """The shared state of one transaction."""

    def __init__(self, connection: sqlite3.Connection, price: Pricer, price_version: str) -> None:
        self.connection = connection
        self.names = Names(connection)
        self.sessions = SessionRows(connection, self.names)
        self.usage = UsageRows(connection, self.names, self.sessions)
        self.saved = SavedChanges()
        self.source = SourceRow(0, "", "", 0, None)
        """The source whose changes are being written."""
        self.feed: Feed | None = None
        """The bytes that hold the changes, where these can be read again in the archive."""
        self.price = price
        self._price_key = self.names.price_version(price_version)
        self._places: dict[int, tuple[int, str | None, str]] = {}
        """Source -> its rank, the session that it is the file of, its path."""

    def use_source(self, source: SourceRow, data: bytes = b"", offset: int = 0) -> None:
        """Write for this source from now on. Its changes were read from `data`, the bytes at `offset`."""
        self.source = source
        self.feed = Feed(source.key, source.generation, offset, data) if data and source.is_log else None
        self._places[source.key] = (rank_of(source.kind), source.session_id, source.path)

    def end_feed(self) -> None:
        """Everything of the feed is written: its bytes are not held any longer."""
        self.feed = None

    def outranks(self, source_key: int | None, generation: int, session_id: str) -> bool:
        """Whether this source, and not the stored one, provides the places of a session's messages.

        The better kind of source wins (`reconcile.precedence`): the others count turns and positions in their own way,
        and a chat's rows have no source. Then the session's own file wins, the first by path of several, and in one
        file the newest generation. Only stored facts about the two sources are compared, so the order of reading does
        not matter.
        """
        if source_key == self.source.key:
            return self.source.generation > generation
        if source_key is None:
            return True
        return self._rank(self.source.key, session_id) < self._rank(source_key, session_id)

    def counts_alike(self, source_key: int | None, session_id: str) -> bool:
        """Whether another source counts turns as this one: neither is of a better kind, nor the session's own file."""
        if source_key is None or source_key == self.source.key:
            return False
        return self._rank(self.source.key, session_id)[:2] == self._rank(source_key, session_id)[:2]

    def _rank(self, source_key: int, session_id: str) -> tuple[int, bool, str]:
        if source_key not in self._places:
            self._places[source_key] = self._stored_place(source_key)
        rank, owner, path = self._places[source_key]
        return rank, owner != session_id, path

    def _stored_place(self, source_key: int) -> tuple[int, str | None, str]:
        row = self.connection.execute("SELECT kind, session_id, path FROM sources WHERE key = ?", (source_key,))
        kind, owner, path = row.fetchone() or (SourceKind.SESSION, None, "")
        return rank_of(SourceKind(kind)), owner, path

    def cost_of_total(self, total: SessionTotal, at: datetime | None) -> int | None:
        """The cost of a total of a session at the prices of this time, in nano-dollars; None without a known price."""
        return believable(self.price(total.usage, total.model, None, at))

    def message_columns(self, columns: MessageColumns, model: str | None, revision: int, sequence: int) -> list[Any]:
        """The columns between a message's ids and its billed session, in the order of `rows.MESSAGE_COLUMNS`."""
        who, when, what = columns
        price_key = None if what[_COST] is None else self._price_key
        return [*who, self.names.model(model), *when, revision, sequence, *what, price_key]


_COST = -2
"""The place of the cost in `MessageColumns.what`."""
