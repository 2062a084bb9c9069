"""What a run printed: kept beside the store until its session is known, and asked which session that is.

Of output that a machine is to read all is kept, since it may be all there is of a session; of text for people the
beginning. The file goes as soon as the run is linked.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final, NamedTuple

from turnlog.agents import agent as agent_named
from turnlog.agents import detect
from turnlog.agents.base import Source
from turnlog.agents.changes import Changes

MOST_TEXT: Final = 65_536
"""Bytes of text for people that are kept."""

_HEAD: Final = 1 << 20
"""Bytes in which a stream names its session."""


class Printed(NamedTuple):
    """What the output tells."""

    agent: str | None = None
    session_id: str | None = None
    text: str | None = None
    """The output, when it is no agent's stream."""


def output_path(store_path: Path, run_id: str) -> Path:
    """Where the output of a run is kept."""
    return store_path.absolute().parent / "runs" / f"{run_id}.out"


class OutputKeeper:
    """Writes down what a run prints, as it comes. What cannot be written is left out: the run goes on."""

    def __init__(self, path: Path) -> None:
        """Begin with nothing; the file is made with the first bytes."""
        self._path = path
        self._file: int | None = None
        self._room: int | None = None
        """Bytes that are still kept; None: all."""
        self._is_closed = False

    def add(self, data: bytes) -> None:
        """Keep a piece."""
        if data and not self._is_closed:
            try:
                self._write(data)
            except OSError:
                self.close()

    def close(self) -> None:
        """Nothing more is kept."""
        self._is_closed = True
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _write(self, data: bytes) -> None:
        if self._file is None:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            self._room = None if data.lstrip()[:1] in (b"{", b"[") else MOST_TEXT
        rest = memoryview(data if self._room is None else data[: self._room])
        if self._room is not None:
            self._room -= len(rest)
        while rest:
            rest = rest[os.write(self._file, rest) :]


def read_output(path: Path) -> Printed:
    """What a kept output tells; nothing where there is none. Raises OSError when it cannot be read."""
    if not path.exists():
        return Printed()
    text = _text_of(path)
    # Every stream is JSON objects, and all agents would look for one in each of thousands of lines.
    return Printed(text=text) if text is None or "{" not in text else read_log(path)


def read_log(path: Path) -> Printed:
    """What a log in any form tells. Raises OSError when it cannot be read."""
    found = detect(path)
    if found.agent is None or found.source is None:
        return Printed(text=_text_of(path))
    return Printed(agent=found.agent, session_id=_session_of(found.source, path))


def _text_of(path: Path) -> str | None:
    with path.open("rb") as file:
        return file.read(MOST_TEXT).decode(errors="replace").strip() or None


def _session_of(source: Source, path: Path) -> str | None:
    """The session that a stream is of: the first that it tells of and that no other has started."""
    with path.open("rb") as file:
        data = file.read(_HEAD if source.appendable else -1)
        is_whole = not file.read(1)
    lines = data if is_whole else data[: data.rfind(b"\n") + 1]
    changes: Changes = agent_named(source.agent).fold(source).feed(lines, 0)
    children = {link.child_session_id for link in changes.links if link.kind == "subagent"}
    return next((session_id for session_id in changes.sessions if session_id not in children), None)
