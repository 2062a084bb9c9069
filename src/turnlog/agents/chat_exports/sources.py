"""The conversations of an export as sources: `<zip or list>#<conversation>`.

A conversation is one line of a log, as the export has it, with the files that it names.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from msgspec import Raw

from turnlog.agents.base import Detection, RowUpdate, Source, SourceKind, Version
from turnlog.agents.chat_exports.export_files import (
    LARGEST_FILE,
    LISTS,
    ExportFiles,
    Listed,
    Service,
    is_list,
    is_zip,
    object_in,
)
from turnlog.agents.databases import READABLE, Row, session_place
from turnlog.agents.decoding import is_utf8
from turnlog.agents.files import entries, holds_folder, is_file
from turnlog.agents.row_files import FILE, files_in, json_column, line_of, restore_file, rows_in, update_of
from turnlog.agents.safe_names import file_name, session_name
from turnlog.errors import SourceError

CONVERSATION: Final = "conversation"
"""The table of the line of a conversation."""

JSON: Final = "json"
"""The column with the conversation."""

_SHOWN_FILES: Final = 3
"""Names of files of a conversation that are left out."""

_ZIP: Final = ".zip"
_UNREADABLE: Final[Version] = (0, 0, 0, 1)
_LATEST: Final = 1 << 33
"""The year 2242 in Unix seconds: a time whose nanoseconds a column still holds."""


def find_sources(service: Service, root: Path) -> Iterator[Source]:
    """Every conversation of the zips and lists in a folder and in the folders there."""
    _contents.cache_clear()
    _opened.cache_clear()
    inner = [each for each in entries(os.fspath(root)) if not is_file(each) and holds_folder(root, each.name)]
    for folder in (os.fspath(root), *(each.path for each in inner)):
        for entry in filter(is_file, entries(folder)):
            if entry.name.endswith(_ZIP) or LISTS.fullmatch(entry.name):
                yield from _sources_of(service, Path(entry.path), root)


def sources_at(service: Service, path: Path, root: Path) -> Iterator[Source]:
    """See `RowAgent.sources_at`."""
    if path.is_file() and (path.suffix == _ZIP or LISTS.fullmatch(path.name)):
        yield from _sources_of(service, path, root)


def _sources_of(service: Service, path: Path, root: Path) -> Iterator[Source]:
    try:
        yield from _conversations(service, path, root)
        is_whole = not _versions(service, path, _stamp(path)).losses
    except (OSError, SourceError):
        is_whole = False
    yield _file_source(service, path, root, READABLE if is_whole else _UNREADABLE)


def _file_source(service: Service, path: Path, root: Path, version: Version) -> Source:
    """The export itself, of which only its damage is read."""
    return Source(
        agent=service.agent,
        path=os.fspath(path),
        root=os.fspath(root),
        kind=SourceKind.SIDECAR,
        appendable=False,
        version=version,
    )


def is_damaged(source: Source) -> bool:
    """Whether a source that `find_sources` found is an export that cannot be read, or not whole."""
    return source.version == _UNREADABLE


def _conversations(service: Service, path: Path, root: Path) -> Iterator[Source]:
    for name, version in _versions(service, path, _stamp(path)).of.items():
        yield Source(
            agent=service.agent,
            path=f"{path}#{name}",
            root=os.fspath(root),
            session_id=f"{service.agent}:{name}",
            version=version,
        )


def _stamp(path: Path) -> tuple[int, int, int]:
    """What changes with a file."""
    found = path.stat()
    return found.st_size, found.st_mtime_ns, found.st_ino


class _Versions(NamedTuple):
    of: Mapping[str, Version]
    losses: tuple[str, ...]


class _Contents(NamedTuple):
    conversations: Mapping[str, Listed]
    losses: tuple[str, ...]
    """What the export has lost."""


@lru_cache(maxsize=64)
def _versions(service: Service, path: Path, stamp: tuple[int, int, int]) -> _Versions:
    """The conversations of an export and their versions: an export of years is not parsed for each of them."""
    found = _contents(service, path, stamp)
    return _Versions({name: _version(each) for name, each in found.conversations.items()}, found.losses)


@lru_cache(maxsize=1)
def _contents(service: Service, path: Path, stamp: tuple[int, int, int]) -> _Contents:
    """The conversations of an export by their names. They may be large, so only one export is kept at a time."""
    del stamp
    with closing(ExportFiles(path)) as export:
        if not any(is_list(service, data[: 1 << 16]) for _, data in export.lists()):
            return _Contents({}, ())
        found, losses = export.conversations(service)
        return _Contents({session_name(identity): each for identity, each in found.items()}, losses)


def _version(listed: Listed) -> Version:
    data = memoryview(listed.json)
    return data.nbytes, round(_seconds(listed.changed) * 1000) * 1_000_000, 0, zlib.crc32(data)


def _seconds(changed: Any) -> float:
    if isinstance(changed, str):
        try:
            changed = datetime.fromisoformat(changed).timestamp()
        except (ValueError, OverflowError):
            return 0
    return float(min(max(changed, 0), _LATEST)) if isinstance(changed, int | float) else 0


def version_of(service: Service, source: Source) -> Version:
    """See `RowAgent.row_version`."""
    place = session_place(source.path)
    if place is None:
        return READABLE
    path, identity = place
    found = _versions(service, path, _stamp(path)).of.get(identity)
    if found is None:
        raise FileNotFoundError(source.path)
    return found


def read_rows(service: Service, source: Source, log: Iterable[bytes]) -> RowUpdate:
    """See `RowAgent.read_rows`."""
    path, identity = session_place(source.path) or (Path(source.path), "")
    try:
        contents = _contents(service, path, _stamp(path))
        if not identity and contents.losses:
            raise SourceError("; ".join(contents.losses), path=path)
        found = contents.conversations.get(identity)
        if found is None:
            return RowUpdate()
        return update_of(list(_lines(service, path, found)), log)
    except SourceError as error:
        raise OSError(error.reason) from error


@lru_cache(maxsize=1)
def _opened(path: Path, stamp: tuple[int, int, int]) -> ExportFiles:
    """An export whose files are read for one conversation after the other: a zip may have 100,000 names to sort."""
    del stamp
    return ExportFiles(path)


def _lines(service: Service, path: Path, found: Listed) -> Iterator[bytes]:
    wanted = set(filter(None, service.files_of(object_in(found.json))))
    files = _opened(path, _stamp(path)).files(wanted) if wanted else ()
    contents, too_large = Row(), list[str]()
    for name, content in files:
        if content:
            contents[f"{FILE}{name}"] = content
        elif content is None:
            too_large.append(name)
    yield line_of(CONVERSATION, {JSON: _column_of(found.json)} | contents, _left_out(too_large))


def _left_out(too_large: Sequence[str]) -> str | None:
    """What the fold reports of files that are not read; nothing if all are."""
    if not too_large:
        return None
    others = f" and {len(too_large) - _SHOWN_FILES:,} others" if len(too_large) > _SHOWN_FILES else ""
    return f"larger than {LARGEST_FILE >> 20} MB, so left out: {', '.join(too_large[:_SHOWN_FILES])}{others}"


def _column_of(item: Raw) -> Raw | str | bytes:
    """A conversation as a column: exactly as it is. It may have a hundred megabytes: no copy of it stays behind."""
    data = bytes(item)
    if json_column(data) is not None:
        return item
    return data.decode() if is_utf8(data) else data


def restore_rows(source: Source, log: Iterable[bytes], to: Path) -> list[Path]:
    """Write a conversation as an export of its own: a list with it, and its files beside it."""
    place = session_place(source.path)
    if place is None:
        return []
    # A list of its own, so that conversations of one export do not get into each other's way.
    folder = to / os.path.relpath(place[0], source.root) / file_name(place[1])
    written: list[Path] = []
    for _, row in rows_in(log):
        value = row.get(JSON)
        item = value if isinstance(value, bytes) else f"{value}".encode()
        written.append(restore_file(folder / "conversations.json", b"[%b]" % item, to))
        for name, content in files_in(row).items():
            written.append(restore_file(folder / file_name(Path(name).name), content, to))
    return written


# -- what a file is


def detect_file(service: Service, path: Path, head: bytes) -> Detection:
    """Judge a file by its beginning; a zip is opened."""
    if not is_zip(head) and not is_list(service, head):
        return Detection(reason="neither a zip nor a list of its conversations")
    absolute = path.absolute()
    try:
        found = tuple(_conversations(service, absolute, absolute.parent))
        losses = _versions(service, absolute, _stamp(absolute)).losses
    except (OSError, SourceError) as error:
        return Detection(reason=error.reason if isinstance(error, SourceError) else str(error), is_damaged=True)
    if not found and is_zip(head):
        return Detection(reason="a zip without its conversations")
    return Detection(
        agent=service.agent,
        version=service.version,
        source=found[0] if len(found) == 1 else None,
        sources=(
            *found,
            *([_file_source(service, absolute, absolute.parent, _UNREADABLE)] if losses and found else ()),
        ),
        reason=None if found else "; ".join(losses) or "no conversation in it",
        is_damaged=bool(losses) and not found,
    )
