"""The files of one session: its log, and what the agent wrote beside it, read into a gathering."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from turnlog.agents import agent as agent_named
from turnlog.agents import detect
from turnlog.agents.base import Source, SourceKind, reads_rows
from turnlog.agents.changes import Changes, SessionChange
from turnlog.agents.packing import unpack
from turnlog.errors import FormatError
from turnlog.logs.beside import files_beside, read_file
from turnlog.logs.gathering import Gathering
from turnlog.logs.rows import read_log, sources_around
from turnlog.model import Provenance


class SessionFiles:
    """One session's files, and what they say."""

    def __init__(self, source: Source) -> None:
        """Read the log itself.

        Raises FormatError when no record of it names a session, SourceError when it cannot be read.
        """
        self._source = source
        self.agent = agent_named(source.agent)
        self._bytes: dict[str, bytes] = {}
        self.gathering = Gathering()
        named = self._read(source)
        self.session_id = source.session_id or next(iter(named), "")
        if not self.session_id:
            raise FormatError("no record names a session", path=Path(source.path))
        # Of a log without a sound record there is nothing but the diagnostics.
        self.gathering.sessions.setdefault(self.session_id, SessionChange(session_id=self.session_id))

    def read_beside(self) -> None:
        """Read what the agent wrote beside the log for the same session."""
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
                self.gathering.add(source, changes)
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
            children = {link.child_session_id for link in self.gathering.links.of(parent=session_id)} - seen
            seen |= children
            waiting += sorted(children)

    def _read(self, source: Source) -> list[str]:
        """Fold one file, or the log of rows; return the sessions it tells of."""
        self._bytes[source.path], changes = self._fold(source)
        self.gathering.add(source, changes)
        return _told_of(changes)

    def _fold(self, source: Source) -> tuple[bytes, Changes]:
        """What one file or the log of rows holds, unpacked, and what it tells."""
        if reads_rows(self.agent, source):
            data = unpacked = read_log(self.agent, source)
        else:
            data = read_file(Path(source.path))
            unpacked = unpack(source.path, data).data
        return unpacked, self.agent.fold(source).feed(data, 0)


def _told_of(changes: Changes) -> list[str]:
    return [*changes.sessions, *(change.placement.session_id for change in changes.messages)]


def _child_of(parents: Collection[str], changes: Changes) -> str | None:
    """The subagent of one of these sessions that a log is of; None when it is not, or tells of others too."""
    links = (link for link in changes.links if link.kind == "subagent" and link.parent_session_id in parents)
    child = next((link.child_session_id for link in links), None)
    return child if child is not None and set(_told_of(changes)) <= {child} else None
