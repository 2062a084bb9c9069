"""Sessions that are rows of a database or many small files: found by path, read as a first pass would read them.

One of several sessions in a file is called `<file>#<session>`, as a pass calls it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from turnlog.agents import detect
from turnlog.agents.base import Agent, Detection, RowAgent, Source
from turnlog.errors import FormatError, SourceError

_MOST_NAMED = 20
"""Sessions that an error names."""


def find_in_file(path: Path) -> Source | None:
    """The session that a path `<file>#<session>` names; None when it is no such path.

    Raises FormatError when the file has no such session, naming those it has.
    """
    file, separator, _ = str(path.absolute()).rpartition("#")
    if not separator or path.exists() or not Path(file).is_file():
        return None
    found = detect(Path(file))
    if not found.sources:
        raise FormatError(f"no file of several sessions: {found.reason or 'it is one log'}", path=Path(file))
    named = next((source for source in found.sources if source.path == str(path.absolute())), None)
    if named is None:
        raise FormatError(f"no such session; {_names(found)}", path=path)
    return named


def check_names_one(path: Path, found: Detection) -> None:
    """Raise FormatError, naming the sessions, when a file holds several and the path says none of them."""
    if len(found.sources) > 1:
        raise FormatError(f"name one of its sessions, as {path}#<session>; {_names(found)}", path=path)


def read_log(agent: RowAgent, source: Source) -> bytes:
    """The log of a session that no pass has seen yet. Raises SourceError."""
    try:
        return b"".join(agent.read_rows(source, ()).lines)
    except OSError as error:
        raise SourceError(error.strerror or str(error), path=Path(source.path)) from error


def sources_around(agent: Agent, source: Source) -> Mapping[str, list[Source]]:
    """What lies in the same file or the same home, by session."""
    file, separator, _ = source.path.rpartition("#")
    inside = detect(Path(file)).sources if separator and Path(file).is_file() else ()
    found: dict[str, list[Source]] = {}
    for other in {other.path: other for other in (*inside, *agent.discover([Path(source.root)]))}.values():
        if other.session_id is not None:
            found.setdefault(other.session_id, []).append(other)
    return found


def _names(found: Detection) -> str:
    names = [source.path.rpartition("#")[2] for source in found.sources]
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return f"there are {', '.join(names[:_MOST_NAMED])}{more}"
