"""The lines that sessions wrote into a file, and when, as comparable text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import PurePath
from typing import NamedTuple

from turnlog.commits.history import History
from turnlog.commits.repository import Commit, Repository
from turnlog.formats.edits import edit_diff
from turnlog.model import Message, Session, ToolCallPart
from turnlog.store.values import FileTouch
from turnlog.store.worktrees import worktree_in

_LEAST_CHARACTERS = 6
"""Letters and digits of a line that says something; braces, `else:` and empty lines are written by everybody."""

_MOST_TOUCHES = 2_000
"""Edits of one file that are compared, the newest first."""


class WrittenLines(NamedTuple):
    """What one call wrote into a file."""

    session_id: str
    message_id: str
    position: int
    at: datetime
    """When the call was made."""
    lines: frozenset[str]
    """As `comparable` makes them."""


def comparable(line: str) -> str | None:
    """A line without its indentation and with single spaces; None if it says too little to know it again."""
    text = " ".join(line.split())
    return text if sum(character.isalnum() for character in text) >= _LEAST_CHARACTERS else None


def comparable_lines(lines: Iterable[str]) -> frozenset[str]:
    """The distinct lines that can be known again."""
    return frozenset(text for line in lines if (text := comparable(line)) is not None)


class FileEdits:
    """Edits of the files of a clone, by all sessions."""

    def __init__(self, store: History, repository: Repository) -> None:
        """Look in this store for edits of files in this clone."""
        self._store = store
        self._repository = repository
        self._sessions: dict[str, Session] = {}
        self._changes: dict[tuple[str, int, str], _Change | None] = {}

    def touches(self, path: str, until: datetime) -> Iterator[FileTouch]:
        """The calls that changed a file before a time, newest first. Those without a time are left out."""
        history = self._store.file_history(path, changed=True, limit=_MOST_TOUCHES)
        for touch in history.touches.items:
            at = touch.call.started_at or touch.call.completed_at
            if at is not None and at <= until and self._is_of_clone(touch, path):
                yield touch

    def written(self, touch: FileTouch, path: str, commit: Commit | None) -> WrittenLines | None:
        """What a call wrote into a file; None if its log does not say it, or says nothing new.

        Where the log has only the whole new file, the lines that the file had before are not counted: those that the
        last commit before the call has, seen from `commit` (None: from the branch that is checked out).
        """
        at = touch.call.started_at or touch.call.completed_at
        change = self._change(touch, path)
        if change is None or at is None:
            return None
        lines = comparable_lines(change.added) - comparable_lines(change.removed)
        if lines and change.is_whole:
            lines -= comparable_lines(self._repository.file_before("HEAD" if commit is None else commit.hash, path, at))
        call = touch.call
        return WrittenLines(call.session_id, call.message_id, call.position, at, lines) if lines else None

    def _change(self, touch: FileTouch, path: str) -> _Change | None:
        key = touch.call.message_id, touch.part, path
        if key not in self._changes:
            message = self._store.message(key[0], session_id=touch.call.session_id, structured=True)
            call = _call(message, touch.part)
            diff = None if call is None else edit_diff(call, call.results)
            self._changes[key] = None if diff is None else _parse(diff, path)
        return self._changes[key]

    def _is_of_clone(self, touch: FileTouch, path: str) -> bool:
        """Whether a file that ends in the same path is in this clone, in a worktree of it, or was."""
        root = touch.path.replace("\\", "/").removesuffix(path).rstrip("/")
        if root in self._repository.roots:
            return True
        worktree = worktree_in(root)
        if worktree is not None:
            return worktree.repository in self._repository.roots
        return not self._is_below_clone(root) and self._is_session_of_clone(touch.call.session_id, root)

    def _is_below_clone(self, root: str) -> bool:
        """Whether it is a folder of the clone: then the file is another one, whose path ends in the same way."""
        return any(root.startswith(f"{each}/") for each in self._repository.roots)

    def _is_session_of_clone(self, session_id: str, root: str) -> bool:
        """Whether a session worked on this repository elsewhere: in a worktree that is gone, or in another clone.

        A clone of another name is known only by a commit from which the session started.
        """
        if session_id not in self._sessions:
            self._sessions[session_id] = self._store.session(session_id)
        session = self._sessions[session_id]
        folder = PurePath(session.cwd or "/")
        if PurePath(root) not in (folder, *folder.parents):
            return False
        names = {folder.name, PurePath(session.project.path).name if session.project is not None else folder.name}
        if names & self._repository.names:
            return True
        return session.git_commit is not None and self._repository.has(session.git_commit) is not None


def _call(message: Message, part: int) -> ToolCallPart | None:
    found = message.parts[part] if part < len(message.parts) else None
    return found if isinstance(found, ToolCallPart) else None


class _Change(NamedTuple):
    added: list[str]
    removed: list[str]
    is_whole: bool
    """Whether the log has the whole file instead of what changed in it."""


_FILE_HEADER = re.compile(r"(?:\+\+\+ (?:b/)?|\*\*\* (?:Add|Update) File: |\*\*\* Move to: )(?P<path>.+)")


def _parse(diff: str, path: str) -> _Change:
    """The lines of a diff that are of one file: a patch may change several."""
    added: list[str] = []
    removed: list[str] = []
    is_whole, is_here = True, True
    for line in diff.split("\n"):
        header = _FILE_HEADER.match(line)
        if header is not None:
            is_here = _ends_alike(header["path"].strip(), path)
        elif line.startswith(("--- ", "*** ")):
            continue
        elif line.startswith("@@"):
            is_whole = False
        elif is_here and line.startswith("+"):
            added.append(line[1:])
        elif is_here and line.startswith("-"):
            removed.append(line[1:])
            is_whole = False
    return _Change(added, removed, is_whole)


def _ends_alike(named: str, path: str) -> bool:
    """Whether a path in a patch, absolute or below any folder of the clone, can be the file."""
    named = named.replace("\\", "/").removeprefix("./")
    return named == path or named.endswith(f"/{path}") or path.endswith(f"/{named}")
