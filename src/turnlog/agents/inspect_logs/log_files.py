"""The files of evaluations: an object of JSON with its samples, or a zip with a file for each of them."""

from __future__ import annotations

import re
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
import zstandard
from msgspec import UNSET, Raw, UnsetType

from turnlog.agents.decoding import object_of, text_of, value_of
from turnlog.agents.inspect_logs.pieces import Pieces, Whole, find_pieces, put_together
from turnlog.agents.json_file import recover_items
from turnlog.agents.jsonl import JsonLines
from turnlog.agents.zip_members import refuse_too_large
from turnlog.errors import SourceError

HEADERS: Final = ("header.json", "_journal/start.json", "start.json")
"""Files of a zip with what holds for all samples. The first is there when the evaluation has ended."""

_SAMPLE: Final = re.compile(r"samples/(?P<name>.+_epoch_\d+)\.json")
_MARKS: Final = (b'"version"', b'"status"', b'"eval"', b'"task"')
_LARGEST: Final = 1 << 30
"""Bytes of a file in a zip that are read."""

_MOST_FILES: Final = 200_000
"""Names of a zip that are looked at."""

_ZSTD: Final = 93
"""The compression of newer logs, which `zipfile` reads from Python 3.14 on."""

_LOCAL_HEADER: Final = 30
"""Bytes before the name of a file in a zip."""

_BAD_ZIP: Final = (zipfile.BadZipFile, zlib.error, EOFError, KeyError, ValueError, RuntimeError, NotImplementedError)


class LogRecord(msgspec.Struct, gc=False):
    """An evaluation as JSON. What is not read here goes along with every sample."""

    eval: Raw | UnsetType = UNSET
    samples: list[Raw] | None = None
    version: int | None = None
    status: str | None = None


_LOGS: JsonLines[LogRecord] = JsonLines(
    LogRecord, first_keys=("version", "status"), plausible=lambda record: record.samples is not None
)


class Sample(NamedTuple):
    """A sample in a log."""

    name: str
    """`<id>_epoch_<number>`, the name of its file in a zip."""
    size: int
    checksum: int
    place: str | int | Pieces
    """The name of its file, its number in the list, or the files of its pieces."""


class EvalLog(NamedTuple):
    """What a log says of all its samples, and the samples."""

    header: bytes
    """An object of JSON, on one line; `{}` if it is missing."""
    samples: tuple[Sample, ...]
    texts: tuple[bytes, ...]
    """The samples of an object of JSON, in their order; none of a zip."""
    problem: str | None = None
    """Why samples are missing, where the log is damaged."""


def is_zip(head: bytes) -> bool:
    """Whether a file with this beginning is a zip."""
    return head.startswith(b"PK\x03\x04")


def is_log(head: bytes) -> bool:
    """Whether a file with this beginning is an evaluation as JSON."""
    return head.lstrip(b" \t\r\n\xef\xbb\xbf").startswith(b"{") and all(mark in head for mark in _MARKS)


def read_log(path: Path) -> EvalLog | None:
    """What is in a log; None if it is none. Raises OSError, and SourceError for one of which nothing can be read."""
    with path.open("rb") as file:
        head = file.read(1 << 16)
    if is_zip(head):
        return _read_zip(path)
    return _read_json(path) if is_log(head) else None


def read_sample(path: Path, log: EvalLog, sample: Sample) -> Whole:
    """A sample. Raises OSError, and SourceError if it is damaged."""
    place = sample.place
    if isinstance(place, int):
        return Whole(log.texts[place])
    with closing(_opened(path)) as archive:
        if isinstance(place, str):
            return Whole(_content(archive, place, path))
        if sample.size > _LARGEST:
            raise SourceError(f"{sample.name} is larger than {_LARGEST >> 30} GB", path=path)
        return put_together(place, lambda name: _content(archive, name, path))


# -- an object of JSON


def _read_json(path: Path) -> EvalLog:
    text = path.read_bytes().strip(b" \t\r\n\x00").removeprefix(b"\xef\xbb\xbf")
    problem = None
    found = _LOGS.decode(text)
    if isinstance(found, str):
        problem = found
        text = recover_items(text, "samples", lambda fields: "epoch" in fields and "input" in fields)
        found = _LOGS.decode(text)
        if isinstance(found, str):
            raise SourceError(problem, path=path)
    texts = tuple(map(bytes, found.record.samples or ()))
    names = _unique(_name_of(each, number) for number, each in enumerate(texts))
    samples = tuple(
        Sample(name, len(each), zlib.crc32(each), number)
        for number, (name, each) in enumerate(zip(names, texts, strict=True))
    )
    return EvalLog(_header_of(found.json), samples, texts, problem)


