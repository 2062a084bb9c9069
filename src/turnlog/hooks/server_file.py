"""Where the running server is: a file beside the store, for the user alone, that hooks look into (`send`)."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from turnlog.atomic_files import write_atomically
from turnlog.hooks.send import SERVER

_EVERY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1"}


@contextmanager
def announced(folder: Path, host: str, port: int, token: str | None) -> Generator[None]:
    """Say in `folder` where the server is, as long as it runs. One that was started later is left in peace.

    Where nothing can be written nothing is said: a store on a disk that is only read can be looked at all the same.

    Args:
        folder: Where the store lies; made when it is not there.
        host: The address that the server is bound to.
        port: Its port.
        token: What requests must present, if anything.
    """
    bare = host.strip("[]")
    place = f"{_EVERY_ADDRESS.get(bare, bare)}\n{port}\n{os.getpid()}\n{token or ''}\n"
    path = folder / SERVER
    with suppress(OSError):
        _write(path, place)
    try:
        yield
    finally:
        if _read(path) == place:
            path.unlink(missing_ok=True)


def _write(path: Path, place: str) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_atomically(path, place.encode(), mode=0o600)


def _read(path: Path) -> str | None:
    try:
        return path.read_text()
    except (OSError, ValueError):
        return None
