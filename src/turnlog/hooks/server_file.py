"""The file beside the store, readable by the user alone, in which hooks find the running server (`send`)."""

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
    """Write the address of the server into `folder`, and remove it at the end unless a later server has replaced it.

    A folder that cannot be written is no error: a store on a read-only disk can be served all the same.

    Args:
        folder: The folder of the store; created when it is missing.
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
