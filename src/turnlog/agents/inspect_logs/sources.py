"""The samples of logs as sources: `<log>#<sample>`. A sample is one line, with what the log says of all of them."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Raw

from turnlog.agents.base import Detection, RowUpdate, Source, SourceKind, Version
from turnlog.agents.databases import READABLE, session_place
from turnlog.agents.decoding import text_of
from turnlog.agents.files import entries, holds_folder, is_file, is_folder
from turnlog.agents.inspect_logs import NAME
from turnlog.agents.inspect_logs.log_files import (
    EvalLog,
    Sample,
    header_fields,
    is_log,
    is_zip,
    read_log,
    read_sample,
    writer_version,
)
from turnlog.agents.row_files import line_of, restore_file, rows_in, update_of
from turnlog.agents.safe_names import file_name, session_name
from turnlog.errors import SourceError

SAMPLE: Final = "sample"
"""The table of the line of a sample."""

JSON: Final = "json"
HEADER: Final = "header"
LOST: Final = "lost"
"""The columns with the sample, with what its log says of all of them, and with what is missing in the sample."""

_ENDINGS: Final = (".eval", ".json")
_UNREADABLE: Final[Version] = (0, 0, 0, 1)


def session_id(log: EvalLog, sample: Sample, path: Path) -> str:
    """The id of a session: that of the evaluation, and the sample's own with its epoch."""
    _, spec = header_fields(log.header)
    run = text_of(spec.get("eval_id")) or text_of(spec.get("run_id"))
    # A log without either is named by its file.
    return f"{NAME}:{session_name(f'{run or path.stem}.{sample.name}')}"


def find_sources(root: Path, depth: int) -> Iterator[Source]:
    """Every sample of the logs in a folder and, so deep, in the folders there."""
    _log.cache_clear()
    for folder in _folders(root, depth):
        for entry in filter(is_file, entries(os.fspath(folder))):
            yield from sources_at(Path(entry.path), root)


def _folders(folder: Path, depth: int) -> Iterator[Path]:
    yield folder
    for entry in entries(os.fspath(folder)) if depth else ():
        if not is_file(entry) and holds_folder(folder, entry.name) and is_folder(entry):
            yield from _folders(Path(entry.path), depth - 1)


def sources_at(path: Path, root: Path) -> Iterator[Source]:
    """See `RowAgent.sources_at`."""
    if path.suffix not in _ENDINGS or not path.is_file():
        return
    version = READABLE
    try:
        log = _log(path, _stamp(path))
        if log is None:
            return
        yield from _sources_of(log, path, root)
        version = READABLE if log.problem is None else _UNREADABLE
    except (OSError, SourceError):
        version = _UNREADABLE
    yield Source(
        agent=NAME,
        path=os.fspath(path),
        root=os.fspath(root),
        kind=SourceKind.SIDECAR,
        appendable=False,
        version=version,
    )


def is_damaged(source: Source) -> bool:
    """Whether a source that `find_sources` found is a log that cannot be read, or not all of it."""
    return source.version == _UNREADABLE


def _sources_of(log: EvalLog, path: Path, root: Path) -> Iterator[Source]:
    for sample in log.samples:
        yield Source(
            agent=NAME,
            path=f"{path}#{session_name(sample.name)}",
            root=os.fspath(root),
            session_id=session_id(log, sample, path),
            version=_version(log, sample),
        )


def _version(log: EvalLog, sample: Sample) -> Version:
    return sample.size, 0, 0, sample.checksum ^ zlib.crc32(log.header)


def _stamp(path: Path) -> tuple[int, int, int]:
    """What changes with a file."""
    found = path.stat()
    return found.st_size, found.st_mtime_ns, found.st_ino


@lru_cache(maxsize=1)
def _log(path: Path, stamp: tuple[int, int, int]) -> EvalLog | None:
    """A log. It may be large, so only one is kept, until the next look around."""
    del stamp
    return read_log(path)


def _found(path: Path, name: str) -> tuple[EvalLog, Sample] | None:
    log = _log(path, _stamp(path))
    samples = () if log is None else log.samples
    sample = next((each for each in samples if session_name(each.name) == name), None)
    return None if log is None or sample is None else (log, sample)


def version_of(source: Source) -> Version:
    """See `RowAgent.row_version`."""
    place = session_place(source.path)
    if place is None:
        return READABLE
    found = _found(*place)
    if found is None:
        raise FileNotFoundError(source.path)
    return _version(*found)


def read_rows(source: Source, log: Iterable[bytes]) -> RowUpdate:
    """See `RowAgent.read_rows`."""
    place = session_place(source.path)
    try:
        if place is None:
            whole = _log(Path(source.path), _stamp(Path(source.path)))
            if whole is not None and whole.problem is not None:
                raise OSError(whole.problem)
            return RowUpdate()
        found = _found(*place)
        if found is None:
            return RowUpdate()
        whole = read_sample(place[0], *found)
    except SourceError as error:
        raise OSError(error.reason) from error
    columns = {JSON: whole.json.decode(errors="replace"), HEADER: Raw(found[0].header)}
    lost = {LOST: Raw(msgspec.json.encode(whole.lost))} if whole.lost else {}
    return update_of([line_of(SAMPLE, columns | lost)], log)


def restore_rows(source: Source, log: Iterable[bytes], to: Path) -> list[Path]:
    """Write a sample as a log of its own, which has only this one."""
    place = session_place(source.path)
    if place is None:
        return []
    written: list[Path] = []
    for _, row in rows_in(log):
        header = msgspec.json.decode(str(row.get(HEADER) or "{}"), type=dict[str, Raw])
        whole = msgspec.json.encode(header)[:-1] + (b"," if header else b"") + b'"samples":['
        folder = to / os.path.relpath(place[0], source.root)
        written.append(
            restore_file(folder / f"{file_name(place[1])}.json", whole + str(row.get(JSON)).encode() + b"]}", to)
        )
    return written


# -- what a file is


def detect_file(path: Path, head: bytes) -> Detection:
    """Judge a file by its beginning; a zip is opened."""
    if not is_zip(head) and not is_log(head):
        return Detection(reason="neither a zip nor an object with an evaluation")
    absolute = path.absolute()
    try:
        log = _log(absolute, _stamp(absolute))
    except (OSError, SourceError) as error:
        # No other program gives a zip this ending: the reason is of use, and not only one of many.
        is_named = path.suffix == _ENDINGS[0]
        reason = error.reason if isinstance(error, SourceError) else str(error)
        return Detection(
            agent=NAME if is_named else None, version="1" if is_named else None, reason=reason, is_damaged=True
        )
    if log is None:
        return Detection(reason="a zip without an evaluation")
    # With the log itself where samples are missing: it says why.
    found = tuple(
        each for each in sources_at(absolute, absolute.parent) if each.session_id is not None or is_damaged(each)
    )
    sessions = [each for each in found if each.session_id is not None]
    return Detection(
        agent=NAME,
        version=writer_version(log.header),
        source=found[0] if len(found) == 1 else None,
        sources=found if sessions else (),
        reason=None if sessions else log.problem or "no sample in it",
    )
