"""What search reads from the store: changed messages, and the documents made from their bodies.

A document is one text, reasoning, tool input, tool output or file name. Documents are made from stored JSON, skipping
what is not searched. Importing the model would double the start-up of the process that indexes during a large import,
and building model values would cost more than the rest of indexing. `ExternalText` refers to a text outside of the
body, which is read when it is needed.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Container, Generator, Iterable, Iterator
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import msgspec

from turnlog.errors import StoreError
from turnlog.store.archive import Archive
from turnlog.store.frames import BODY_COLUMNS, PLACE, BodyReader
from turnlog.store.search.base import FIELDS
from turnlog.store.zstd import PIECE_SIZE, ZstdError, decompress_in_pieces

if TYPE_CHECKING:
    from turnlog.model import Json


TEXT, REASONING, INPUT, OUTPUT, FILE = range(len(FIELDS))

FAILED = 1
HAS_IMAGE = 2
"""Flags of a document."""

MAX_DOCUMENT_SIZE = 4 << 20
"""Maximum bytes of one document. A longer text becomes several, which limits memory; all words of a query must be in
one."""

_FAILED_STATE = "output-error"
_SEARCHABLE_TYPES = ("text/", "application/json", "application/xml")

# A message that was handed over is billed to no session, and one of the table `superseded` is in none (home 0). Both
# stay in the index.
_MESSAGE = (
    "SELECT m.key, m.changed_seq, m.agent, m.role, m.created_at, coalesce(m.billed_key,"
    " (SELECT min(session_key) FROM memberships WHERE message_key = m.key), 0),"
    " (SELECT project_key FROM sessions WHERE key = coalesce(m.billed_key,"
    f" (SELECT min(session_key) FROM memberships WHERE message_key = m.key))), {BODY_COLUMNS} FROM messages m"
)
# Many messages have the same number of the change sequence, one per transaction and session: the key orders those.
# These are two conditions because SQLite seeks to a key in its index only after an equality.
_SAME_CHANGE = "WHERE m.changed_seq = ?1 AND m.key > ?2"
_LATER_CHANGE = "WHERE m.changed_seq > ?1"
_MOST_ROWS = 1000

# An output is spilled into the folder of its session; that of a subagent (`<session>.<agent id>`) into its parent's.
_FIND_SPILL = """
SELECT sp.source_key, so.generation, sp.media_type
FROM memberships m JOIN sessions s ON s.key = m.session_key
JOIN spills sp ON sp.name = ?1 AND sp.session_id IN (
    s.agent || ':' || s.external_id,
    s.agent || ':' || substr(s.external_id, 1, instr(s.external_id, '.') - 1))
JOIN sources so ON so.key = sp.source_key
WHERE m.message_key = ?2 ORDER BY sp.session_id DESC LIMIT 1
"""


class ExternalText(NamedTuple):
    """A text outside the body: a blob (`sha256`), or a spilled output (`spill`)."""

    sha256: str | None = None
    spill: str | None = None
    is_json: bool = False
    preview: str = ""


Content: TypeAlias = tuple[str | ExternalText, ...]


class Document(msgspec.Struct, frozen=True, gc=False):
    """One searchable text: a field of a part."""

    part: int
    """Index of the part in the message."""
    field: int
    """Index in `FIELDS`."""
    flags: int
    tool: str
    content: Content

    @property
    def inline_text(self) -> str:
        """The text, as far as the body contains it."""
        return "\n".join(map(_inline, self.content))


class _Blob(msgspec.Struct, gc=False):
    sha256: str
    media_type: str | None = None


class _Block(msgspec.Struct, gc=False):
    type: str = ""
    text: str = ""
    blob: _Blob | None = None
    media_type: str = ""
    filename: str | None = None
    url: str | None = None
    title: str | None = None
    data: msgspec.Raw = msgspec.Raw()


class _Result(msgspec.Struct, gc=False):
    content: tuple[_Block, ...] = ()
    error_text: str | None = None
    preliminary: bool = False
    spilled_to: str | None = None


class _Approval(msgspec.Struct, gc=False):
    reason: str | None = None


class _Part(_Block, gc=False):
    tool_name: str = ""
    state: str = ""
    input: msgspec.Raw = msgspec.Raw()
    input_text: str | None = None
    input_blob: _Blob | None = None
    results: tuple[_Result, ...] = ()
    approval: _Approval | None = None


class _Error(msgspec.Struct, gc=False):
    text: str = ""


class _Body(msgspec.Struct, gc=False):
    parts: tuple[_Part, ...] = ()
    error: _Error | None = None


_body_decoder = msgspec.json.Decoder(_Body)
_json_decoder = msgspec.json.Decoder()


class MessageToIndex(msgspec.Struct, frozen=True, gc=False):
    """What the indexer reads of a message. `home` is a session that contains it, `project` that session's project."""

    key: int
    changed_seq: int
    agent: str
    role: str
    created_at: int | None
    home: int
    project: int | None
    body: bytes


