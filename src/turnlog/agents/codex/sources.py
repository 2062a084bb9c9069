"""Codex's files: where they are, whether a file is one of them, and what its sidecars say.

Rollouts are in folders by day, archived ones in their own folder; some are compressed. An index of thread names and a
list of imported sessions are next to them. Folders are listed, nothing is opened, and no symbolic link is followed, so
nothing outside the root is ever named. Of a rollout that exists compressed and plain only the plain one is read, to
which Codex still appends.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from turnlog.agents.base import Source, SourceKind
from turnlog.agents.codex import BRANCH, FOLDERS, NAME
from turnlog.agents.files import SUFFIX, entries, is_compressed, is_file, is_folder, unread_entries

INDEX = "session_index.jsonl"

PROMPTS = "history.jsonl"

IMPORTS = "external_agent_session_imports.json"
"""Which threads Codex made from sessions of other agents. It is written anew each time."""

SIDECARS = (INDEX, PROMPTS, IMPORTS)


# -- finding files


_ROLLOUT = re.compile(
    rf"rollout-(?:\d{{4}}-\d\d-\d\dT\d\d-\d\d-\d\d-)?(?P<id>[^/]+?)\.jsonl(?:{re.escape(SUFFIX)})?", re.DOTALL
)

_MOST_NESTED = 8
"""Levels of folders below `sessions` that are searched; a day is three levels deep."""


def find_sources(root: Path) -> Iterator[Source]:
    """Every file of Codex below its home `root`, in the order of their names."""
    for folder in FOLDERS:
        yield from _rollouts(os.fspath(root / folder), root, _MOST_NESTED)
    for entry in entries(os.fspath(root)):
        if entry.name in SIDECARS and is_file(entry):
            yield _sidecar(entry.path, root)


def _rollouts(folder: str, root: Path, depth: int) -> Iterator[Source]:
    for entry in unread_entries(folder):
        if is_file(entry):
            found = rollout_source(entry.path, root)
            if found and not (is_compressed(entry.path) and os.path.lexists(entry.path.removesuffix(SUFFIX))):
                yield found
        elif depth and is_folder(entry):
            yield from _rollouts(entry.path, root, depth - 1)


def source_of(path: Path) -> Source | None:
    """What the file at `path` is by its place and name; None if it is not Codex's. The file is not opened."""
    absolute = path.absolute()
    if absolute.name in SIDECARS:
        return _sidecar(os.fspath(absolute), absolute.parent)
    root = next((folder.parent for folder in absolute.parents if folder.name in FOLDERS), absolute.parent)
    return rollout_source(os.fspath(absolute), root)


def rollout_source(path: str, root: Path) -> Source | None:
    """The source of a rollout, by its name; None for any other file."""
    match = _ROLLOUT.fullmatch(path.rpartition(os.sep)[2])
    if match is None:
        return None
    return Source(
        agent=NAME,
        path=path,
        root=os.fspath(root),
        session_id=session_id(match["id"]),
        appendable=not is_compressed(path),
    )


def _sidecar(path: str, root: Path) -> Source:
    appendable = not path.endswith(IMPORTS)
    return Source(agent=NAME, path=path, root=os.fspath(root), kind=SourceKind.SIDECAR, appendable=appendable)


def session_id(thread: str) -> str:
    """The id of a thread's session. `/` separates nothing in it."""
    return f"{NAME}:{thread.replace('/', '_')}"


def thread_of(external_id: str) -> str:
    """The thread of a session, which may be a branch of it."""
    return re.sub(f"{BRANCH}$", "", external_id)


def renamed(source: Source, thread: str | None) -> Source:
    """The source with another thread than its name says; None: with no session."""
    return msgspec.structs.replace(source, session_id=None if thread is None else session_id(thread))
