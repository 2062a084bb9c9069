"""`turnlog hub serve`: the application on an address, with a database of its own if none is named."""

from __future__ import annotations

import logging
import signal
import socket
import sys
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Final

import msgspec
import psycopg
from starlette.types import ASGIApp

from turnlog import paths
from turnlog.atomic_files import write_atomically
from turnlog.errors import StoreError
from turnlog.hub.app import create_hub
from turnlog.hub.blobs import open_blobs
from turnlog.hub.contexts import Contexts
from turnlog.hub.embedded import EmbeddedPostgres, running_url
from turnlog.hub.observing import JsonLineFormatter
from turnlog.hub.people.registry import People
from turnlog.hub.settings import HubSettings
from turnlog.platforms.processes import ProcessIdentity, is_alive, raise_descriptors, this_process
from turnlog.server.addresses import bind, page_address
from turnlog.server.bounded_server import BoundedServer
from turnlog.server.connections import Connection
from turnlog.store.postgres import visibility
from turnlog.store.postgres.connection import connect
from turnlog.store.postgres.database import Database

SHUTDOWN_SECONDS: Final = 10

FIRST_LINK_SECONDS: Final = 3600.0

MOST_CONNECTIONS: Final = 32
"""With the database."""

HUB_CONNECTIONS: Final = 4096
"""With clients."""

DESCRIPTORS: Final = 4 * HUB_CONNECTIONS
"""How many files and connections the hub asks the system for."""

DATABASE: Final = "the database of the hub"
"""What errors call it: its address is nobody's business."""


def data_folder(settings: HubSettings) -> Path:
    """The hub's own folder."""
    return paths.data_dir() / "hub" if settings.data is None else Path(settings.data).expanduser().absolute()


def running_address(settings: HubSettings) -> str | None:
    """Where the hub is that runs on this machine with the data of these settings; None if none runs."""
    try:
        found = msgspec.json.decode(_address_file(settings).read_bytes(), type=_RunningHub)
    except (OSError, msgspec.DecodeError):
        return None
    return found.address if is_alive(found.process) else None


class _RunningHub(msgspec.Struct):
    """What a running hub notes of itself for commands beside it."""

    address: str
    process: ProcessIdentity


def _address_file(settings: HubSettings) -> Path:
    return data_folder(settings) / "address.json"


def _note_address(settings: HubSettings, address: str) -> None:
    """Note where this process serves. A hub that cannot write there serves all the same: links need `--url` then."""
    file = _address_file(settings)
    with suppress(OSError):
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_atomically(file, msgspec.json.encode(_RunningHub(address, this_process())), 0o600)


@contextmanager
def opened(settings: HubSettings, *, beside: bool = False) -> Generator[Database]:
    """The hub's database, which is started if it is the hub's own; `beside` a hub that may run, it is shared.

    Raises StoreError or TurnlogError.
    """
    with ExitStack() as stack:
        url = settings.database
        if url is None and beside:
            url = running_url(data_folder(settings))
        if url is None:
            url = stack.enter_context(EmbeddedPostgres(data_folder(settings), settings.postgres_user)).url
        database = stack.enter_context(Database(url, create=True, most_connections=MOST_CONNECTIONS, name=DATABASE))
        try:
            with connect(url) as connection:
                visibility.protect(connection, database.name)
        except psycopg.Error as error:
            raise StoreError(f"cannot prepare {database.name}: {' '.join(str(error).split())}") from error
        yield database


def serve(settings: HubSettings, announce: Callable[[str, str | None], None]) -> None:
    """Serve the hub until the process has to stop (Ctrl-C, SIGTERM).

    Args:
        settings: How it is set up.
        announce: Told where the hub is, and a link that makes its owner if there is none.

    Raises:
        StoreError: The database cannot be used.
        TurnlogError: The address cannot be bound, or no database can be started.
    """
    log = _write_log(settings)
    # uvicorn passes the signal on once it has shut down, which would end the process before the database is.
    signal.signal(signal.SIGTERM, _interrupt)
    raise_descriptors(DESCRIPTORS)
    with ExitStack() as stack:
        listener = stack.enter_context(bind(settings.host, settings.port))
        database = stack.enter_context(opened(settings))
        log.hide(database.url)
        blobs = open_blobs(settings.blobs or str(data_folder(settings) / "blobs"))
        app = create_hub(database, settings, data_folder(settings) / "cache", blobs)
        contexts: Contexts = app.state.contexts
        address = settings.url or page_address(settings.host, listener.getsockname()[1])
        people = People(database)

        def begin() -> None:
            link = None
            if not people.teams.has_owner():
                link = f"{address.rstrip('/')}/join#code={people.teams.invite_first(FIRST_LINK_SECONDS)}"
            _note_address(settings, address)
            announce(address, link)

        server = _Server(app, begin, contexts)
        try:
            server.run(sockets=[listener])
        except KeyboardInterrupt:
            # uvicorn has shut down by now and only passes the signal on.
            return


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


class HubConnection(Connection):
    """A connection of the hub, of which every open page has one for its stream of changes."""

    most = HUB_CONNECTIONS


class _Server(BoundedServer):
    """Says where it is once it answers, and ends streams before it waits for answers under way."""

    def __init__(self, app: ASGIApp, begin: Callable[[], None], contexts: Contexts) -> None:
        super().__init__(app, SHUTDOWN_SECONDS, HubConnection, has_log=False)
        self._begin = begin
        self._contexts = contexts

    def begin(self) -> None:
        """Say where it is."""
        self._begin()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._contexts.end_streams()
        await super().shutdown(sockets)


def _write_log(settings: HubSettings) -> JsonLineFormatter:
    formatter = JsonLineFormatter()
    if settings.database is not None:
        formatter.hide(settings.database)
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter)
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(settings.log_level.upper())
    for name in ("uvicorn", "uvicorn.error", "httpx", "authlib", "psycopg.pool"):
        logging.getLogger(name).setLevel("WARNING")
    return formatter