class StoreReader:
    """Reads messages and texts over a connection that knows the store's tables by their bare names."""

    def __init__(self, connection: sqlite3.Connection, database: str = "main") -> None:
        """`database` is the name under which the connection knows the store."""
        self._connection = connection
        self._database = database

    def unindexed(self, sequence: int, message_key: int) -> int:
        """The number of messages changed after a watermark (change sequence and key of the last message seen)."""
        query = (
            f"SELECT (SELECT count(*) FROM messages m {_SAME_CHANGE})"
            f" + (SELECT count(*) FROM messages m {_LATER_CHANGE})"
        )
        return self._connection.execute(query, (sequence, message_key)).fetchone()[0]

    def has_newer(self, sequence: int, message_key: int) -> bool:
        """Whether any message changed after a watermark."""
        query = (
            f"SELECT EXISTS (SELECT 1 FROM messages m {_SAME_CHANGE})"
            f" OR EXISTS (SELECT 1 FROM messages m {_LATER_CHANGE})"
        )
        return bool(self._connection.execute(query, (sequence, message_key)).fetchone()[0])

    def newer(self, sequence: int, message_key: int) -> Generator[MessageToIndex]:
        """The next messages that changed after a watermark, in the order of their changes."""
        found = 0
        for row in self._rows(f"{_MESSAGE} {_SAME_CHANGE} ORDER BY m.key LIMIT {_MOST_ROWS}", sequence, message_key):
            found += 1
            yield row
        if found < _MOST_ROWS:
            later = f"{_MESSAGE} {_LATER_CHANGE} ORDER BY m.changed_seq, m.key LIMIT {_MOST_ROWS}"
            yield from self._rows(later, sequence)

    def message(self, key: int) -> MessageToIndex | None:
        """One message; None if it was deleted."""
        return next(self._rows(f"{_MESSAGE} WHERE m.key = ?", key), None)

    def messages_of(self, session_key: int) -> Iterator[MessageToIndex]:
        """All messages of a session, including those of the table `superseded`."""
        query = (
            f"{_MESSAGE} WHERE m.key IN (SELECT message_key FROM memberships WHERE session_key = ?1"
            " UNION SELECT message_key FROM superseded WHERE session_key = ?1)"
        )
        return self._rows(query, session_key)

    def _rows(self, query: str, *parameters: int) -> Generator[MessageToIndex]:
        """Messages with their bodies. The body is empty while it is being replaced; the message then changes again."""
        read = BodyReader(self._connection, self._database)
        for row in self._connection.execute(query, parameters):
            try:
                body = read(*row[PLACE])
            except (StoreError, ZstdError):
                body = b""
            facts: list[Any] = [*row[: PLACE.start], body]
            yield MessageToIndex(*facts)

    def loader(self, message_key: int) -> Callable[[ExternalText], Iterable[bytes]]:
        """A function that yields the bytes of a text outside of a body, none if they are missing."""

        def load(outside: ExternalText) -> Iterable[bytes]:
            if outside.sha256 is not None:
                return self._blob(outside.sha256)
            return self._spill(message_key, outside.spill or "")

        return load

    def _blob(self, sha256: str) -> Iterator[bytes]:
        try:
            digest = bytes.fromhex(sha256)
        except ValueError:  # a body names what is no hash
            return
        row = self._connection.execute("SELECT rowid, compressed FROM blobs WHERE sha256 = ?", (digest,)).fetchone()
        if row is None:
            return
        key, is_compressed = row
        with self._connection.blobopen("blobs", "data", key, readonly=True, name=self._database) as blob:
            yield from decompress_in_pieces(blob) if is_compressed else iter(partial(blob.read, PIECE_SIZE), b"")

    def _spill(self, message_key: int, name: str) -> Iterator[bytes]:
        row = self._connection.execute(_FIND_SPILL, (name, message_key)).fetchone()
        if row is None or not is_searchable_type(row[2]):
            return
        try:
            yield from Archive(self._connection).iter_bytes(row[0], row[1])
        except (StoreError, ZstdError):
            # Some bytes are not archived yet, and the message changes again when they are; or they are damaged.
            return


