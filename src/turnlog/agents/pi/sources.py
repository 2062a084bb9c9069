"""Where the logs of pi and of its family are, and whether a file is one of them.

Folders are listed, and no symbolic link is followed. A root is the folder that contains `sessions`, or the folder of
sessions itself. A file is opened only in such a folder that is not the program's own, if its name is nothing but an id.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from hashlib import sha256
from pathlib import Path, PurePath, PurePosixPath, PureWindowsPath
from typing import Final, NamedTuple

import msgspec
from msgspec import Raw

from turnlog.agents.base import Detection, Source, SourceKind
from turnlog.agents.changes import Changes
from turnlog.agents.files import entries, folder_below, folders, holds_folder, is_file
from turnlog.agents.jsonl import whole_lines
from turnlog.agents.pi import NAME, owner_of
from turnlog.agents.pi.records import KINDS_OF, LINES, PiRecord
from turnlog.atomic_files import open_file

SESSIONS: Final = "sessions"
_SUFFIX: Final = ".jsonl"

_UUID: Final = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_HEADER_SIZE: Final = 1 << 16
"""Bytes at the beginning of a log that hold its header."""

_TIME: Final = r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-\d+Z"

_FILE = re.compile(rf"(?:(?P<time>{_TIME})_(?P<id>[^/]+)|(?P<only>{_UUID}))")
"""The stem of a log's name: the time of its first record, and the session's id; of prime-agent's only the id."""


def session_id(agent: str, external: str) -> str:
    """The id of a session in the model. A `/` of the external id, which would separate parts of a path, becomes `_`."""
    return f"{agent}:{external.replace('/', '_')}"


_RANDOM = re.compile(rf"{_UUID}|(?=[^/]*\d)[0-9A-Za-z_-]{{16,}}")
"""An id that a program made at random."""

_FEWEST_LETTERS: Final = 5
"""How many different letters such an id has at least; one with fewer was typed."""

_WITH_TIME = re.compile(rf"[^/]+@{_TIME}(?:-[0-9a-f]{{8}})?")


def is_unique(external: str) -> bool:
    """Whether an id means one session. Some programs name each first session `local` or `1`, in every home."""
    return _RANDOM.fullmatch(external) is not None and len(set(external)) >= _FEWEST_LETTERS


def has_time(external: str) -> bool:
    """Whether the id of a session in the model has the time of its beginning, because its own id is not unique."""
    return _WITH_TIME.fullmatch(external) is not None


def external_id(path: PurePath, began: str | None = None) -> str:
    """The session's id in the name of its log; the whole stem if somebody else named the file.

    One that is not unique gets the time at which the session began, as the names of logs have it: a copy of the log
    has the same.

    Args:
        path: The log, which need not be there.
        began: The time in its header, as far as it is known; otherwise the one in its name counts.
    """
    stem = path.name.partition(_SUFFIX)[0]
    named = _FILE.fullmatch(stem)
    name, time = (named["id"] or named["only"], named["time"]) if named else (stem or "session", None)
    return name if is_unique(name) else with_time(name, began, time)


def with_time(name: str, began: str | None, otherwise: str | None = None) -> str:
    """An id with the time at which its session began; without a time as it is."""
    written = re.sub(r"[:.]", "-", began or "")
    time = written if re.fullmatch(_TIME, written) else otherwise
    return f"{name}@{time}" if time else name


def _log_id(path: Path) -> str:
    """The id of a log that is there, which is opened only if its name is not unique."""
    named = external_id(path)
    return named if is_unique(named) else external_id(path, _time_in(path))


def _time_in(path: Path) -> str | None:
    """The time in the header of a log; None if it cannot be read."""
    try:
        with open_file(path) as file:
            header = _header(_first_records(file.read(_HEADER_SIZE)))
    except OSError:
        return None
    return None if header is None else header.timestamp


def named_session(path: str) -> str | None:
    """The session that the path of a log names, on any system; None if pi did not name the file."""
    name = PureWindowsPath(path)
    return None if _FILE.fullmatch(name.name.partition(_SUFFIX)[0]) is None else external_id(name)


