"""Where the conversations of OpenHands are, and their files as lines of a log.

A conversation is a folder with its state and a file for each event. The state stands for it as a source of rows. Files
of events never change; the state is written anew after each call of the model.

Turns and parents follow from the order of events, so a log has them in the order of their numbers, and each once. Where
an event comes late, because its file could not be read or was still being written, the log is written anew.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final, Literal

import msgspec

from turnlog.agents.base import Detection, RowUpdate, Source, SourceKind, Version
from turnlog.agents.decoding import object_of, text_of
from turnlog.agents.file_rows import FileRow, changed_files, contents, file_row, version_of_files
from turnlog.agents.files import entries, folders, holds_folder, holds_log, is_file, read_regular_file
from turnlog.agents.jsonl import UNREADABLE
from turnlog.agents.openhands import CONVERSATIONS, NAME, STATE

EVENTS = "events"

SUBAGENTS = "subagents"
"""The folder of a conversation with those of its subagents, which have files of the same form."""

_EVENT = re.compile(rf"{EVENTS}/event-(?P<number>\d{{1,12}})-.*\.json")

_MARKS = (b'"persistence_dir"', b'"execution_status"', b'"max_iterations"')
"""Fields that a state always has."""

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(FileRow).decode


def session_id(external: str) -> str:
    """The id of a session in the model. A `/` of the external id, which would separate parts of a path, becomes `_`."""
    return f"{NAME}:{external.replace('/', '_')}"


def find_sources(root: Path) -> Iterator[Source]:
    """Every conversation below a home, each before its subagents, in the order of their names."""
    return _sources_below(root / CONVERSATIONS, root)


def _sources_below(above: Path, root: Path) -> Iterator[Source]:
    for entry in folders(os.fspath(above)):
        folder = Path(entry.path)
        source = _source(folder, root)
        if source is not None:
            yield source
            yield from _sources_below(folder / SUBAGENTS, root)


def sources_at(path: Path, root: Path) -> Iterator[Source]:
    """The conversation or subagent to whose folder a changed file belongs."""
    above = root / CONVERSATIONS
    if not path.is_relative_to(above) or path == above:
        return
    first, *inner = path.relative_to(above).parts
    folder = above / first
    while len(inner) > 1 and inner[0] == SUBAGENTS:
        folder, inner = folder / SUBAGENTS / inner[1], inner[2:]
    source = _source(folder, root)
    if source is not None:
        yield source


def _names_of(folder: Path) -> list[str]:
    """The names of a conversation and of the subagents in it down to a folder."""
    above = folder.parents
    return [*(_names_of(above[1]) if len(above) > 1 and above[0].name == SUBAGENTS else []), folder.name]


def _source(folder: Path, root: Path) -> Source | None:
    # Without its state a conversation still has its events: only their tokens are unknown then. No link is followed.
    if not holds_log(folder, STATE) and (os.path.lexists(folder / STATE) or not holds_folder(folder, EVENTS)):
        return None
    return _source_of(folder / STATE, root, _names_of(folder), version=version_of(folder))


def _source_of(path: Path, root: Path, names: list[str], version: Version | None = None) -> Source:
    return Source(
        agent=NAME,
        path=os.fspath(path),
        root=os.fspath(root),
        kind=SourceKind.SUBAGENT if len(names) > 1 else SourceKind.SESSION,
        session_id=session_id(".".join(names)),
        version=version,
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
    is_mended = _is_mended(known, files)
    if _goes_on(known, new) and not is_mended:
        return RowUpdate(lines=[_encode(row) + b"\n" for row in new])
    rows = _in_order([*known, *new], without=STATE if is_mended else None)
    return RowUpdate(lines=[_encode(row) + b"\n" for row in rows], anew=True)


def _is_mended(known: Iterable[FileRow], files: Mapping[str, bytes]) -> bool:
    """Whether a log has a damaged state in place of the one that is there now."""
    before = contents(known).get(STATE)
    return before is not None and not _is_document(before) and _is_document(files.get(STATE, b""))


def _is_document(data: bytes) -> bool:
    try:
        return bool(object_of(msgspec.json.decode(data)))
    except UNREADABLE:
        return False


def _goes_on(known: Iterable[FileRow], new: Iterable[FileRow]) -> bool:
    """Whether every new event comes after those that a log has."""
    last = max((_place(row.path) for row in known if _has_event(row)), default=None)
    return last is None or all(_place(row.path) > last for row in new if _has_event(row))


def _has_event(row: FileRow) -> bool:
    return not row.is_gone and event_number(row.path) is not None


def _in_order(rows: list[FileRow], without: str | None) -> Iterator[FileRow]:
    """Each event as it was last, in the order of their numbers, then all versions of the other files.

    Args:
        rows: The rows of the log, and the new ones.
        without: A file whose older versions are left out; an older generation of the log has them.
    """
    events = [row for row in rows if _has_event(row)]
    newest = {row.path: row.modified for row in events}
    for path, data in sorted(contents(events).items(), key=lambda each: _place(each[0])):
        yield file_row(path, data, modified=newest[path])
    there = contents(rows)
    # An event that is back has no longer gone.
    others = (row for row in rows if not _has_event(row) and not (row.is_gone and row.path in there))
    yield from (row for row in others if row.path != without)
    if without is not None:
        yield file_row(without, there[without])


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
    names = _names_of(absolute.parent)
    home = absolute.parents[2 * len(names) - 1]
    if home.name == CONVERSATIONS:
        source = _source_of(absolute, home.parent, names)
    else:
        source = _source_of(absolute, absolute.parent, [(external or path.stem).replace("-", "")])
    # No file names the version of the program.
    return Detection(agent=NAME, version="1", source=source, sources=(source,))


_LARGEST_STATE: Final = 16 << 20


class _ObeyedSkill(msgspec.Struct):
    mcp_tools: dict[str, msgspec.Raw] | None = None


class _ObeyedContext(msgspec.Struct, frozen=True):
    skills: list[_ObeyedSkill] = []


class _ObeyedAgent(msgspec.Struct, frozen=True):
    kind: Literal["Agent"] = "Agent"
    """Another one is a program of its own, whose command the state has."""
    mcp_config: dict[str, msgspec.Raw] | None = None
    agent_context: _ObeyedContext | None = None


class _ObeyedState(msgspec.Struct):
    """What of a state has commands that OpenHands runs (SDK 1.58.2)."""

    agent: _ObeyedAgent = _ObeyedAgent()
    hook_config: dict[str, list[msgspec.Raw] | None] | None = None


def has_commands(path: Path) -> bool:
    """Whether the file at a path is a state with hooks or servers of tools, or cannot be read."""
    if path.name != STATE:
        return False
    try:
        state = msgspec.json.decode(read_regular_file(path, _LARGEST_STATE), type=_ObeyedState)
    except UNREADABLE:
        return True
    skills = state.agent.agent_context.skills if state.agent.agent_context is not None else []
    return bool(state.agent.mcp_config or any((state.hook_config or {}).values()) or any(s.mcp_tools for s in skills))