def documents_of(body: bytes, only: Container[int] | None = None) -> list[Document]:
    """The documents of a stored body, in the order of its parts; if it cannot be decoded, one with all its strings.

    With `only`, those of the parts with these indexes.
    """
    try:
        decoded = _body_decoder.decode(body)
    # A body of a later version may have another shape; its words are worth finding all the same.
    except (msgspec.MsgspecError, RecursionError):
        return [Document(0, TEXT, 0, "", ("\n".join(json_strings(body)),))]
    parts = decoded.parts
    found: list[Document] = []
    flags = HAS_IMAGE if any([_is_image(part) for part in parts if part.type == "file"]) else 0
    for index, part in enumerate(parts):
        if only is not None and index not in only:
            continue
        if part.type == "tool-call":
            _add_call(found, index, part)
        else:
            _add_plain(found, index, part, flags)
    last = max(len(parts) - 1, 0)
    if decoded.error is not None and (only is None or last in only):
        _add_error(found, last, decoded.error.text, flags)
    return found


def _add_error(found: list[Document], part: int, text: str, flags: int) -> None:
    """Add why a call of the model failed to the text of the last part; some agents log it there as well."""
    at = next((at for at, each in enumerate(found) if (each.part, each.field) == (part, TEXT)), None)
    if at is None:
        found.append(Document(part, TEXT, flags, "", (text,)))
    elif text not in found[at].inline_text:
        found[at] = msgspec.structs.replace(found[at], content=(*found[at].content, text))


def texts_of(document: Document, load: Callable[[ExternalText], Iterable[bytes]]) -> Iterable[bytes]:
    """The document's text as UTF-8, in pieces of at most `MAX_DOCUMENT_SIZE` bytes; nearly always one."""
    content = document.content
    # A character has at most four bytes of UTF-8. "replace": a log may contain half a character, which has none.
    if len(content) == 1 and isinstance(content[0], str) and len(content[0]) < MAX_DOCUMENT_SIZE // 4:
        return (content[0].encode("utf-8", "replace"),)
    return _cut(_joined(content, load))


def _joined(content: Content, load: Callable[[ExternalText], Iterable[bytes]]) -> Iterator[bytes]:
    for index, piece in enumerate(content):
        if index:
            yield b"\n"
        if isinstance(piece, str):
            yield piece.encode("utf-8", "replace")
        elif piece.is_json:
            yield "\n".join(json_strings(b"".join(load(piece)))).encode("utf-8", "replace")
        else:
            yield from load(piece)


def _cut(stream: Iterable[bytes]) -> Iterator[bytes]:
    """Join small pieces and split large ones, at a space if there is one."""
    pending = b""
    for piece in stream:
        pending += piece
        while len(pending) > MAX_DOCUMENT_SIZE:
            end = _last_break(pending)
            yield pending[:end]
            pending = pending[end:]
    yield pending