def logs_below(agent: str, root: Path, *, is_own: bool) -> Iterator[Source]:
    """Every log below `root`, in the order of their names. Several may have the id of one session.

    Args:
        agent: The program of the family.
        root: A home, or a folder of sessions.
        is_own: `root` is a place of the program's, and not just any folder.
    """
    if holds_folder(root, SESSIONS):
        yield from _logs_in(agent, root, os.fspath(root / SESSIONS), lambda _: True)
    else:
        # A variable may name the folder of sessions itself. Any folder could be given, so names must be pi's.
        yield from _logs_in(agent, root, os.fspath(root), _is_named if is_own else _is_log)


class _Beginning(NamedTuple):
    """How a log begins."""

    time: str
    """The time in its header; empty without one."""
    message: bytes
    """Its first message; empty as long as it has none."""

    def is_copy_of(self, other: _Beginning) -> bool:
        """Whether both are of one conversation: a copy begins with the same message, after the same header."""
        if self.message and other.message:
            return self.message == other.message
        return self.time == other.time


def told_apart(found: Iterable[Source], known: Mapping[str, str | None] | None = None) -> Iterator[Source]:
    """The sources, with another session for each log that has the id of an earlier one and another conversation.

    Only logs of one id are opened.

    Args:
        found: Sources with the ids of their own logs.
        known: Path -> session of the logs that were read before, which they keep.
    """
    by_session: dict[str | None, list[Source]] = {}
    for source in found:
        by_session.setdefault(source.session_id, []).append(source)
    for sources in by_session.values():
        if len(sources) == 1 or sources[0].kind is not SourceKind.SESSION:
            yield from sources
        else:
            yield from _told_apart(sources, known or {})


def _told_apart(sources: list[Source], known: Mapping[str, str | None]) -> Iterator[Source]:
    # By the name of the session, so that further copies have that of the first.
    named: dict[str | None, _Beginning] = {}
    begun = [(source, _beginning(Path(source.path))) for source in sources]
    for source, beginning in sorted(begun, key=lambda pair: (pair[0].path not in known, pair[1])):
        names = [source.session_id or "", *_names_with_time(source.session_id or "", beginning)]
        fitting = (each for each in names if each not in named or beginning.is_copy_of(named[each]))
        name = known.get(source.path) or next(fitting, names[-1])
        named.setdefault(name, beginning)
        yield msgspec.structs.replace(source, session_id=name)


def _names_with_time(name: str, beginning: _Beginning) -> Iterator[str]:
    """The names of a session whose id another one has: with its time, and if that one has the same with its message."""
    timed = name if has_time(name) else with_time(name, beginning.time)
    yield timed
    yield f"{timed}-{sha256(beginning.message).hexdigest()[:8]}"


def _beginning(path: Path) -> _Beginning:
    try:
        with open_file(path) as file:
            records = _first_records(file.read(_HEADER_SIZE))
    except OSError:
        return _Beginning("", b"")
    header = _header(records)
    messages = (bytes(record.message) for record in records if isinstance(record.message, Raw))
    return _Beginning((header.timestamp if header else None) or "", next(messages, b""))


def _is_named(path: str) -> bool:
    return named_session(path) is not None


def _is_log(path: str) -> bool:
    """Whether a file is a log by its name, or by its first record if other programs name their logs like that too."""
    named = _FILE.fullmatch(Path(path).name.partition(_SUFFIX)[0])
    if named is None or named["id"] is not None:
        return named is not None
    try:
        with open_file(Path(path)) as file:
            return _header(_first_records(file.read(_HEADER_SIZE))) is not None
    except OSError:
        return False


def _logs_in(agent: str, root: Path, sessions: str, is_log: Callable[[str], bool]) -> Iterator[Source]:
    """Logs in the folder of sessions, and in its folders for projects."""
    for folder in (sessions, *(project.path for project in folders(sessions))):
        for entry in filter(is_file, entries(folder)):
            if entry.name.endswith(_SUFFIX) and is_log(entry.path):
                yield log_source(agent, root, Path(entry.path))
        if folder != sessions:
            for nested in folders(folder):
                if named_session(nested.name) and is_log(nested.path + _SUFFIX):
                    yield from _subagents(agent, root, nested.path)


