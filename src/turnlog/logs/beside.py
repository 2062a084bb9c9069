"""Which source a file is, and what lies beside a log for the same session."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from turnlog.agents import agents, detect, find_sources
from turnlog.agents.base import Source, SourceKind
from turnlog.errors import FormatError, SourceError
from turnlog.logs.rows import check_names_one, find_in_file

_TOLD_ALONE = frozenset({SourceKind.SESSION, SourceKind.SUBAGENT, SourceKind.STREAM})
"""Kinds of files that are a session's history by themselves."""

_MOST_LEVELS = 8
"""How far above a log its agent's home may be."""

_MOST_FOLDERS = 256
"""Folders beside a log that are looked into: more than any agent makes for one session."""

_HEAD_SIZE = 1 << 16
"""Bytes at the beginning of a file that tell which session it belongs to."""


def source_of(path: Path) -> Source:
    """The session that a file is the log of; raise `FormatError` where it is none."""
    named = find_in_file(path)
    if named is not None:
        return named
    if not path.is_file():
        # Opening it says why, in the system's words.
        read_file(path)
    found = detect(path)
    check_names_one(path, found)
    source = found.source or _source_by_place(path)
    if source is None or source.kind not in _TOLD_ALONE:
        raise FormatError(f"not the log of a session: {found.reason or 'a file beside one'}", path=path)
    return source


def _source_by_place(path: Path) -> Source | None:
    """The file as a source of an agent under whose home it lies, whatever stands in it."""
    absolute = path.absolute()
    homes = list(absolute.parents)[:_MOST_LEVELS]
    sources = (source for _, source in find_sources(agents(), homes))
    return next((source for source in sources if source.path == os.fspath(absolute)), None)


def files_beside(log: Path, external_id: str) -> Iterator[Path]:
    """Files that may belong to the session of a log: in a folder called as either, and those that name the session.

    Symbolic links are not followed.
    """
    for named in dict.fromkeys((log.stem, Path(external_id).name)):
        top = log.parent / named
        if named not in ("", "..") and not top.is_symlink():
            yield from _files_below(top)
    for file in _plain_files(log.parent, (entry.name for entry in log.parent.iterdir())):
        if file != log and (file.name.startswith(f"{log.stem}.") or _names(file, external_id)):
            yield file


def _files_below(top: Path) -> Iterator[Path]:
    for number, (folder, _, names) in enumerate(os.walk(top)):
        if number >= _MOST_FOLDERS:
            break
        yield from _plain_files(Path(folder), names)


def _plain_files(folder: Path, names: Iterable[str]) -> list[Path]:
    return [path for path in sorted(folder / name for name in names) if path.is_file() and not path.is_symlink()]


def _names(file: Path, external_id: str) -> bool:
    """Whether the beginning of a file names a session: where subagents lie beside sessions, that is how they tell."""
    if not external_id:
        return False
    try:
        with file.open("rb") as opened:
            return external_id.encode() in opened.read(_HEAD_SIZE)
    except OSError:
        return False


def read_file(path: Path) -> bytes:
    """All of a file; raise `SourceError` when that is not to be had."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise SourceError(error.strerror or str(error), path=path) from error


def is_empty(path: Path) -> bool:
    """Whether a file is there and has nothing in it."""
    try:
        return path.stat().st_size == 0
    except OSError:
        return False
