"""The plan of a change of one settings file, carrying it out, and the journal that says how to undo it."""

from __future__ import annotations

import contextlib
import difflib
import hashlib
import os
import re
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from turnlog import paths
from turnlog.agent_settings.jsonc import Edit, apply, reverse
from turnlog.atomic_files import read_file, write_atomically
from turnlog.errors import ConflictError, FormatError, SourceError

_MOST_BYTES = 16 << 20
"""Of settings; the largest that are known have some thousand."""

WithoutOurs: TypeAlias = Callable[[str, Sequence[Sequence[str]] | None], str]

State = Literal["installed", "outdated", "absent"]
"""`outdated`: what is ours differs from what would be installed now."""


class SettingsPlan(NamedTuple):
    """The change of one file."""

    path: Path
    """The settings file, or the target of a symbolic link."""
    before: bytes | None
    """None: the file does not exist."""
    after: bytes | None
    """None: the file is deleted."""
    entry: JournalEntry | None
    """How to undo the change; None when nothing of ours is left."""
    state: State
    """The state before the change."""

    @property
    def is_needed(self) -> bool:
        """Whether anything changes."""
        return self.before != self.after

    def diff(self) -> str:
        """The change, as `diff -u` shows it; empty if there is none."""
        sides = [(data or b"").decode(errors="replace").splitlines(keepends=True) for data in (self.before, self.after)]
        names = ["/dev/null" if data is None else os.fspath(self.path) for data in (self.before, self.after)]
        lines = difflib.unified_diff(sides[0], sides[1], names[0], names[1])
        return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


class FolderPlan(NamedTuple):
    """The change of several files, all of one kind and in one folder."""

    path: Path
    """The folder."""
    files: tuple[SettingsPlan, ...]

    @property
    def entry(self) -> JournalEntry | None:
        """That of one of the files: None when nothing of ours is left."""
        return self.files[0].entry

    @property
    def state(self) -> State:
        """The state of all files; `outdated` if they differ in it."""
        first = self.files[0].state
        return first if all(plan.state == first for plan in self.files) else "outdated"

    @property
    def is_needed(self) -> bool:
        """Whether anything changes."""
        return any(plan.is_needed for plan in self.files)

    def diff(self) -> str:
        """The changes, as `diff -u` shows them; empty if there are none."""
        return "".join(plan.diff() for plan in self.files)


Plan: TypeAlias = "SettingsPlan | FolderPlan"


def carry_out(plan: Plan, journal: Journal) -> None:
    """Carry out a plan: a file changes as a whole or not at all, and only once it is written down how to undo that.

    Raises ConflictError if a file has changed since it was planned, SourceError if one cannot be written. Of several
    files those before it have changed then.
    """
    for each in plan.files if isinstance(plan, FolderPlan) else (plan,):
        _carry_out(each, journal)


def _carry_out(plan: SettingsPlan, journal: Journal) -> None:
    if read_settings(plan.path) != plan.before:
        raise ConflictError(f"{plan.path} has changed meanwhile: look at it again")
    known = journal.get(plan.path)
    made = known.folders if known is not None else []
    if plan.entry is not None:
        plan.entry.folders = made + missing_folders(plan.path.parent)
    with _as_source_error(journal.path):
        journal.put(plan.path, plan.entry)
    try:
        with _as_source_error(plan.path):
            _change(plan)
    except BaseException:
        with contextlib.suppress(OSError):
            journal.put(plan.path, known)
        raise
    if plan.after is None:
        remove_folders(made)


def _change(plan: SettingsPlan) -> None:
    if plan.after is None:
        plan.path.unlink(missing_ok=True)
    else:
        plan.path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(plan.path, plan.after)


@contextmanager
def _as_source_error(path: Path) -> Generator[None]:
    """Say with the path why it cannot be written."""
    try:
        yield
    except OSError as error:
        raise SourceError(f"cannot be written: {error.strerror or error}", path=path) from error


