"""`serve`: the application on a port of this machine, with the background beside it and the browser before it."""

from __future__ import annotations

import gc
import threading
import webbrowser
from collections.abc import Callable
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final

from turnlog.errors import TurnlogError
from turnlog.hooks.server_socket import ServerSocket
from turnlog.server import Settings
from turnlog.server.access import SignInLink, own_token
from turnlog.server.addresses import bind, is_loopback, page_address
from turnlog.server.background import Background, PassProgress
from turnlog.server.sample import empty_other_sample
from turnlog.server.web_framework import importing_web_framework

if TYPE_CHECKING:
    from turnlog.server.context import LocalContext


_WARM_UP_SECONDS: Final = 1.0
"""After so long, the first page has been answered."""


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
        sample: Whether the store is the bundled sample, which is read into it; said to the page.
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
        background = None
        if sample:
            empty_other_sample(store_path)
            background = Background(store_path, progress, sample=True)
        elif sync and not read_only:
            background = Background(store_path, progress)
        if background is not None:
            # Logs are being read while the web framework is imported, which takes longer than all else here.
            opened.callback(background.stop)
            background.start()
        settings = Settings(
            host=host,
            token=token,
            page=page,
            folder=folder,
            sample=sample,
            prompts=prompts and not read_only,
            read_only=read_only,
        )
        # What is imported stays.
        with importing_web_framework():
            from turnlog.server.app import create_app
            from turnlog.server.web_server import WebServer

            app = create_app(store_path, settings, progress)
        gc.freeze()
        context: LocalContext = app.state.context
        if background is not None:
            background.on_saved = context.live_topics.wake
            context.read_next = background.read_next

        def link(*, opened: bool) -> SignInLink:
            return SignInLink(page) if context.sign_in is None else context.sign_in.link(page, opened=opened)

        def begin() -> None:
            if own is not None:
                own.announce()
            announce(link(opened=False).address)
            warm_up = threading.Timer(_WARM_UP_SECONDS, _warm_up)
            warm_up.daemon = True
            warm_up.start()
            if open_browser:
                # In a thread of its own: some browsers keep their caller waiting.
                threading.Thread(target=open_link, args=(link(opened=True),), daemon=True).start()

        def end() -> None:
            if own is not None:
                own.withdraw()

        server = WebServer(app, begin, end, background, context.live_topics, gives_way)
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


def _warm_up() -> None:
    """Import what answers about chats need, so that the first of them does not wait for it."""
    from turnlog.agents import importing

    for name in ("turnlog.aisdk.starlette", "turnlog.chat.loading", "turnlog.chat.tail"):
        with importing:
            import_module(name)


def own_socket(folder: Path) -> ServerSocket | None:
    """The socket for hooks and commands of this user; None where there can be none: hooks then leave events in spools.

    A store on a read-only disk can be served all the same.
    """
    try:
        return ServerSocket(folder)
    except OSError:
        return None


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
