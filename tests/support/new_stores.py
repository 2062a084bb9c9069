"""New stores that begin as copies of one that has the schema: the tests make thousands, and the scripts of the schema
take ten times as long as a copy. Only in this process: commands that are started make theirs from the scripts."""

from __future__ import annotations

import os
import shutil
import sqlite3
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from turnlog.store import connection

_open = connection._open  # pyright: ignore[reportPrivateUsage]  # what has no way in from outside is replaced here


@contextmanager
def copies(folder: Path) -> Generator[None]:
    """Within the `with`, a store that is not there yet becomes a copy of one that is made in `folder`."""
    made = folder / "turnlog.db"
    connection.connect(made).close()

    def open_copy(path: Path, *, read_only: bool) -> sqlite3.Connection:
        if not read_only and path.name and not path.exists():
            copy = path.with_name(f"{path.name}.{threading.get_native_id()}.new")
            # Where no file can be made, opening says so. Where somebody else was first, theirs is opened.
            with suppress(OSError):
                path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                shutil.copy(made, copy)
                try:
                    os.link(copy, path)
                finally:
                    copy.unlink()
        return _open(path, read_only=read_only)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(connection, "_open", open_copy)
        yield


def make_from_scripts(patch: pytest.MonkeyPatch) -> None:
    """From here on, new stores are made by the scripts of the schema again."""
    patch.setattr(connection, "_open", _open)