def _unique(names: Iterable[str]) -> list[str]:
    """Names with a number where another sample has the same."""
    seen = Counter[str]()
    found: list[str] = []
    for name in names:
        seen[name] += 1
        found.append(name if seen[name] == 1 else f"{name}~{seen[name]}")
    return found


def _header_of(text: bytes) -> bytes:
    fields = msgspec.json.decode(text, type=dict[str, Raw])
    return msgspec.json.encode({name: value_of(raw) for name, raw in fields.items() if name != "samples"})


class _Named(msgspec.Struct):
    id: Any = None
    epoch: int = 1


def _name_of(text: bytes, number: int) -> str:
    try:
        found = msgspec.json.decode(text, type=_Named)
    except msgspec.DecodeError:
        return f"{number}_epoch_1"
    return f"{found.id if isinstance(found.id, int | str) else number}_epoch_{found.epoch}"


# -- a zip


def _opened(path: Path) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(path)
    except _BAD_ZIP as error:
        raise SourceError(f"no whole zip: {error}", path=path) from error


def _read_zip(path: Path) -> EvalLog | None:
    with closing(_opened(path)) as archive:
        listed = [each for each in archive.infolist() if not each.is_dir()]
        files = {each.filename: each for each in listed[:_MOST_FILES]}
        header = next((name for name in HEADERS if name in files), None)
        if header is None:
            return None
        text = _content(archive, header, path)
    found = _LOGS.decode(text)
    samples, problems = _samples_in(files)
    if twice := min(len(listed), _MOST_FILES) - len(files):
        problems.append(f"files with the name of another one, which is read instead: {twice}")
    if len(listed) > _MOST_FILES:
        problems.append(f"{len(listed) - _MOST_FILES} more files, which are not read")
    header_text = b"{}" if isinstance(found, str) else _header_of(found.json)
    return EvalLog(header_text, samples, (), "; ".join(problems) or None)


def _samples_in(files: Mapping[str, zipfile.ZipInfo]) -> tuple[tuple[Sample, ...], list[str]]:
    """The samples of a zip by name, and why some are missing."""
    found = {
        match["name"]: Sample(match["name"], files[name].file_size, files[name].CRC, name)
        for name in files
        if (match := _SAMPLE.fullmatch(name))
    }
    problems: list[str] = []
    for name, pieces in find_pieces(files).items():
        if "sample" not in pieces.objects:
            problems.append(f"{name} is without its sample.json")
        elif name not in found:
            infos = [files[each] for each in sorted(pieces.names())]
            checksum = zlib.crc32(b"".join(info.CRC.to_bytes(4, "big") for info in infos))
            found[name] = Sample(name, sum(info.file_size for info in infos), checksum, pieces)
    return tuple(found[name] for name in sorted(found)), problems


def _content(archive: zipfile.ZipFile, name: str, path: Path) -> bytes:
    try:
        info = archive.getinfo(name)
        refuse_too_large(info, path, _LARGEST)
        return _unpacked(path, info) if info.compress_type == _ZSTD else archive.read(info)
    except (*_BAD_ZIP, zstandard.ZstdError) as error:
        raise SourceError(f"{name}: {error}", path=path) from error


def _unpacked(path: Path, info: zipfile.ZipInfo) -> bytes:
    with path.open("rb") as file:
        file.seek(info.header_offset)
        local = file.read(_LOCAL_HEADER)
        file.seek(int.from_bytes(local[26:28], "little") + int.from_bytes(local[28:30], "little"), 1)
        # A few bytes may unpack to any number: not more is taken than the zip says.
        reader = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True, closefd=False)
        data = reader.read(info.file_size)
    if zlib.crc32(data) != info.CRC:
        raise zipfile.BadZipFile("its checksum differs")
    return data


def header_fields(header: bytes) -> Iterator[dict[str, Any]]:
    """The object of a header, and that of its evaluation."""
    fields = object_of(value_of(header))
    yield fields
    yield object_of(fields.get("eval"))


def writer_version(header: bytes) -> str:
    """The version of the program that wrote a log, or of the format."""
    fields, spec = header_fields(header)
    return text_of(object_of(spec.get("packages")).get("inspect_ai")) or str(fields.get("version") or 1)
