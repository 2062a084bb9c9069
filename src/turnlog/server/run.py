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
from urllib.parse import quote

import uvicorn

from turnlog.errors import TurnlogError
from turnlog.hooks.server_socket import ServerSocket
from turnlog.server import DEFAULT_PORT, Settings
from turnlog.server.app import create_app
from turnlog.server.background import Background, PassProgress
from turnlog.server.connections import Connection
from turnlog.server.live import Hub
from turnlog.server.network import is_loopback, new_token

SHUTDOWN_SECONDS = 3
"""How long answers under way may take once the server is told to stop."""

TICK_SECONDS = 1.0
"""Time between two looks at what the server must do by itself."""

_EVERY_ADDRESS = frozenset({"0.0.0.0", "::"})


def serve(
    store_path: Path,
    *,
    host: str = "127.0.0.1",
    port: int | None = None,
    token: str | None = None,
    sync: bool = True,
    sample: bool = False,
    prompts: bool = False,
    open_browser: bool = True,
    announce: Callable[[str], None] = print,
) -> None:
    """Serve the store until the process is told to stop (Ctrl-C, SIGTERM).

    Args:
        store_path: The store; made when it is not there.
        host: Address to bind. Off loopback every request needs a token.
        port: Port to bind; without one the default, or any free one when that is taken.
        token: What requests must present. Off loopback a random one is made when none is given.
        sync: Whether logs are read in the background, now and as they are written.
        sample: Whether the store is the bundled sample; said to the page.
        prompts: Whether the page may let an agent go on with a session; on loopback only, and every request needs a
            token.
        open_browser: Whether to open the page.
        announce: Told the address, with the token in it, once it answers.

    Raises:
        StoreError: The store cannot be opened.
        TurnlogError: The address cannot be bound, or others could write prompts.
    """
    if prompts and not is_loopback(host):
        raise TurnlogError("prompts are taken on this machine only: leave out --host, or --prompts")
    if not token:
        token = new_token() if prompts or not is_loopback(host) else None
    progress = PassProgress()
    app = create_app(store_path, Settings(host=host, token=token, sample=sample, prompts=prompts), progress)
    hub: Hub = app.state.context.hub
    background = Background(store_path, progress, on_saved=hub.wake) if sync else None
    with ExitStack() as opened:
        sockets = [opened.enter_context(bind(host, port))]
        own_port: int = sockets[0].getsockname()[1]
        address = page_address(host, own_port, token)
        own = own_socket(store_path.absolute().parent)
        if own is not None:
            sockets.append(opened.enter_context(own.listener))
            opened.callback(own.withdraw)

        def begin() -> None:
            if own is not None:
                own.announce()
            announce(address)
            if background is not None:
                background.start()
            if open_browser:
                # In a thread of its own: some browsers keep their caller waiting.
                threading.Thread(target=_open_browser, args=(address,), daemon=True).start()

        config = uvicorn.Config(
            app,
            http=Connection,
            log_level="warning",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            ws="none",
            timeout_graceful_shutdown=SHUTDOWN_SECONDS,
        )

        def end() -> None:
            if own is not None:
                own.withdraw()

        try:
            _Server(config, begin, end, background, hub).run(sockets=sockets)
        except KeyboardInterrupt:
            # uvicorn has shut down by now and only passes the signal on.
            return


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


def page_address(host: str, port: int, token: str | None) -> str:
    """Where a browser finds the page."""
    name = socket.gethostname() if host in _EVERY_ADDRESS else host
    if ":" in name and not name.startswith("["):
        name = f"[{name}]"
    return f"http://{name}:{port}/" + (f"?token={quote(token, safe='')}" if token else "")


def _open_browser(address: str) -> None:
    try:
        browser = webbrowser.get()
    except webbrowser.Error:
        return
    # A browser inside the terminal would take it away from the server.
    if isinstance(browser, webbrowser.GenericBrowser) and not isinstance(browser, webbrowser.BackgroundBrowser):
        return
    browser.open(address)


class _Server(uvicorn.Server):
    """Does something once it answers, and ends the background before it is gone."""

    def __init__(
        self,
        config: uvicorn.Config,
        begin: Callable[[], None],
        end: Callable[[], None],
        background: Background | None,
        hub: Hub,
    ) -> None:
        super().__init__(config)
        self._begin = begin
        self._end = end
        self._background = background
        self._hub = hub
        self._loop: asyncio.AbstractEventLoop | None = None
        self._told_to_end = asyncio.Event()

    async def main_loop(self) -> None:
        # uvicorn's own looks ten times a second whether it shall end: most of what a server at rest does. A tick whose
        # number ten divides also sets the time that answers bear.
        self._loop = asyncio.get_running_loop()
        while not await self.on_tick(0):
            with suppress(TimeoutError):
                await asyncio.wait_for(self._told_to_end.wait(), TICK_SECONDS)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        super().handle_exit(sig, frame)
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._told_to_end.set)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._begin()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        # Here and not behind `run`, which a signal ends: nobody shall look for a server that is about to go.
        self._end()
        # Streams of changes have no end of their own, and answers under way are waited for.
        await asyncio.to_thread(self._hub.close)
        await super().shutdown(sockets)
        if self._background is not None:
            await asyncio.to_thread(self._background.stop)
