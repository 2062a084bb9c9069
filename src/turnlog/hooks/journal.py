"""How to undo what was done to settings: one file beside the store, for the user alone. It holds no settings."""

from __future__ import annotations

import contextlib
import hashlib
import os
from pathlib import Path

import msgspec

from turnlog.atomic_files import write_atomically
from turnlog.errors import FormatError
from turnlog.hooks.jsonc import Edit, apply, reverse


def make_folders(folder: Path) -> list[str]:
    """Make a folder; those that were missing, outermost first."""
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    return [os.fspath(each) for each in reversed(missing)]


def remove_folders(folders: list[str]) -> None:
    """Remove folders, innermost first, as far as they are empty."""
    for folder in reversed(folders):
        with contextlib.suppress(OSError):
            Path(folder).rmdir()


JOURNAL = "hooks-installed.json"


class Entry(msgspec.Struct, kw_only=True):
    """What was done to one file."""

    after: str
    """SHA-256 of the file as it was left."""
    undo: list[Edit] = []
    """In that file."""
    made: list[list[str]] = []
    """Places in the settings that were not there before."""
    is_new: bool = False
    """The file was not there before."""
    folders: list[str] = []
    """Folders that were not there before, outermost first."""

    @classmethod
    def of(cls, after: bytes, edits: list[Edit], made: list[list[str]], *, is_new: bool) -> Entry:
        """For a file that is left so by these edits."""
        return cls(after=_checksum(after), undo=reverse(edits), made=made, is_new=is_new)

    def fits(self, data: bytes) -> bool:
        """Whether the file is still as it was left."""
        return _checksum(data) == self.after

    def undone(self, text: str) -> str:
        """The file as it was before."""
        return apply(text, self.undo)


class Journal:
    """The entries of all files."""

    def __init__(self, folder: Path) -> None:
        """The journal beside the store in `folder`, which need not exist."""
        self._path = folder / JOURNAL

    def get(self, path: Path) -> Entry | None:
        """What was done to a file; None when nothing is known."""
        return self._load().get(os.fspath(path))

    def put(self, path: Path, entry: Entry | None) -> None:
        """Write down what was done to a file; None: nothing of it is left."""
        entries = self._load()
        if entry is None and os.fspath(path) not in entries:
            return
        entries.pop(os.fspath(path), None)
        if entry is not None:
            entries[os.fspath(path)] = entry
        if not entries:
            self._path.unlink(missing_ok=True)
            return
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_atomically(self._path, msgspec.json.encode(entries), mode=0o600)

    def _load(self) -> dict[str, Entry]:
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=dict[str, Entry])
        except FileNotFoundError:
            return {}
        except msgspec.MsgspecError as error:
            raise FormatError(f"not what turnlog writes: {error}", path=self._path) from error


def _checksum(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