def _subagents(agent: str, root: Path, folder: str) -> Iterator[Source]:
    """Logs of subagents: oh-my-pi keeps them in a folder next to the log of the session that started them."""
    for entry in filter(is_file, entries(folder)):
        if entry.name.endswith(_SUFFIX):
            yield log_source(agent, root, Path(entry.path))
    for nested in folders(folder):
        yield from _subagents(agent, root, nested.path)


class SubagentPlace(NamedTuple):
    """A subagent's place in the tree of sessions, as its path says it."""

    parent: str
    """External id of the session that started it."""
    external: str


def subagent_place(path: PurePath) -> SubagentPlace | None:
    """The place of a log among subagents; None for a session that a person started."""
    names: list[str] = []
    for folder in path.parents:
        names.append(folder.name)
        if named_session(folder.name) is not None:
            main = _log_id(Path(f"{folder}{_SUFFIX}"))
            above = ".".join((main, *reversed(names[:-1])))
            return SubagentPlace(above, f"{above}.{path.name.partition(_SUFFIX)[0]}")
    return None


def log_source(agent: str, root: Path, path: Path) -> Source:
    """The source of a log."""
    place = subagent_place(path)
    return Source(
        agent=agent,
        path=os.fspath(path),
        root=os.fspath(root),
        kind=SourceKind.SESSION if place is None else SourceKind.SUBAGENT,
        session_id=session_id(agent, _log_id(path) if place is None else place.external),
        project=folder_below(os.fspath(path), root, SESSIONS),
    )


# -- whether a file is a log


def detect_log(agent: str, path: Path, head: bytes) -> Detection:
    """Judge a file by its beginning `head`: its first record is a header. No record names the version of the program.

    The programs of the family write the same records: the folder in the path tells them apart, and what only one of
    them writes in its first records, or the path of the parent there. A file that says none of it is pi's.
    """
    records = _first_records(head)
    header = _header(records)
    if header is None:
        return Detection(reason="the first record is no header of a session")
    # OpenClaw's logs have the same records, in a folder of its agents and later with their own version.
    if header.version == 4 or "agents" in {folder.name for folder in list(path.absolute().parents)[:3]}:
        return Detection(reason="it is a log of OpenClaw")
    owner = _owner(path, records, header)
    if owner != agent:
        return Detection(reason=f"it is a log of {owner}")
    found = log_source(agent, _root_of(path), path.absolute())
    if header.id is not None and found.project is None and named_session(path.name) is None:
        # An imported file has another name than its log had: only its header names the session.
        name = header.id if is_unique(header.id) else with_time(header.id, header.timestamp)
        found = msgspec.structs.replace(found, session_id=session_id(agent, name))
    return Detection(agent=agent, version=str(header.version or 1), source=found)


def _first_records(head: bytes) -> list[PiRecord]:
    return [record for record, *_ in LINES.read(whole_lines(head), 0, 1, Changes())]


def _header(records: list[PiRecord]) -> PiRecord | None:
    """The header of a session: the first record, or the one after a title."""
    header = next((record for record in records[:2] if record.type == "session"), None)
    return None if header is None or (header.id is None and header.cwd is None) else header


def _owner(path: Path, records: list[PiRecord], header: PiRecord) -> str:
    above = header.parentSession or header.branchedFrom
    named = owner_of(path.absolute().parent) or (owner_of(PurePosixPath(above).parent) if above else None)
    if named is not None:
        return named
    if header.titleSource is not None:
        return "oh-my-pi"
    if header.rlmDepth is not None:
        return "prime-agent"
    kinds = {record.type for record in records}
    return next((program for program, own in KINDS_OF.items() if kinds & own), NAME)


def _root_of(path: Path) -> Path:
    place = path.absolute()
    return next((folder.parent for folder in place.parents if folder.name == SESSIONS), place.parent)
