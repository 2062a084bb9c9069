"""`serve`: the application on a port of this machine, with the background beside it and the browser before it."""

from __future__ import annotations

import asyncio
import socket
import threading
import webbrowser
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from types import FrameType

import uvicorn

from turnlog.errors import TurnlogError
from turnlog.hooks.server_socket import ServerSocket
from turnlog.server import DEFAULT_PORT, Settings
from turnlog.server.access import SignInLink, own_token
from turnlog.server.app import create_app
from turnlog.server.background import Background, PassProgress
from turnlog.server.connections import Connection, accepted_at_once, close_late
from turnlog.server.context import LocalContext
from turnlog.server.live import LiveTopics
from turnlog.server.network import is_loopback

SHUTDOWN_SECONDS = 3
"""How long answers under way may take once the server has to stop."""

WAITING_CONNECTIONS = 1024
"""How many connections the system keeps until they are accepted; who comes then is late by a second."""

TICK_SECONDS = 1.0
"""Time between two looks at what the server must do by itself."""

_EVERY_ADDRESS = frozenset({"0.0.0.0", "::"})


def serve(
    store_path: Path,
    *,
    host: str = "127.0.0.1",
    port: int | None = None,
    token: str | None = None,
    use_token: bool = True,
    folder: Path | None = None,
    sync: bool = True,
    sample: bool = False,
    prompts: bool = False,
    read_only: bool = False,
    open_browser: bool = True,
    announce: Callable[[str], None] = print,
    gives_way: Callable[[], bool] | None = None,
) -> int | None:
    """Serve the store until the process has to stop (Ctrl-C, SIGTERM), or until `gives_way` holds.

    Returns the port if it gave way, so that another store can be served there, else None.

    Args:
        store_path: The store; made when it is not there.
        host: Address to bind.
        port: Port to bind; without one the default, or any free one when that is taken.
        token: The access token that programs present; without one that of the folder, which is made when it is missing.
        use_token: False answers every program and every user of this machine, on loopback only.
        folder: Where the server's socket and token are; by default the folder of the store.
        sync: Whether logs are read in the background, now and as they are written.
        sample: Whether the store is the bundled sample; said to the page.
        prompts: Whether the page may let an agent go on with a session; on loopback and with a token only.
        read_only: Whether nothing is written to the store: neither logs are read nor changes and prompts taken.
        open_browser: Whether to open the page, signed in.
        announce: Told a link that signs one browser in, once the server answers.
        gives_way: Asked about every second, in a thread; the server ends when it holds.

    Raises:
        StoreError: The store cannot be opened.
        TurnlogError: The address cannot be bound, the token cannot be used, or others could read or write prompts.
    """
    _refuse_open_doors(host, use_token=use_token, prompts=prompts)
    folder = folder or store_path.absolute().parent
    if not use_token:
        token = None
    elif not token:
        token = own_token(folder)
    with ExitStack() as opened:
        sockets = [opened.enter_context(bind(host, port))]
        own_port: int = sockets[0].getsockname()[1]
        page = page_address(host, own_port)
        own = own_socket(folder)
        if own is not None:
            sockets.append(opened.enter_context(own.listener))
            opened.callback(own.withdraw)
        progress = PassProgress()
        settings = Settings(
            host=host,
            token=token,
            page=page,
            folder=folder,
            sample=sample,
            prompts=prompts and not read_only,
            read_only=read_only,
        )
        app = create_app(store_path, settings, progress)
        context: LocalContext = app.state.context
        background = (
            Background(store_path, progress, on_saved=context.live_topics.wake) if sync and not read_only else None
        )

        if background is not None:
            context.read_next = background.read_next

        def link(*, opened: bool) -> SignInLink:
            return SignInLink(page) if context.sign_in is None else context.sign_in.link(page, opened=opened)

        def begin() -> None:
            if own is not None:
                own.announce()
            announce(link(opened=False).address)
            if background is not None:
                background.start()
            if open_browser:
                # In a thread of its own: some browsers keep their caller waiting.
                threading.Thread(target=open_link, args=(link(opened=True),), daemon=True).start()

        def end() -> None:
            if own is not None:
                own.withdraw()

        config = uvicorn.Config(
            app,
            http=Connection,
            log_level="warning",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            ws="none",
            timeout_graceful_shutdown=SHUTDOWN_SECONDS,
            backlog=accepted_at_once(),
        )
        server = _Server(config, begin, end, background, context.live_topics, gives_way)
        try:
            server.run(sockets=sockets)
        except KeyboardInterrupt:
            # uvicorn has shut down by now and only passes the signal on.
            return None
        return own_port if server.gave_way else None


