"""Where the conversations of OpenHands are, and their files as lines of a log.

A conversation is a folder with its state and a file for each event. The state stands for it as a source of rows. Files
of events never change; the state is written anew after each call of the model.

Turns and parents follow from the order of events, so a log has them in the order of their numbers, and each once. Where
an event comes late, because its file could not be read or was still being written, the log is written anew.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from turnlog.agents.base import Detection, RowUpdate, Source, Version
from turnlog.agents.decoding import object_of, text_of
from turnlog.agents.file_rows import FileRow, changed_files, contents, file_row, version_of_files
from turnlog.agents.files import entries, folders, holds_folder, holds_log, is_file
from turnlog.agents.jsonl import UNREADABLE
from turnlog.agents.openhands import CONVERSATIONS, NAME, STATE

EVENTS = "events"

_EVENT = re.compile(rf"{EVENTS}/event-(?P<number>\d{{1,12}})-.*\.json")

_MARKS = (b'"persistence_dir"', b'"execution_status"', b'"max_iterations"')
"""Fields that a state always has."""

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(FileRow).decode


def session_id(external: str) -> str:
    """The id of a session in the model. A `/` of the external id, which would separate parts of a path, becomes `_`."""
    return f"{NAME}:{external.replace('/', '_')}"


def find_sources(root: Path) -> Iterator[Source]:
    """Every conversation below a home, in the order of their names."""
    for folder in folders(os.fspath(root / CONVERSATIONS)):
        source = _source(Path(folder.path), root)
        if source is not None:
            yield source


def sources_at(path: Path, root: Path) -> Iterator[Source]:
    """The conversation to whose folder a changed file belongs."""
    above = root / CONVERSATIONS
    if path.is_relative_to(above) and path != above:
        source = _source(above / path.relative_to(above).parts[0], root)
        if source is not None:
            yield source


def _source(folder: Path, root: Path) -> Source | None:
    # Without its state a conversation still has its events: only their tokens are unknown then. No link is followed.
    if not holds_log(folder, STATE) and (os.path.lexists(folder / STATE) or not holds_folder(folder, EVENTS)):
        return None
    return Source(
        agent=NAME,
        path=os.fspath(folder / STATE),
        root=os.fspath(root),
        session_id=session_id(folder.name),
        version=version_of(folder),
    )


def version_of(folder: Path) -> Version:
    """The version of the files of a conversation."""
    return version_of_files(folder, _names(folder))


def event_number(path: str) -> int | None:
    """The number of the event in a file of a conversation; None for any other file."""
    found = _EVENT.fullmatch(path)
    return int(found["number"]) if found else None


def _names(folder: Path) -> Iterator[str]:
    """Events first, in their order: the tokens in the state belong to them."""
    for name in (EVENTS, ""):
        found = [entry.name for entry in entries(os.fspath(folder / name)) if is_file(entry)]
        paths = (f"{name}/{each}" if name else each for each in found if each.endswith(".json"))
        yield from sorted(paths, key=_place)


def _place(path: str) -> tuple[bool, int, str]:
    number = event_number(path)
    return number is None, number or 0, path


def new_lines(source: Source, log: Iterable[bytes]) -> RowUpdate:
    """The files that a log does not have yet, or in another version. Raises OSError."""
    folder = Path(source.path).parent
    files: dict[str, bytes] = {}
    modified: dict[str, float] = {}
    for name in _names(folder):
        try:
            files[name] = (folder / name).read_bytes()
            modified[name] = (folder / name).stat().st_mtime
        except FileNotFoundError:
            continue
    known = rows_in(log)
    new = list(changed_files(files, known))
    for row in new:
        if row.path.startswith(EVENTS):
            row.modified = modified.get(row.path)
    if _goes_on(known, new):
        return RowUpdate(lines=[_encode(row) + b"\n" for row in new])
    return RowUpdate(lines=[_encode(row) + b"\n" for row in _in_order([*known, *new])], anew=True)


def _goes_on(known: Iterable[FileRow], new: Iterable[FileRow]) -> bool:
    """Whether every new event comes after those that a log has."""
    last = max((_place(row.path) for row in known if _has_event(row)), default=None)
    return last is None or all(_place(row.path) > last for row in new if _has_event(row))


def _has_event(row: FileRow) -> bool:
    return not row.is_gone and event_number(row.path) is not None


def _in_order(rows: list[FileRow]) -> Iterator[FileRow]:
    """Each event as it was last, in the order of their numbers, then all versions of the other files."""
    events = [row for row in rows if _has_event(row)]
    newest = {row.path: row.modified for row in events}
    for path, data in sorted(contents(events).items(), key=lambda each: _place(each[0])):
        yield file_row(path, data, modified=newest[path])
    there = contents(rows)
    # An event that is back has no longer gone.
    yield from (row for row in rows if not _has_event(row) and not (row.is_gone and row.path in there))


def rows_in(log: Iterable[bytes]) -> list[FileRow]:
    """The rows of a log."""
    found: list[FileRow] = []
    for line in b"".join(log).split(b"\n"):
        try:
            if line:
                found.append(_decode(line))
        except UNREADABLE:
            continue
    return found


def detect_state(path: Path, head: bytes) -> Detection:
    """Judge a file by its beginning `head`: whether it is the state of a conversation."""
    if not all(mark in head for mark in _MARKS):
        return Detection(reason="no state of a conversation")
    absolute = path.absolute()
    try:
        external = text_of(object_of(msgspec.json.decode(head)).get("id"))
    except UNREADABLE:
        external = None
    named = absolute.parent.name if absolute.parents[1].name == CONVERSATIONS else (external or path.stem)
    root = absolute.parents[2] if absolute.parents[1].name == CONVERSATIONS else absolute.parent
    source = Source(
        agent=NAME, path=os.fspath(absolute), root=os.fspath(root), session_id=session_id(named.replace("-", ""))
    )
    # No file names the version of the program.
    return Detection(agent=NAME, version="1", source=source, sources=(source,))
