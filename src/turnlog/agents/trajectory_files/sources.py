"""Where trajectories are, and their files as a line of a log: a trajectory with the images and sounds that it names."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any, Final, cast

import msgspec

from turnlog.agents.base import Detection, RowUpdate, Source, Version
from turnlog.agents.databases import Row
from turnlog.agents.decoding import clean_json, object_of
from turnlog.agents.file_rows import version_of_files
from turnlog.agents.files import entries, holds_folder, is_file, is_folder, read_regular_file
from turnlog.agents.jsonl import UNREADABLE
from turnlog.agents.row_files import (
    FILE,
    RowLine,
    files_in,
    json_column,
    line_of,
    restore_file,
    row_of,
    rows_in,
    update_of,
)
from turnlog.agents.trajectory_files import NAME

TRAJECTORY: Final = "trajectory"
"""The table of the only line of a log."""

JSON: Final = "json"
"""The column with the trajectory."""

END: Final = "end"
"""The column with the line breaks behind it."""

NEWEST: Final = "1.8"
"""The version of a trajectory that names none, as in harbor's own models."""

LARGEST_FILE: Final = 32 << 20
"""Bytes of an image or a sound; a larger one is left out."""

_HEAD: Final = 1 << 16
_VERSION = re.compile(rb'"schema_version"\s*:\s*"ATIF-v(?P<version>\d+\.\d+)"')
_STEP_FIELDS = (b'"step_id"', b'"source"', b'"message"')
_CONTINUED = re.compile(r"\.(?P<part>cont-\d+)$")
"""How harbor names the file of a trajectory that continues another one."""

_UNSAFE = re.compile(r"[/\x00-\x1f\x7f-\x9f]")
_LONGEST_ID = 200


def session_id(external: str) -> str:
    """The id of a session in the model. What would separate parts of a path becomes `_`; a long id is cut."""
    if len(external) > _LONGEST_ID:
        external = f"{external[:_LONGEST_ID]}~{hashlib.sha256(external.encode(errors='replace')).hexdigest()[:12]}"
    return f"{NAME}:{_UNSAFE.sub('_', external)}"


def external_id(trajectory: str | None, run: str | None, path: str) -> str:
    """What names a trajectory: its own id, or that of its run, which files that continue one another share."""
    if trajectory:
        return trajectory
    stem = PurePosixPath(path.replace("\\", "/")).stem
    part = _CONTINUED.search(stem)
    if run:
        return f"{run}.{part['part']}" if part else run
    # Without any id the place has to name it: nothing else is the same when the file has grown.
    return f"{stem}-{hashlib.sha256(path.encode(errors='replace')).hexdigest()[:12]}"


# -- finding


def find_sources(root: Path, depth: int) -> Iterator[Source]:
    """Every trajectory in a folder and, so deep, in the folders there, in the order of their names."""
    for entry in entries(os.fspath(root)):
        if is_file(entry):
            source = source_at(Path(entry.path), root)
            if source is not None:
                yield source
        elif depth and holds_folder(root, entry.name) and is_folder(entry):
            for source in find_sources(Path(entry.path), depth - 1):
                yield msgspec.structs.replace(source, root=os.fspath(root))


def source_at(path: Path, root: Path) -> Source | None:
    """The trajectory in a file, with its session; None if it is none.

    A session that was forgotten has to be known before its file is archived again.
    """
    if path.suffix != ".json" or _version_in(read_regular_file(path, _HEAD)) is None:
        return None
    return named(Source(agent=NAME, path=os.fspath(path), root=os.fspath(root), version=version_of(path)))


def version_of(path: Path) -> Version:
    """The version of a file. Images beside it never change."""
    path.stat()
    return version_of_files(path.parent, [path.name])


def _version_in(head: bytes) -> tuple[str, bool] | None:
    """The version of the format, and whether nothing else can be meant; None if it is no trajectory."""
    if not head.lstrip(b" \t\r\n\xef\xbb\xbf").startswith(b"{"):
        return None
    found = _VERSION.search(head)
    if found is not None:
        return found["version"].decode(), True
    return (NEWEST, False) if all(field in head for field in _STEP_FIELDS) else None


def detect_file(path: Path, head: bytes) -> Detection:
    """Judge a file by its beginning `head`."""
    found = _version_in(head)
    if found is None:
        return Detection(reason="no object with the version of a trajectory, or with steps")
    version, is_certain = found
    absolute = path.absolute()
    source = named(Source(agent=NAME, path=os.fspath(absolute), root=os.fspath(absolute.parent)))
    return Detection(agent=NAME, version=version, is_certain=is_certain, source=source, sources=(source,))


class _Named(msgspec.Struct):
    session_id: str | None = None
    trajectory_id: str | None = None


