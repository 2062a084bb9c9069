"""The sources of one session: the file or the rows that a path names, and the files next to them for the same session.

Sessions that are rows of a database, or many small files, are found by path and read as a first pass would read them.
One of several sessions in a file is called `<file>#<session>`, as a pass calls it.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from turnlog.agents import agent as agent_named
from turnlog.agents import agents, detect, find_sources
from turnlog.agents.base import Agent, Detection, RowAgent, Source, SourceKind, reads_rows
from turnlog.agents.changes import Changes, SessionChange
from turnlog.agents.files import decompress
from turnlog.errors import FormatError, SourceError
from turnlog.logs.merger import SourceMerger
from turnlog.model import Provenance

_MOST_NAMED = 20
"""Sessions that an error names."""


def find_in_file(path: Path) -> Source | None:
    """The session that a path `<file>#<session>` names; None if it is no such path.

    Raises FormatError if the file has no such session, naming those it has.
    """
    file, separator, _ = str(path.absolute()).rpartition("#")
    if not separator or path.exists() or not Path(file).is_file():
        return None
    found = detect(Path(file))
    if not found.sources:
        raise FormatError(f"no file of several sessions: {found.reason or 'it is one log'}", path=Path(file))
    named = next((source for source in found.sources if source.path == str(path.absolute())), None)
    if named is None:
        raise FormatError(f"no such session; {_named_sessions(found)}", path=path)
    return named


def check_names_one(path: Path, found: Detection) -> None:
    """Raise FormatError, naming the sessions, when a file holds several and the path says none of them."""
    if len(found.sources) > 1:
        raise FormatError(f"name one of its sessions, as {path}#<session>; {_named_sessions(found)}", path=path)


def read_log(agent: RowAgent, source: Source) -> bytes:
    """The log of a session that no pass has seen yet. Raises SourceError."""
    try:
        return b"".join(agent.read_rows(source, ()).lines)
    except OSError as error:
        raise SourceError(error.strerror or str(error), path=Path(source.path)) from error


def sources_around(agent: Agent, source: Source) -> Mapping[str, list[Source]]:
    """The sources in the same file or the same home, by session."""
    file, separator, _ = source.path.rpartition("#")
    found_in = detect(Path(file)) if separator and Path(file).is_file() else Detection()
    inside = (*found_in.sources, *found_in.beside)
    found: dict[str, list[Source]] = {}
    for other in {other.path: other for other in (*inside, *agent.discover([Path(source.root)]))}.values():
        if other.session_id is not None:
            found.setdefault(other.session_id, []).append(other)
    return found


def _named_sessions(found: Detection) -> str:
    names = [source.path.rpartition("#")[2] for source in found.sources]
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return f"there are {', '.join(names[:_MOST_NAMED])}{more}"


_HISTORIES = frozenset({SourceKind.SESSION, SourceKind.SUBAGENT, SourceKind.STREAM})
"""Kinds of files that are a session's history by themselves."""

_MOST_LEVELS = 8
"""How far above a log its agent's home may be."""

_MOST_FOLDERS = 256
"""Limit of folders next to a log that are searched: more than any agent makes for one session."""

_HEAD_SIZE = 1 << 16
"""Bytes at the beginning of a file that show which session it belongs to."""


def source_of(path: Path) -> Source:
    """The session whose log a file is. Raises `FormatError` if it is not a log."""
    named = find_in_file(path)
    if named is not None:
        return named
    if not path.is_file():
        # Opening it says why, in the system's words.
        read_file(path)
    found = detect(path)
    check_names_one(path, found)
    source = found.source or _source_by_place(path)
    if source is None or source.kind not in _HISTORIES:
        if found.reasons:
            raise FormatError("of no agent that turnlog reads", path=path, of_agents=found.reasons)
        raise FormatError(f"not the log of a session: {found.reason or 'a file beside one'}", path=path)
    return source


def _source_by_place(path: Path) -> Source | None:
    """The file as a source of an agent under whose home it is, whatever it contains."""
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
    """Whether the beginning of a file names a session, as logs of subagents do that are next to those of sessions."""
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


class SessionSources:
    """The sources of one session, and what they say."""

    def __init__(self, source: Source) -> None:
        """Read the log itself.

        Raises FormatError if no record of it names a session, SourceError when it cannot be read.
        """
        self._source = source
        self.agent = agent_named(source.agent)
        self._bytes: dict[str, bytes] = {}
        self.merger = SourceMerger()
        named = self._read(source)
        self.session_id = source.session_id or next(iter(named), "")
        if not self.session_id:
            raise FormatError("no record names a session", path=Path(source.path))
        # Of a log without a sound record there is nothing but the diagnostics.
        self.merger.sessions.setdefault(self.session_id, SessionChange(session_id=self.session_id))

    def read_beside(self) -> None:
        """Read what the agent wrote next to the log for the same session."""
        if reads_rows(self.agent, self._source):
            self._read_around()
            return
        logs: list[Source] = []
        for path in files_beside(Path(self._source.path), self.session_id.partition(":")[2]):
            source = detect(path).source
            if source is None or source.agent != self._source.agent or source.kind is SourceKind.STREAM:
                continue
            if source.kind is SourceKind.SESSION:
                logs.append(source)
            else:
                self._read(source)
        self._read_subagents([(source, *self._fold(source)) for source in logs])

    def read_record(self, place: Provenance) -> bytes:
        """The record at a place in one of the files."""
        first = place.offset or 0
        return self._bytes[place.source][first : first + (place.length or 0)]

    def _read_subagents(self, logs: Sequence[tuple[Source, bytes, Changes]]) -> None:
        """Of logs that look like those of sessions, take those of its subagents, and of theirs."""
        known, waiting = {self.session_id}, list(logs)
        while True:
            found = [log for log in waiting if _child_of(known, log[2]) is not None]
            if not found:
                return
            for source, data, changes in found:
                self._bytes[source.path] = data
                self.merger.add(source, changes)
                known.add(_child_of(known, changes) or "")
            waiting = [log for log in waiting if log not in found]

    def _read_around(self) -> None:
        """Read what else there is of the session, the sessions that it started, and those that they started."""
        around = sources_around(self.agent, self._source)
        waiting, seen = [self.session_id], {self.session_id}
        while waiting:
            session_id = waiting.pop()
            for source in around.get(session_id, ()):
                if source.path != self._source.path:
                    self._read(source)
            children = {link.child_session_id for link in self.merger.links.of(parent=session_id)} - seen
            seen |= children
            waiting += sorted(children)

    def _read(self, source: Source) -> list[str]:
        """Fold one file, or the log of rows; return the sessions that it describes."""
        self._bytes[source.path], changes = self._fold(source)
        self.merger.add(source, changes)
        return _described_sessions(changes)

    def _fold(self, source: Source) -> tuple[bytes, Changes]:
        """The bytes of one file or of the log of rows, unpacked, and what was found in them."""
        if reads_rows(self.agent, source):
            data = unpacked = read_log(self.agent, source)
        else:
            data = read_file(Path(source.path))
            unpacked = decompress(source.path, data).data
        return unpacked, self.agent.fold(source).feed(data, 0)


def _described_sessions(changes: Changes) -> list[str]:
    return [*changes.sessions, *(change.placement.session_id for change in changes.messages)]


def _child_of(parents: Collection[str], changes: Changes) -> str | None:
    """The subagent of one of these sessions that a log is of; None if it is not, or describes others too."""
    links = (link for link in changes.links if link.kind == "subagent" and link.parent_session_id in parents)
    child = next((link.child_session_id for link in links), None)
    return child if child is not None and set(_described_sessions(changes)) <= {child} else None
