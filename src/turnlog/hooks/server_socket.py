"""The Unix socket next to the store on which the server listens for programs of the same user (`send.SOCKET`).

Only the user can open it, so its clients need no token.
"""

from __future__ import annotations

import json
import os
import socket
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from turnlog.errors import NotFoundError, TurnlogError
from turnlog.hooks import send
from turnlog.platforms.connections import local_socket
from turnlog.platforms.processes import is_running

SECONDS = 5.0
"""Seconds that a command waits for the server's answer."""


_START_SECONDS = 60.0
"""A server that has not announced its socket for so long does not start any more."""


class ServerSocket:
    """A socket that is bound at once. Clients find it from `announce` to `withdraw`."""

    def __init__(self, folder: Path) -> None:
        """Bind it.

        Args:
            folder: The folder of the store; made for the user alone when it is missing.

        Raises:
            OSError: The folder cannot be written, or cannot hold a socket.
        """
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._path = folder / send.SOCKET
        # Nobody can connect before it listens. It gets its name afterwards, so that a client which finds it is never
        # refused.
        self._bound = folder / f"{send.SOCKET}.{os.getpid()}"
        self._bound.unlink(missing_ok=True)
        _remove_left(folder)
        self.listener = local_socket()
        try:
            send.at_address(os.fspath(folder), self._bound.name, self.listener.bind)
            self._bound.chmod(0o600)
            self._identity = _identity(self._bound)
        except BaseException:
            self.listener.close()
            raise

    def announce(self) -> None:
        """Give the socket its name, replacing any other socket."""
        self._bound.replace(self._path)

    def withdraw(self) -> None:
        """Remove the name, unless a later server has it."""
        for path in (self._bound, self._path):
            with suppress(OSError):
                if _identity(path) == self._identity:
                    path.unlink()


def connect(folder: Path) -> socket.socket:
    """Connect to the server that listens in a folder. Raises NotFoundError if there is none."""
    try:
        found = socket.socket(fileno=send.connect(os.fspath(folder), SECONDS).detach())
    except (OSError, AttributeError) as error:
        raise NotFoundError("no turnlog server runs on this store: `turnlog serve` starts one") from error
    found.settimeout(SECONDS)
    return found


def ask_server(folder: Path, method: str, address: str) -> tuple[int, Any]:
    """The status of the running server's answer to a request, and its JSON.

    Raises:
        NotFoundError: No server listens in this folder.
        TurnlogError: The answer is not that of a turnlog server.
    """
    # Imported late: a command that finds no server does not need it.
    from http.client import HTTPConnection, HTTPException

    connection = HTTPConnection("localhost")
    connection.sock = connect(folder)
    try:
        connection.request(method, address)
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    except (OSError, HTTPException, ValueError) as error:
        raise TurnlogError(f"the server does not answer: {error}") from error
    finally:
        connection.close()


def _remove_left(folder: Path) -> None:
    """Remove the sockets of servers that were killed before they had announced them."""
    for path in folder.glob(f"{send.SOCKET}.*"):
        pid = path.suffix.removeprefix(".")
        with suppress(OSError):
            if pid.isdecimal() and time.time() - path.lstat().st_mtime > _START_SECONDS and not is_running(int(pid)):
                path.unlink()


def _identity(path: Path) -> tuple[int, int]:
    status = path.lstat()
    return status.st_dev, status.st_ino
