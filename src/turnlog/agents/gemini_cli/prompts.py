"""Messages that no model wrote: what a person typed, and what the CLI and its hooks put in."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from turnlog.agents.gemini_cli import contents
from turnlog.agents.gemini_cli.contents import Piece, pieces_of, spoken_in
from turnlog.agents.gemini_cli.logged import CONTEXT, Logged, Said, metadata_of
from turnlog.agents.gemini_cli.origins import SPOKEN, SYNTHETIC, command_in, own_words, passages_of, words_of
from turnlog.agents.gemini_cli.reading import Reading, aware_or_none
from turnlog.agents.gemini_cli.state import Entry
from turnlog.model import Message, Origin, Part, TextPart

_FILES_BEGIN = "--- Content from referenced files ---"
"""From here on a prompt is what the CLI put in for each `@file`."""

_TITLED = frozenset({Origin.PROMPT, Origin.SUBAGENT_PROMPT})
_TITLE_LENGTH = 200
_FOLDER = re.compile(
    r"(?:Workspace Directories:\*\*|working in the (?:directory|following directories):)\s+(?:- )?(\S.*)"
)


def tell_words(reading: Reading, logged: Logged, said: Said, entry: Entry) -> None:
    """Tell of a message; a checkpoint's copy says nothing new."""
    if logged.is_copy and logged.key in reading.state.entries:
        return
    entry.key, entry.is_full = said.checksum, not logged.is_copy
    message_id = reading.message_id(logged.key)
    words, shown = own_words(said), words_of(spoken_in(pieces_of(logged.record.display_content)))
    message = Message(
        id=message_id,
        role="user" if entry.origin in SPOKEN else "developer",
        parts=tuple(_parts_of(said.pieces, message_id)),
        origin=entry.origin,
        created_at=aware_or_none(logged.record.timestamp),
        metadata=metadata_of(logged, _facts_of(entry, words, shown)),
    )
    reading.add_message(logged.key, message, entry, ((logged.position, logged.length, None),))
    if entry.origin in _TITLED:
        _note_title(reading, shown or words)
    elif said.text.startswith(CONTEXT):
        _note_context(reading, said.text)


def shows_file(said: Said) -> bool:
    """Whether a note holds what a tool has read, for the model to see."""
    return any(piece.part.inline_data or piece.part.file_data for piece in said.pieces)


def _parts_of(pieces: list[Piece], message_id: str) -> Iterator[Part]:
    number, is_put_in = 0, False
    for piece in pieces:
        if not piece.is_text:
            yield contents.part_of(piece, f"{message_id}.{number}")
            number += 1
            continue
        for passage in passages_of(piece.part.text or ""):
            is_put_in = is_put_in or passage.text.strip() == _FILES_BEGIN
            yield TextPart(
                id=f"{message_id}.{number}",
                text=passage.text,
                provider=contents.signature_of(piece, None),
                metadata=SYNTHETIC if is_put_in or passage.is_synthetic else {},
            )
            number += 1


def _facts_of(entry: Entry, words: str, shown: str) -> dict[str, Any]:
    facts: dict[str, Any] = {"display": shown} if shown and shown != words else {}
    command = command_in(words) if entry.origin is Origin.SHELL else None
    return facts if command is None else facts | {"command": command}


def _note_title(reading: Reading, text: str) -> None:
    title = " ".join(text.split())[:_TITLE_LENGTH]
    if title and not reading.state.titled:
        reading.session.titles["prompt"] = title
        reading.state.titled = True


def _note_context(reading: Reading, text: str) -> None:
    found = _FOLDER.search(text)
    if found is not None:
        reading.note_folder(found[1].strip())