def named(source: Source) -> Source:
    """The source with the id of its session, for which the whole file is read; of a damaged one the file names it."""
    try:
        found = msgspec.json.decode(Path(source.path).read_bytes(), type=_Named)
    except (OSError, *UNREADABLE):
        found = _Named()
    return msgspec.structs.replace(
        source, session_id=session_id(external_id(found.trajectory_id, found.session_id, source.path))
    )


# -- the log of a trajectory


def read_rows(source: Source, log: Iterable[bytes]) -> RowUpdate:
    """The trajectory as it is now, with its images and sounds. Raises OSError."""
    path = Path(source.path)
    data = path.read_bytes()
    files = {f"{FILE}{name}": content for name, content in _media(path.parent, data)}
    return update_of([line_of(TRAJECTORY, _columns(data) | files)], log)


def _columns(data: bytes) -> Row:
    """A trajectory as columns. Most programs write it on one line: that is kept without becoming a string of JSON."""
    text = data.rstrip(b"\r\n")
    document = json_column(text)
    if document is not None:
        return {JSON: document, END: data[len(text) :].decode() or None}
    try:
        return {JSON: data.decode()}
    except UnicodeDecodeError:
        return {JSON: data}


def _media(folder: Path, data: bytes) -> Iterator[tuple[str, bytes]]:
    """The files that a trajectory names and that are in its own folder or below. Links are not followed."""
    if b'"media_type"' not in data:
        return
    try:
        names = set(_typed_paths(_documents.decode(data)))
    except UNREADABLE:
        try:
            names = set(_media_paths(msgspec.json.decode(data)))
        except UNREADABLE:
            return
    for name in sorted(names):
        parts = PurePosixPath(name).parts
        if not parts or name.startswith("/") or ".." in parts or "\\" in name or "\0" in name:
            continue
        above = [folder.joinpath(*parts[:number]) for number in range(1, len(parts))]
        if any(each.is_symlink() for each in above):
            continue
        content = read_regular_file(folder.joinpath(*parts), LARGEST_FILE + 1)
        if content and len(content) <= LARGEST_FILE:
            yield name, content


class _Media(msgspec.Struct, gc=False):
    path: str | None = None


class _Content(msgspec.Struct, gc=False):
    type: str | None = None
    source: _Media | None = None


class _Result(msgspec.Struct, gc=False):
    content: list[_Content] | str | None = None


class _Observation(msgspec.Struct, gc=False):
    results: list[_Result] | None = None


class _Step(msgspec.Struct, gc=False):
    message: list[_Content] | str | None = None
    observation: _Observation | None = None


class _Document(msgspec.Struct, gc=False):
    """A trajectory as the format has it, without what names no files. Another one is looked at value by value."""

    steps: list[_Step] = []
    subagent_trajectories: list[_Document] | None = None


_documents = msgspec.json.Decoder(_Document)


def _typed_paths(document: _Document) -> Iterator[str]:
    for step in document.steps:
        results = step.observation.results if step.observation is not None else None
        for content in (step.message, *[result.content for result in results or ()]):
            for part in content if isinstance(content, list) else ():
                if part.type in ("image", "audio") and part.source is not None and part.source.path is not None:
                    yield part.source.path
    for inner in document.subagent_trajectories or ():
        yield from _typed_paths(inner)


def _media_paths(document: object) -> Iterator[str]:
    left = [document]
    while left:
        value = left.pop()
        if isinstance(value, list):
            left += cast("list[object]", value)
            continue
        fields = object_of(value)
        path = object_of(fields.get("source")).get("path")
        if fields.get("type") in ("image", "audio") and isinstance(path, str):
            yield path
        left += fields.values()


def read_line(line: RowLine) -> tuple[bytes, dict[str, bytes]]:
    """The bytes of the trajectory in a line, and the files that came with it."""
    raw = line.json.get(JSON)
    if raw is None:
        row = row_of(line)
        return document_in(row), files_in(row)
    # Without a copy as text, which takes as long as decoding it.
    return clean_json(bytes(raw)), files_in(row_of(line, without=JSON))


def document_in(row: dict[str, Any]) -> bytes:
    """The bytes of the trajectory in its row."""
    value, end = row.get(JSON), row.get(END)
    if isinstance(value, bytes):
        return value
    return f"{value}{end or ''}".encode(errors="replace") if isinstance(value, str) else b""


def restore_rows(source: Source, log: Iterable[bytes], to: Path) -> list[Path]:
    """Write a trajectory as it was, and its images and sounds beside it."""
    target = to / os.path.relpath(source.path, source.root)
    written: list[Path] = []
    for table, row in rows_in(log):
        if table == TRAJECTORY:
            written.append(restore_file(target, document_in(row), to))
            written += [restore_file(target.parent / name, data, to) for name, data in files_in(row).items()]
    return written