class Journal:
    """The entries of all files."""

    def __init__(self, path: Path) -> None:
        """The journal at this path, which need not exist."""
        self.path = path

    def get(self, path: Path) -> JournalEntry | None:
        """What was done to a file; None if that is unknown."""
        return self._load().get(os.fspath(path))

    def put(self, path: Path, entry: JournalEntry | None) -> None:
        """Record what was done to a file; None if nothing of ours is left."""
        entries = self._load()
        if entry is None and os.fspath(path) not in entries:
            return
        entries.pop(os.fspath(path), None)
        if entry is not None:
            entries[os.fspath(path)] = entry
        if not entries:
            self.path.unlink(missing_ok=True)
            return
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_atomically(self.path, msgspec.json.encode(entries), mode=0o600)

    def _load(self) -> dict[str, JournalEntry]:
        try:
            return msgspec.json.decode(read_file(self.path, _MOST_BYTES), type=dict[str, JournalEntry])
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise SourceError(error.strerror or str(error), path=self.path) from error
        except msgspec.MsgspecError as error:
            raise FormatError(f"not what turnlog writes: {error}", path=self.path) from error


class JournalEntry(msgspec.Struct, kw_only=True):
    """What was done to one file."""

    after: str
    """SHA-256 of the file after the change."""
    undo: list[Edit] = []
    """In that file."""
    made: list[list[str]] = []
    """Places in the settings that we added."""
    is_new: bool = False
    """We created the file."""
    folders: list[str] = []
    """Folders that we created, outermost first."""

    @classmethod
    def of(cls, after: bytes, edits: list[Edit], made: list[list[str]], *, is_new: bool) -> JournalEntry:
        """The entry for a file with these bytes after these edits."""
        return cls(after=_checksum(after), undo=reverse(edits), made=made, is_new=is_new)

    def fits(self, data: bytes) -> bool:
        """Whether the file is unchanged since then."""
        return _checksum(data) == self.after

    def undone(self, text: str) -> str:
        """The file as it was before."""
        return apply(text, self.undo)


def _checksum(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def lines_of(text: str) -> list[str]:
    """The lines of a text with their ends. Only a line feed ends one, as in TOML."""
    return [line for line in re.split(r"(?<=\n)", text) if line]


def missing_folders(folder: Path) -> list[str]:
    """The folder and its parents, as far as they do not exist yet, outermost first."""
    return [os.fspath(each) for each in reversed([folder, *folder.parents]) if not each.exists()]


def remove_folders(folders: list[str]) -> None:
    """Remove empty folders, innermost first."""
    for folder in reversed(folders):
        with contextlib.suppress(OSError):
            Path(folder).rmdir()


@contextmanager
def naming_file(path: Path) -> Generator[None]:
    """Add the path to a FormatError of the body."""
    try:
        yield
    except FormatError as error:
        error.path = path
        raise


def settings_path(home: paths.Folders, file: str, project: Path | None, project_file: str | None) -> Path:
    """The settings file of the user, or of a project's folder; of a link its target.

    Raises SourceError for a link that leads nowhere, and for a project where the agent reads no settings in projects.
    """
    if project is None:
        place = paths.folders(home)[0] / file
    elif project_file is not None:
        place = project.absolute() / project_file
    else:
        raise SourceError("the agent reads no such settings in a project", path=project)
    try:
        found = place.resolve()
    except (OSError, RuntimeError) as error:
        raise SourceError(f"the link leads nowhere: {error}", path=place) from error
    # To follow it would make a file that its owner has removed, or has never made.
    for each in (place, *place.parents):
        if each.is_symlink() and not each.exists():
            raise SourceError(f"the link leads nowhere: there is no {each.readlink()}", path=each)
    return found


def read_settings(path: Path) -> bytes | None:
    """The bytes of a settings file; None if it does not exist. Raises SourceError if it cannot be read."""
    try:
        return read_file(path, _MOST_BYTES)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise SourceError(error.strerror or str(error), path=path) from error


def text_before(path: Path, data: bytes | None, known: JournalEntry | None, without: WithoutOurs) -> str:
    """The settings as they were before our change; "" for a missing file.

    Args:
        path: The file.
        data: Its bytes.
        known: What was done to it; None if that is unknown.
        without: Cuts what is ours out of a file that somebody has changed since, given the text and `known.made`.
    """
    if data is None:
        return ""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise SourceError("not UTF-8", path=path, offset=error.start) from error
    if known is not None and known.fits(data):
        return known.undone(text)
    return without(text, known.made if known is not None else None)