def _refuse_open_doors(host: str, *, use_token: bool, prompts: bool) -> None:
    if prompts and not is_loopback(host):
        raise TurnlogError("prompts are taken on this machine only: leave out --host, or --prompts")
    if not use_token and not is_loopback(host):
        raise TurnlogError(f"a server on {host} needs a token: leave out --no-token")
    if not use_token and prompts:
        raise TurnlogError("a server that takes prompts needs a token: leave out --no-token, or --prompts")


def own_socket(folder: Path) -> ServerSocket | None:
    """The socket for hooks and commands of this user; None where there can be none: hooks then leave events in spools.

    A store on a read-only disk can be served all the same.
    """
    try:
        return ServerSocket(folder)
    except OSError:
        return None


def bind(host: str, port: int | None) -> socket.socket:
    """A listening socket; without a port the default one, or any that is free when that is taken."""
    try:
        return _listen(host, DEFAULT_PORT if port is None else port)
    except OSError as error:
        if port is not None:
            raise TurnlogError(f"cannot listen on {host}, port {port}: {_why(error)}") from error
    try:
        return _listen(host, 0)
    except OSError as error:
        raise TurnlogError(f"cannot listen on {host}: {_why(error)}") from error


def _why(error: OSError) -> str:
    """Without what asyncio adds: the address has been named."""
    return (error.strerror or str(error)).partition(" (while attempting")[0]


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.create_server((host.strip("[]"), port), family=family)
    # asyncio sends without delay (TCP_NODELAY) only what says that it is TCP, which this socket does not: without it
    # every answer waits 40 ms between its head and its body.
    return socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP, fileno=listener.detach())


def page_address(host: str, port: int) -> str:
    """Where a browser finds the page."""
    name = socket.gethostname() if host in _EVERY_ADDRESS else host
    if ":" in name and not name.startswith("["):
        name = f"[{name}]"
    return f"http://{name}:{port}/"


def open_link(link: SignInLink) -> bool:
    """Open a link in the user's browser; False where there is none but one inside the terminal."""
    try:
        browser = webbrowser.get()
    except webbrowser.Error:
        return False
    # A browser inside the terminal would take it away from the server.
    if isinstance(browser, webbrowser.GenericBrowser) and not isinstance(browser, webbrowser.BackgroundBrowser):
        return False
    return browser.open(link.address if link.file is None else link.file.as_uri())


class _Server(uvicorn.Server):
    """Does something once it answers, and ends the background before it is gone."""

    def __init__(
        self,
        config: uvicorn.Config,
        begin: Callable[[], None],
        end: Callable[[], None],
        background: Background | None,
        topics: LiveTopics,
        gives_way: Callable[[], bool] | None,
    ) -> None:
        super().__init__(config)
        self.gave_way = False
        self._gives_way = gives_way
        self._begin = begin
        self._end = end
        self._background = background
        self._topics = topics
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ended = asyncio.Event()

    async def main_loop(self) -> None:
        # uvicorn's own looks ten times a second whether it shall end: most of what a server at rest does. A tick whose
        # number ten divides also sets the time that answers bear.
        self._loop = asyncio.get_running_loop()
        while not await self.on_tick(0):
            with suppress(TimeoutError):
                await asyncio.wait_for(self._ended.wait(), TICK_SECONDS)
            close_late(self.server_state.connections)
            if self._gives_way is not None and not self.should_exit and await asyncio.to_thread(self._gives_way):
                self.gave_way = self.should_exit = True

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        super().handle_exit(sig, frame)
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._ended.set)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            for listener in sockets or ():
                # asyncio accepts as many at once as wait at most: here few, there many.
                listener.listen(WAITING_CONNECTIONS)
            self._begin()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        # Here and not behind `run`, which a signal ends: nobody shall look for a server that is about to go.
        self._end()
        # Streams of changes have no end of their own, and answers under way are waited for.
        await asyncio.to_thread(self._topics.close)
        await super().shutdown(sockets)
        if self._background is not None:
            await asyncio.to_thread(self._background.stop)
