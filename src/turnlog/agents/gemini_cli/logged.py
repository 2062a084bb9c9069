"""A message as it stands in the file, taken apart."""

from __future__ import annotations

from typing import Any, NamedTuple
from zlib import crc32

from turnlog.agents.decoding import clean_json
from turnlog.agents.gemini_cli import contents
from turnlog.agents.gemini_cli.calls import LoggedCall, calls_in
from turnlog.agents.gemini_cli.contents import Piece, pieces_of, spoken_in
from turnlog.agents.gemini_cli.records import Record, fields_of
from turnlog.agents.gemini_cli.sources import NAME
from turnlog.agents.reading import names_of, other_fields

CONTEXT = "<session_context>"
_FIELDS = names_of(Record)


class Logged(NamedTuple):
    """A message as it stands in the file."""

    record: Record
    json: bytes
    position: int
    length: int
    is_copy: bool = False
    """Stands in a checkpoint."""
    original: str | None = None
    """Key of the message that this is a copy of under another id."""
    is_later_round: bool = False
    """Was part of another message, which counts for both."""

    @property
    def key(self) -> str:
        """What names it in the session: one id may be that of a message and of the results of its calls."""
        record = self.record
        if self.original is not None:
            return self.original
        return f"{record.type}:{record.id}" if record.id is not None else f"{record.type}@{self.position}"


class Said(NamedTuple):
    """What a message says."""

    pieces: list[Piece]
    responses: list[contents.Response]
    calls: list[LoggedCall]
    text: str

    @property
    def checksum(self) -> int:
        """The same for a message and its copy under another id."""
        return joined_checksum(words_checksum(self.text), self)


def words_checksum(text: str) -> int:
    """The first half of a checksum: what was said."""
    return crc32(text.encode(errors="replace"))


def joined_checksum(words: int, said: Said) -> int:
    """The checksum of words and the calls and results in a message."""
    calls = ",".join(sorted(call.id for call in said.calls))
    answers = ",".join(response.call_id for response in said.responses)
    return crc32(f"|{calls}|{answers}".encode(errors="replace"), words)


def text_checksum(text: str) -> int:
    """The checksum of a message that says nothing but a text."""
    return Said([], [], [], text).checksum


def said_by(logged: Logged) -> Said:
    """Take a message apart."""
    pieces = pieces_of(logged.record.content)
    responses: list[contents.Response] = []
    if logged.record.type == "user":
        responses, pieces = contents.responses_in(pieces)
    calls = calls_in(logged.record, logged.json, logged.position, pieces) if logged.record.type == "gemini" else []
    return Said(pieces, responses, calls, spoken_in(pieces))


def is_context(logged: Logged) -> bool:
    """Whether it is what the CLI tells the model about the place before the first prompt."""
    return logged.record.type == "user" and CONTEXT.encode() in logged.json[:4096]


def metadata_of(logged: Logged, facts: dict[str, Any]) -> dict[str, Any]:
    """Facts that only this agent tells; a later round's JSON is only its calls'."""
    if not logged.is_later_round and not logged.is_copy:
        facts = facts | other_fields(fields_of(clean_json(logged.json)), _FIELDS)
    return {NAME: facts} if facts else {}
