"""What a server is bound to, and where a browser finds it.

Without a web framework: a server listens, and its logs are being read, before one is imported.
"""

from __future__ import annotations

import ipaddress
import socket

from turnlog.errors import TurnlogError
from turnlog.server import DEFAULT_PORT

LOOPBACK_NAMES = frozenset({"127.0.0.1", "localhost", "[::1]"})

_EVERY_ADDRESS = frozenset({"0.0.0.0", "::"})


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches a server bound to `host`."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


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
