"""Where Cursor's conversations are, and whether a file holds some.

A root is the folder of the program for the terminal, or that of the editor; either may hold transcripts, chats and the
editor's database. A conversation in a database is a source of its own, named `<database>#<conversation>`, and so is
what is known about it.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from turnlog.agents.base import Detection, Fold, Source, SourceKind
from turnlog.agents.changes import Changes
from turnlog.agents.conversation import blocks_of
from turnlog.agents.cursor import NAME
from turnlog.agents.cursor.databases import (
    CHAT,
    EDITOR,
    is_editor,
    list_sessions,
    new_facts,
    new_lines,
    open_database,
    restore_rows,
)
from turnlog.agents.cursor.places import SUBAGENTS, TRANSCRIPTS, is_id, place_of, session_id
from turnlog.agents.cursor.tools import is_typed
from turnlog.agents.cursor.transcripts import LINES, TranscriptBlock
from turnlog.agents.databases import DatabaseReader, SessionDatabases, database_of, is_database, session_place
from turnlog.agents.files import entries, folders, holds_file, holds_log, is_file
from turnlog.agents.jsonl import whole_lines

DATABASES: Final = SessionDatabases(open_database, list_sessions, new_lines, new_facts)
_CHATS: Final = DATABASES._replace(lists_files=True)

_FACTS: Final = "meta.json"
_ENDINGS: Final = (".jsonl", ".txt")
"""Of a conversation with transcripts of both forms, the first is read."""

_GLOBAL: Final = "globalStorage"


def find_sources(root: Path) -> Iterator[Source]:
    """Every conversation below a root."""
    for project in folders(os.fspath(root / "projects")):
        yield from _transcripts(Path(project.path, TRANSCRIPTS), root)
    for workspace in folders(os.fspath(root / "chats")):
        yield from _chats(workspace.path, root)
    yield from _chats(os.fspath(root / "acp-sessions"), root)
    if holds_file(root / _GLOBAL, EDITOR):
        yield from DATABASES.find_sources(root / _GLOBAL / EDITOR, root, NAME, session_id)


def _transcripts(folder: Path, root: Path) -> Iterator[Source]:
    yield from _transcripts_in(os.fspath(folder), root)
    for session in folders(os.fspath(folder)):
        yield from _transcripts_in(session.path, root)
        yield from _transcripts_in(f"{session.path}{os.sep}{SUBAGENTS}", root)


def _transcripts_in(folder: str, root: Path) -> Iterator[Source]:
    found = {entry.name for entry in filter(is_file, entries(folder))}
    for path in (Path(folder, name) for name in sorted(found)):
        is_second = path.suffix == _ENDINGS[1] and path.with_suffix(_ENDINGS[0]).name in found
        if path.suffix in _ENDINGS and is_id(path.stem) and not is_second:
            yield _transcript(path, root)


def _transcript(path: Path, root: Path) -> Source:
    return Source(
        agent=NAME,
        path=os.fspath(path),
        root=os.fspath(root),
        # A copy that leaves out most: the conversation in a database is better.
        kind=SourceKind.STREAM,
        session_id=session_id(path.stem),
        project=place_of(path).project,
        appendable=path.suffix == _ENDINGS[0],
    )


def _chats(folder: str, root: Path) -> Iterator[Source]:
    for chat in folders(folder):
        if is_id(chat.name):
            yield from _chat(Path(chat.path), root)


def _chat(folder: Path, root: Path) -> Iterator[Source]:
    if holds_log(folder, _FACTS):
        yield Source(
            agent=NAME,
            path=os.fspath(folder / _FACTS),
            root=os.fspath(root),
            kind=SourceKind.SIDECAR,
            session_id=session_id(folder.name),
            appendable=False,
        )
    if holds_log(folder, CHAT):
        yield from _CHATS.find_sources(folder / CHAT, root, NAME, session_id)


def sources_at(path: Path, root: Path) -> Iterator[Source]:
    """See `RowAgent.sources_at`. A database may be named by its write-ahead log."""
    database = database_of(path)
    if database.name in (CHAT, EDITOR):
        if holds_file(database.parent, database.name):
            databases = _CHATS if database.name == CHAT else DATABASES
            yield from databases.find_sources(database, root, NAME, session_id)
    elif path.name == _FACTS:
        yield from (source for source in _chat(path.parent, root) if source.path == os.fspath(path))
    elif TRANSCRIPTS in path.parts and path.suffix in _ENDINGS:
        yield from (source for source in _transcripts_in(os.fspath(path.parent), root) if source.path == str(path))


# -- the rows of a source


def holds_rows(source: Source) -> bool:
    """Whether a source is a conversation in a database, or a database itself."""
    return session_place(source.path) is not None or Path(source.path).name in (CHAT, EDITOR)


def make_fold(source: Source, state: bytes | None) -> Fold:
    """The fold of a source."""
    if source.kind is SourceKind.STREAM:
        return _transcript_fold(source, state)
    if source.kind is SourceKind.SIDECAR:
        from turnlog.agents.cursor.facts import ChatFileFold, FactsFold

        return FactsFold(source) if holds_rows(source) else ChatFileFold(source)
    if _is_editor(source):
        from turnlog.agents.cursor.bubbles import BubbleFold

        return BubbleFold(source, state)
    from turnlog.agents.cursor.chats import ChatFold

    return ChatFold(source, state)


def _transcript_fold(source: Source, state: bytes | None) -> Fold:
    from turnlog.agents.cursor.transcripts import TextTranscriptFold, TranscriptFold

    return TranscriptFold(source, state) if source.appendable else TextTranscriptFold(source)


def _is_editor(source: Source) -> bool:
    place = session_place(source.path)
    return place is not None and place[0].suffix == Path(EDITOR).suffix


# -- what a file is


def detect_file(path: Path, head: bytes) -> Detection:
    """See `Agent.detect`."""
    absolute = path.absolute()
    if is_database(head):
        return DATABASES.detect(path, NAME, session_id, version_of=_version_of, sessions="conversations")
    if absolute.name == _FACTS and holds_file(absolute.parent, CHAT):
        found = next(_chat(absolute.parent, absolute.parents[1]))
        return Detection(agent=NAME, version="1", source=found)
    return _detect_transcript(absolute, head)


def _version_of(connection: sqlite3.Connection) -> str:
    is_editor(connection)  # raises where the tables are another program's
    return "1"


def _detect_transcript(path: Path, head: bytes) -> Detection:
    is_in_place = TRANSCRIPTS in path.parts
    if head.lstrip().startswith((b"user:", b"assistant:")):
        is_known = is_in_place or is_typed(head.decode(errors="replace"))
        source = _transcript(path, path.parent) if is_known and path.suffix == _ENDINGS[1] else None
        if source is not None:
            return Detection(agent=NAME, version="1", source=source)
        return Detection(reason="a text without the marks of a transcript")
    records = [record for record, *_ in LINES.read(whole_lines(head), 0, 1, Changes())]
    messages = [each for each in records if each.role in ("user", "assistant") and each.message is not None]
    if not messages or any(each.type is not None for each in messages):
        return Detection(reason="no message without a type")
    contents = [each.message.content for each in messages if each.message]
    texts = [block.text or "" for content in contents for block, _ in blocks_of(content, TranscriptBlock)]
    # Other programs may write such messages; these marks are Cursor's alone.
    is_certain = is_in_place or any(map(is_typed, texts))
    source = _transcript(path, path.parent)
    return Detection(agent=NAME, version="2", is_certain=is_certain, source=source)


READER: Final = DatabaseReader(DATABASES, find_sources, sources_at, detect_file, restore_rows)