def _last_break(data: bytes) -> int:
    """Where to split at most `MAX_DOCUMENT_SIZE` bytes: after the last line or word, or at least between characters."""
    for separator in (b"\n", b" "):
        end = data.rfind(separator, MAX_DOCUMENT_SIZE // 2, MAX_DOCUMENT_SIZE)
        if end > 0:
            return end + 1
    end = MAX_DOCUMENT_SIZE
    # A byte that continues a UTF-8 character must not begin a document.
    while data[end] & 0xC0 == 0x80 and end > MAX_DOCUMENT_SIZE - 4:
        end -= 1
    return end


def _add_plain(found: list[Document], index: int, part: _Part, flags: int) -> None:
    if part.type == "text" or part.type == "reasoning":
        if part.text or part.blob is not None:
            field = TEXT if part.type == "text" else REASONING
            found.append(Document(index, field, flags, "", (_text(part),)))
    elif part.type == "file":
        found.append(Document(index, FILE, flags, "", (_file_name(part),)))
    elif part.type.startswith("source-"):
        names = [name for name in (part.title, part.url, part.filename) if name]
        found.append(Document(index, TEXT, flags, "", ("\n".join(names),)))
    else:
        found.append(Document(index, TEXT, flags, "", ("\n".join(json_strings(bytes(part.data))),)))


def _add_call(found: list[Document], index: int, part: _Part) -> None:
    flags = FAILED if part.state == _FAILED_STATE else 0
    output: list[str | ExternalText] = []
    so_far: list[str | ExternalText] = []
    names: list[str] = []
    for result in part.results:
        for block in result.content:
            if block.type == "file":
                names.append(_file_name(block))
                flags |= HAS_IMAGE if _is_image(block) else 0
        if result.preliminary:
            so_far = _output(result) or so_far
        else:
            output += _output(result)
    # A command that Codex left running has no final result, or its end has no output: the preliminary output is
    # indexed.
    output = output or so_far
    if part.approval is not None and part.approval.reason:
        output.append(part.approval.reason)
    found.append(Document(index, INPUT, flags, part.tool_name, (_input(part),)))
    if output:
        found.append(Document(index, OUTPUT, flags, part.tool_name, tuple(output)))
    if any(names):
        found.append(Document(index, FILE, flags, part.tool_name, ("\n".join(names),)))


def _input(part: _Part) -> str | ExternalText:
    if part.input_blob is not None:
        is_json = part.input_blob.media_type == "application/json"
        return ExternalText(part.input_blob.sha256, is_json=is_json, preview=part.input_text or "")
    if part.input_text is not None:
        return part.input_text
    return "\n".join(json_strings(bytes(part.input)))


def _output(result: _Result) -> list[str | ExternalText]:
    content = [_text(block) for block in result.content if block.type == "text"]
    # An error text usually repeats the content.
    if result.error_text and not any(result.error_text in _inline(piece) for piece in content):
        content.append(result.error_text)
    if result.spilled_to:
        content.append(ExternalText(spill=result.spilled_to))
    return content


def _inline(piece: str | ExternalText) -> str:
    return piece if isinstance(piece, str) else piece.preview


def _text(block: _Block) -> str | ExternalText:
    return block.text if block.blob is None else ExternalText(block.blob.sha256, preview=block.text)


def _file_name(block: _Block) -> str:
    # A data URL is the file itself, not a name.
    url = block.url if block.url and not block.url.startswith("data:") else None
    return "\n".join([name for name in (block.filename, url) if name])


def _is_image(block: _Block) -> bool:
    return block.type == "file" and block.media_type.startswith("image/")


def is_searchable_type(media_type: str) -> bool:
    """Whether a spilled output of this media type is text."""
    return media_type.startswith(_SEARCHABLE_TYPES)


def json_strings(data: bytes) -> list[str]:
    """All string values in a JSON text, in order, without keys. Invalid JSON has none."""
    found: list[str] = []
    with suppress(msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        _collect(_json_decoder.decode(data), found)
    return found


def _collect(value: Json, found: list[str]) -> None:
    if isinstance(value, str):
        found.append(value)
    elif isinstance(value, dict):
        for item in value.values():
            _collect(item, found)
    elif isinstance(value, list):
        for item in value:
            _collect(item, found)
