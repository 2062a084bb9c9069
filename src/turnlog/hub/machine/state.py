"""What this machine knows of its hub: a small database next to the store, which only the user can read.

It says where the hub is and with which token, which level each project has, which sessions were sent under which names
(or may have been: their batch left, and no answer came), and what is still to be sent: archives, and large contents
without their secrets. It also says which messages have no secrets, so that nobody looks for them again.
"""

from __future__ import annotations

import hashlib
import json
import platform
import secrets
import sqlite3
import uuid
from collections.abc import Collection, Iterable
from contextlib import closing, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Final, NamedTuple, Self

from turnlog.errors import NotFoundError, StoreError
from turnlog.hub.machine.levels import Level

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS levels (path TEXT PRIMARY KEY, level TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS sent (session_id TEXT PRIMARY KEY, name TEXT NOT NULL, level TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS sending (
    session_id TEXT NOT NULL, name TEXT NOT NULL, level TEXT NOT NULL, PRIMARY KEY (session_id, name, level)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS shared (name TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS absent (name TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS archives (path TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS contents (sha256 TEXT PRIMARY KEY, data BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS clean (digest BLOB PRIMARY KEY) WITHOUT ROWID;
"""

_AT_ONCE: Final = 500
"""Values of one question."""

_MACHINE_ID: Final = Path("/etc/machine-id")


class HubConnection(NamedTuple):
    """A hub, and who this machine is there."""

    url: str
    token: str
    team: str
    user: str
    machine: str
    user_name: str = ""
    """What people are shown instead of ids; empty if an older hub, or an older turnlog, has not said it."""
    machine_name: str = ""

    def who(self) -> str:
        """Who this machine is there, for people."""
        return f"{self.user_name or self.user}, machine {self.machine_name or self.machine}"


class Sent(NamedTuple):
    """A session as it was sent."""

    name: str
    """Its id on the hub."""
    level: Level


def state_path(store_path: Path) -> Path:
    """Where the state of the machine that has this store is."""
    return store_path.absolute().parent / "hub.db"


class MachineState:
    """The state, open. One thread at a time uses it."""

    def __init__(self, store_path: Path) -> None:
        """Open it; it is made when it is not there. Raises StoreError if it cannot be used."""
        self.path = state_path(store_path)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.touch(mode=0o600)
            self._database = sqlite3.connect(self.path, timeout=10, isolation_level=None, check_same_thread=False)
            self._database.executescript(_SCHEMA)
        except (OSError, sqlite3.Error) as error:
            raise StoreError(f"cannot use {self.path}: {error}") from error

    def __enter__(self) -> Self:
        """The state itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        self._database.close()

    # -- the hub

    def connection(self) -> HubConnection:
        """The hub. Raises NotFoundError if this machine has none."""
        found = self._fact("connection")
        if found is None:
            raise NotFoundError("this machine is connected to no hub: `turnlog hub connect URL`")
        return HubConnection(*found)

    def is_connected(self) -> bool:
        """Whether there is a hub."""
        return self._fact("connection") is not None

    def connect(self, connection: HubConnection) -> None:
        """Note a hub. What was sent to another one is forgotten."""
        known = self._fact("connection")
        with self._database:
            self._database.execute("BEGIN IMMEDIATE")
            if known is None or (known[0], *known[2:4]) != (connection.url, *connection[2:4]):
                self._forget_hub()
            self._set("connection", list(connection))

    def name(self, user_name: str, machine_name: str) -> HubConnection:
        """Note what the hub calls this machine and its person, where that is not known yet; the connection with it."""
        known = self.connection()
        named = known._replace(user_name=known.user_name or user_name, machine_name=known.machine_name or machine_name)
        if named != known:
            self._set("connection", list(named))
        return named

    def disconnect(self) -> None:
        """Forget the hub and its token; the levels stay."""
        with self._database:
            self._database.execute("BEGIN IMMEDIATE")
            self._forget_hub()

    def _forget_hub(self) -> None:
        for table in ("sent", "sending", "shared", "absent", "archives", "contents"):
            self._database.execute(f"DELETE FROM {table}")
        self._database.execute("DELETE FROM facts WHERE name NOT IN ('store', 'host', 'secret')")

    def store_id(self) -> str:
        """The id of this store on hubs. A copy on another machine gets another one."""
        host = hashlib.sha256(f"{_machine_id()} {platform.node()} {self.path}".encode()).hexdigest()
        if self._fact("host") != host:
            with self._database:
                self._database.execute("BEGIN IMMEDIATE")
                self._set("host", host)
                self._set("store", uuid.uuid4().hex)
                self._set("generation", 0)
        return self._fact("store")

    def secret(self) -> str:
        """What only this machine knows: names that are hashed with it can be guessed nowhere else."""
        known: str | None = self._fact("secret")
        if known is None:
            known = secrets.token_hex(32)
            self._set("secret", known)
        return known

    @property
    def ids_secret(self) -> str:
        """What the hub gives the machines of this person to hash ids with, as it was at the last push."""
        return self._fact("ids secret") or ""

    @ids_secret.setter
    def ids_secret(self, secret: str) -> None:
        self._set("ids secret", secret)

    @property
    def generation(self) -> int:
        """A higher one sends everything again."""
        return self._fact("generation") or 0

    @generation.setter
    def generation(self, number: int) -> None:
        # The hub may be another one, or an older state of it.
        self._database.execute("DELETE FROM absent")
        self._set("generation", number)

    @property
    def is_agreed(self) -> bool:
        """Whether the user has seen what leaves, and agreed."""
        return bool(self._fact("agreed"))

    def agree(self) -> None:
        """Note that the user has agreed."""
        self._set("agreed", True)

    @property
    def rules(self) -> str | None:
        """A digest of the levels by which everything was sent."""
        return self._fact("rules")

    @rules.setter
    def rules(self, digest: str) -> None:
        self._set("rules", digest)

    @property
    def last_change(self) -> tuple[int, int] | None:
        """Number and time of the store's last change at the last push: another store has none of both."""
        found = self._fact("change")
        return None if found is None else (found[0], found[1])

    @last_change.setter
    def last_change(self, change: tuple[int, int]) -> None:
        self._set("change", change)

    def note(self, name: str, value: Any) -> None:
        """Note something that `turnlog hub status` shows."""
        self._set(f"note {name}", value)

    def noted(self, name: str) -> Any:
        """What was noted last; None if nothing was."""
        return self._fact(f"note {name}")

    # -- levels

    def levels(self) -> dict[str, str]:
        """Folder -> level, as chosen by the command."""
        return dict(self._database.execute("SELECT path, level FROM levels").fetchall())

    def drop_level(self, path: str) -> bool:
        """Have no rule for a folder any more; False if there was none."""
        return self._database.execute("DELETE FROM levels WHERE path = ?", (path,)).rowcount > 0

    def set_level(self, path: str, level: str) -> None:
        """Choose the level of a project."""
        self._database.execute("INSERT OR REPLACE INTO levels (path, level) VALUES (?, ?)", (path, level))

    # -- what was sent, and what is still to be sent

    def sent(self) -> dict[str, Sent]:
        """Session -> how it was sent."""
        rows = self._database.execute("SELECT session_id, name, level FROM sent")
        return {session_id: Sent(name, level) for session_id, name, level in rows}

    def note_sent(self, sessions: dict[str, Sent], gone: Iterable[str]) -> None:
        """Note sessions that were sent, and some that are no longer on the hub."""
        with self._database:
            self._database.execute("BEGIN IMMEDIATE")
            for table in ("sent", "sending"):
                self._database.executemany(f"DELETE FROM {table} WHERE session_id = ?", [(each,) for each in gone])
            rows = [(session_id, *sent) for session_id, sent in sessions.items()]
            self._database.executemany("INSERT OR REPLACE INTO sent (session_id, name, level) VALUES (?, ?, ?)", rows)
            # What may be there under another name at this level is so still.
            self._database.executemany("DELETE FROM sending WHERE session_id = ?1 AND (level <> ?3 OR name = ?2)", rows)

    def sending(self) -> dict[str, list[Sent]]:
        """Session -> how it may have been sent, too: no answer came."""
        found: dict[str, list[Sent]] = {}
        for session_id, name, level in self._database.execute("SELECT session_id, name, level FROM sending"):
            found.setdefault(session_id, []).append(Sent(name, level))
        return found

    def note_sending(self, sessions: dict[str, Sent]) -> None:
        """Note sessions of a batch that is about to leave, where they are not noted as sent just so."""
        with self._database:
            self._database.execute("BEGIN IMMEDIATE")
            self._database.executemany(
                "INSERT OR IGNORE INTO sending (session_id, name, level) SELECT ?1, ?2, ?3"
                " WHERE NOT EXISTS (SELECT 1 FROM sent WHERE (session_id, name, level) = (?1, ?2, ?3))",
                [(session_id, *sent) for session_id, sent in sessions.items()],
            )

    def note_answered(self) -> None:
        """Note that the hub has all that was sent."""
        with self._database:
            self._database.execute("BEGIN IMMEDIATE")
            self._database.execute(
                "INSERT OR REPLACE INTO sent (session_id, name, level) SELECT session_id, name, level FROM sending"
            )
            self._database.execute("DELETE FROM sending")

    def shared(self) -> set[str]:
        """Ids on the hub of sessions that other machines have, too."""
        return {name for (name,) in self._database.execute("SELECT name FROM shared")}

    def note_shared(self, names: Iterable[str]) -> None:
        """Note sessions that other machines have, too."""
        self._database.executemany("INSERT OR IGNORE INTO shared (name) VALUES (?)", [(name,) for name in names])

    def absent(self) -> set[str]:
        """Ids on the hub of sessions that leave as if they were not here, since the hub has forgotten them."""
        return {name for (name,) in self._database.execute("SELECT name FROM absent")}

    def note_absent(self, names: Iterable[str]) -> None:
        """Note sessions that the hub has forgotten, until everything is sent again."""
        self._database.executemany("INSERT OR IGNORE INTO absent (name) VALUES (?)", [(name,) for name in names])

    def add_outgoing(self, paths: Iterable[str], contents: dict[str, bytes]) -> None:
        """Note what is to be sent after a batch, before the batch is."""
        with self._database:
            self._database.execute("BEGIN IMMEDIATE")
            self._database.executemany("INSERT OR IGNORE INTO archives (path) VALUES (?)", [(path,) for path in paths])
            self._database.executemany("INSERT OR IGNORE INTO contents (sha256, data) VALUES (?, ?)", contents.items())

    def archives(self) -> list[str]:
        """Files whose bytes are to be sent."""
        return [path for (path,) in self._database.execute("SELECT path FROM archives ORDER BY path")]

    def content(self, sha256: str) -> bytes | None:
        """A large content without its secrets; None if there is none of this hash."""
        row = self._database.execute("SELECT data FROM contents WHERE sha256 = ?", (sha256,)).fetchone()
        return None if row is None else row[0]

    def drop_archives(self, paths: Iterable[str]) -> None:
        """Note that the bytes of files were sent."""
        with self._database:
            self._database.execute("BEGIN IMMEDIATE")
            self._database.executemany("DELETE FROM archives WHERE path = ?", [(path,) for path in paths])

    def drop_contents(self) -> None:
        """Note that the hub lacks no large content."""
        self._database.execute("DELETE FROM contents")

    # -- messages without secrets

    def keep_clean(self, rules: str) -> None:
        """Forget which messages have no secrets, if other rules than these said so."""
        if self._fact("clean by") != rules:
            with self._database:
                self._database.execute("BEGIN IMMEDIATE")
                self._database.execute("DELETE FROM clean")
                self._set("clean by", rules)

    def clean_of(self, digests: Collection[bytes]) -> set[bytes]:
        """Which of these digests are of messages that are known to have no secrets."""
        wanted, found = list(digests), set[bytes]()
        for start in range(0, len(wanted), _AT_ONCE):
            some = wanted[start : start + _AT_ONCE]
            marks = ",".join("?" * len(some))
            rows = self._database.execute(f"SELECT digest FROM clean WHERE digest IN ({marks})", some)
            found |= {digest for (digest,) in rows}
        return found

    def note_clean(self, digests: Iterable[bytes]) -> None:
        """Note messages without secrets."""
        with self._database:
            self._database.execute("BEGIN IMMEDIATE")
            self._database.executemany(
                "INSERT OR IGNORE INTO clean (digest) VALUES (?)", [(digest,) for digest in digests]
            )

    # -- facts

    def _fact(self, name: str) -> Any:
        row = self._database.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
        return None if row is None else json.loads(row[0])

    def _set(self, name: str, value: Any) -> None:
        self._database.execute("INSERT OR REPLACE INTO facts (name, value) VALUES (?, ?)", (name, json.dumps(value)))


def is_connected(store_path: Path) -> bool:
    """Whether the machine of this store has a hub and its user has agreed to what leaves; makes nothing."""
    if not state_path(store_path).exists():
        return False
    with suppress(sqlite3.Error), closing(sqlite3.connect(state_path(store_path))) as database:
        rows = database.execute("SELECT count(*) FROM facts WHERE name IN ('connection', 'agreed')").fetchone()
        return rows[0] == 2
    return False


def _machine_id() -> str:
    try:
        return _MACHINE_ID.read_text(encoding="utf-8").strip()
    except OSError:
        return ""
