"""The store as Parquet tables for analysis: one file a table, with the same columns in every version.

docs/reference/tables.md lists the columns. Needs the extra `turnlog[parquet]`.
"""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from errno import ENOTDIR
from importlib import import_module
from pathlib import Path
from tempfile import mkstemp
from typing import Any, BinaryIO, Final, Literal, NamedTuple, Protocol, cast

import msgspec
from msgspec import UNSET

from turnlog.errors import ConflictError, NotFoundError
from turnlog.model import FilePart, Message, Part, ReasoningPart, TextPart, ToolCallPart, ToolResult
from turnlog.model.codec import encode
from turnlog.model.message import part_ids
from turnlog.platforms.files import BINARY, lock
from turnlog.redact import Redactor
from turnlog.store import bodies
from turnlog.store.connection import connect
from turnlog.store.external_content import BlobLoader, load_spill
from turnlog.store.frames import BODY_COLUMNS, BodyPlace, BodyReader
from turnlog.store.sqlite.listed import LISTED
from turnlog.store.sqlite.sql import PRICED
from turnlog.store.unfinished import end_forgetting

# pyarrow has no types of its own.
pa: Any = import_module("pyarrow")
pq: Any = import_module("pyarrow.parquet")

Kind = Literal["text", "name", "time", "count", "flag", "dollars"]

_TEXT: Final[Kind] = "text"
_NAME: Final[Kind] = "name"
_TIME: Final[Kind] = "time"
_COUNT: Final[Kind] = "count"
_FLAG: Final[Kind] = "flag"
_DOLLARS: Final[Kind] = "dollars"

_TYPES: Final[dict[Kind, Any]] = {
    # Texts of one group of rows may be more than the two gigabytes that `string` holds.
    "text": pa.large_string(),
    "name": pa.string(),
    "time": pa.timestamp("ms", "UTC"),
    "count": pa.int64(),
    "flag": pa.bool_(),
    "dollars": pa.float64(),
}

_TOKENS: Final[dict[str, Kind]] = {
    name: _COUNT
    for name in ("input", "cache_read", "cache_write_5m", "cache_write_1h", "cache_write", "output", "reasoning")
}

TABLES: Final[dict[str, dict[str, Kind]]] = {
    "sessions": {
        **dict.fromkeys(("session_id", "agent", "project", "project_path", "title", "cwd", "git_branch"), _NAME),
        **{"agent_version": _NAME, "created_at": _TIME, "updated_at": _TIME, "active_ms": _COUNT},
        **{"parent_id": _NAME, "relationship": _NAME},
        **dict.fromkeys(("turns", "messages", "prompts", "steps", "tool_calls", "failed_tool_calls"), _COUNT),
        **dict.fromkeys(("calls", "unknown_calls", "unpriced_calls"), _COUNT),
        **_TOKENS,
        **{"cost": _DOLLARS, "reported_cost": _DOLLARS, "starred": _FLAG, "archived": _FLAG, "tags": _NAME},
    },
    "messages": {
        **{"session_id": _NAME, "position": _COUNT, "agent": _NAME, "message_id": _NAME, "is_billed_here": _FLAG},
        **{"role": _NAME, "origin": _NAME, "turn": _COUNT, "step": _COUNT, "fate": _NAME, "model": _NAME},
        **{"created_at": _TIME, "completed_at": _TIME, "stop_reason": _NAME},
        **_TOKENS,
        **{"cost": _DOLLARS, "text": _TEXT},
    },
    "parts": {
        **{"agent": _NAME, "message_id": _NAME, "sequence": _COUNT, "part_id": _NAME, "type": _NAME},
        **{"text": _TEXT, "media_type": _NAME, "filename": _NAME, "content": _TEXT},
    },
    "tool_calls": {
        **{"agent": _NAME, "message_id": _NAME, "sequence": _COUNT, "tool_call_id": _NAME, "tool_name": _NAME},
        **{"kind": _NAME, "state": _NAME, "input": _TEXT, "started_at": _TIME, "child_session_id": _NAME},
    },
    "results": {
        **{"agent": _NAME, "message_id": _NAME, "tool_call_id": _NAME, "result_id": _NAME, "status": _NAME},
        **{"preliminary": _FLAG, "text": _TEXT, "error_text": _TEXT, "exit_code": _COUNT, "completed_at": _TIME},
        **{"duration_ms": _COUNT, "files": _COUNT},
    },
    "usage": {
        **{"quarter_hour": _TIME, "session_id": _NAME, "agent": _NAME, "project": _NAME, "model": _NAME},
        **{"is_total": _FLAG},
        **dict.fromkeys(("calls", "unknown_calls", "covered_calls", "unpriced_calls"), _COUNT),
        **_TOKENS,
        **{"cost": _DOLLARS, "reported_cost": _DOLLARS},
    },
    "files": {
        **{"path": _NAME, "session_id": _NAME, "position": _COUNT, "agent": _NAME, "message_id": _NAME},
        **{"tool_call_id": _NAME, "tool_name": _NAME, "kind": _NAME, "state": _NAME, "at": _TIME},
    },
}
"""Table -> its columns. Columns are added and never change."""

_ROWS: Final = 8_192
"""Rows of one group: a reader that needs few skips the others."""

_CHARACTERS: Final = 8 << 20
"""Characters of texts that are in memory at most, but for one message."""

Value = str | int | float | bool | None


class WrittenTable(NamedTuple):
    """A file that was written."""

    name: str
    path: Path
    rows: int
    size: int
    """In bytes."""


def write_tables(
    store_path: Path,
    folder: Path,
    sessions: Iterable[str] | None = None,
    *,
    redact: bool = False,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> list[WrittenTable]:
    """Write all tables into a folder, which is made; files of an earlier export are replaced once all are written.

    Args:
        store_path: The store.
        folder: Where the files go.
        sessions: Ids of the sessions whose rows are written; None: all.
        redact: Mask secrets in texts, inputs, outputs, titles and paths. All is read once more, before: what a name or
            context shows to be a secret is masked in every row of every session.
        on_progress: Called with the number of messages that are read, and of all; twice with `redact`.

    Raises ConflictError if something in the folder is not of an earlier export, OSError if it cannot be written.
    """
    known = {f"{name}.parquet": is_written_table for name in TABLES} | {_CARD: _is_card}
    prepare_folder(folder, known)
    end_forgetting(store_path)
    with ExitStack() as unfinished:
        with closing(connect(store_path, read_only=True)) as connection, ExitStack() as stack:
            _choose(connection, sessions)
            redactor = Redactor() if redact else None
            if redactor is not None:
                _write_rows(
                    connection, {name: _Learner(names, redactor) for name, names in TABLES.items()}, on_progress
                )
                _learn_spills(connection, redactor)
            writers = {
                name: stack.enter_context(TableWriter(folder / f"{name}.parquet", columns, redactor))
                for name, columns in TABLES.items()
            }
            for writer in writers.values():
                unfinished.callback(writer.discard)
            _write_rows(connection, writers, on_progress)
        refuse_others(folder, known)
        # Nothing was replaced before all was written. A kill from here on leaves tables of two exports: without a card.
        (folder / _CARD).unlink(missing_ok=True)
        written = [WrittenTable(name, writer.path, writer.rows, writer.publish()) for name, writer in writers.items()]
        _write_card(folder, _card(written))
    return written


def _learn_spills(connection: sqlite3.Connection, redactor: Redactor) -> None:
    """Learn the outputs of which the tables have a preview only, one at a time."""
    names = connection.execute(
        f"SELECT p.session_id, p.name FROM spills p JOIN main.sessions x ON p.session_id = {_ID}"
        " JOIN chosen c ON c.key = x.key ORDER BY 1, 2"
    )
    for session_id, name in names.fetchall():
        try:
            redactor.learn(load_spill(connection, session_id, name).decode(errors="replace"))
        except NotFoundError:
            # Its archive is gone; nothing of it leaves.
            continue


def prepare_folder(folder: Path, known: Mapping[str, Callable[[Path], bool]]) -> None:
    """Make the folder of an export. What an earlier one wrote may be there: it is known by what it is, not by a name.

    Args:
        folder: Where it is.
        known: Name of what such an export writes, or a reader of it beside it -> whether something is that.

    Raises ConflictError for anything else, before something is written, and OSError if the folder cannot be made.
    """
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(ENOTDIR, "is a file: name a folder for the tables", str(folder))
    folder.mkdir(parents=True, exist_ok=True)
    left: list[Path] = []
    for entry in sorted(folder.iterdir()):
        unfinished = _UNFINISHED_NAME.fullmatch(entry.name)
        if unfinished is not None and unfinished[1] in known and entry.is_file() and not entry.is_symlink():
            left.append(entry)
        elif entry.name not in known or not known[entry.name](entry):
            raise _not_ours(entry)
    for entry in left:
        _remove_unfinished(entry)


def refuse_others(folder: Path, known: Mapping[str, Callable[[Path], bool]]) -> None:
    """Look again before something is replaced: writing takes a minute, in which somebody may have come with a file.

    Raises ConflictError if what is there under a name of `known` was not written by such an export.
    """
    for name, is_ours in known.items():
        entry = folder / name
        if os.path.lexists(entry) and not is_ours(entry):
            raise _not_ours(entry)


def _not_ours(entry: Path) -> ConflictError:
    return ConflictError(f"{entry.parent} has {entry.name}, which no such export has written: name a folder of its own")


def _remove_unfinished(part: Path) -> None:
    """Delete what a killed export left; one that is still being written has a lock."""
    descriptor = os.open(part, os.O_RDWR | BINARY)
    try:
        is_left = lock(descriptor)
    finally:
        os.close(descriptor)
    if is_left:
        part.unlink(missing_ok=True)


def is_written_table(path: Path) -> bool:
    """Whether an export has written this table."""
    if path.is_symlink() or not path.is_file():
        return False
    try:
        metadata: dict[bytes, bytes] = pq.read_schema(path).metadata or {}
    except (pa.ArrowException, OSError):
        return False
    return metadata.get(_MARK) == _MARKED


def _is_card(path: Path) -> bool:
    if path.name != _CARD or path.is_symlink() or not path.is_file():
        return False
    with path.open("rb") as file:
        return _WRITTEN_BY.encode() in file.read(_CARD_SIZE).splitlines()


def _choose(connection: sqlite3.Connection, sessions: Iterable[str] | None) -> None:
    """The temporary table of the sessions' keys."""
    connection.execute("CREATE TEMP TABLE chosen (key INTEGER PRIMARY KEY)")
    if sessions is None:
        connection.execute("INSERT INTO chosen SELECT key FROM main.sessions")
        return
    names = [tuple(each.split(":", 1)) for each in sessions]
    connection.executemany(
        "INSERT OR IGNORE INTO chosen SELECT key FROM main.sessions WHERE agent = ? AND external_id = ?", names
    )


_ID: Final = "x.agent || ':' || x.external_id"

_BUCKETS: Final = ", ".join(f"{{0}}.{name}" for name in _TOKENS)

_QUERIES: Final = {
    "sessions": (
        "SELECT s.agent || ':' || s.external_id, s.agent, o.name, o.path, coalesce(a.title, s.title), s.cwd,"
        " s.git_branch, s.agent_version, s.created_at, s.updated_at, s.active_ms,"
        " parent.agent || ':' || parent.external_id, s.relationship, s.turns,"
        " s.messages, s.prompts, s.steps, s.tool_calls, s.failed_tool_calls, s.calls, s.unknown_calls,"
        f" s.unpriced_calls, {_BUCKETS.format('s')}, {PRICED.format('s')}, s.reported_cost / 1e9,"
        " coalesce(a.starred, 0) = 1, coalesce(a.archived, 0) = 1, a.tags"
        " FROM chosen c JOIN main.sessions s ON s.key = c.key"
        " LEFT JOIN projects o ON o.key = s.project_key LEFT JOIN main.sessions parent ON parent.key = s.parent_key"
        f" LEFT JOIN annotations a ON a.session_id = s.agent || ':' || s.external_id WHERE {LISTED} ORDER BY s.key"
    ),
    "usage": (
        f"SELECT iif(u.quarter_hour > 0, u.quarter_hour * 900000, NULL), {_ID}, x.agent, o.name, d.name, u.is_total,"
        " u.calls, u.unknown_calls,"
        f" u.covered_calls, u.unpriced_calls, {_BUCKETS.format('u')}, {PRICED.format('u')},"
        " nullif(u.reported_cost, 0) / 1e9"
        " FROM usage u JOIN chosen c ON c.key = u.session_key JOIN main.sessions x ON x.key = c.key"
        " LEFT JOIN models d ON d.key = u.model_key LEFT JOIN projects o ON o.key = x.project_key"
        " ORDER BY u.quarter_hour, u.session_key"
    ),
    "files": (
        f"SELECT t.path, {_ID}, s.position, x.agent, m.external_id, p.tool_call_id, p.tool_name, p.tool_kind,"
        " p.tool_state, coalesce(p.started_at, m.created_at) FROM (SELECT path, message_key, sequence FROM parts"
        " WHERE path IS NOT NULL UNION ALL SELECT path, message_key, sequence FROM more_paths) t"
        " JOIN parts p ON p.message_key = t.message_key AND p.sequence = t.sequence"
        " JOIN messages m ON m.key = p.message_key JOIN memberships s ON s.message_key = m.key"
        " JOIN chosen c ON c.key = s.session_key JOIN main.sessions x ON x.key = c.key"
    ),
}

_MESSAGES: Final = (
    f"SELECT m.key, {_ID}, s.position, m.agent, m.external_id, m.billed_key IS s.session_key, m.role, m.origin, s.turn,"
    " s.step, s.fate, d.name, m.created_at, m.completed_at, m.stop_reason,"
    f" {_BUCKETS.format('m')}, m.cost / 1e9, {BODY_COLUMNS}"
    " FROM messages m JOIN memberships s ON s.message_key = m.key JOIN chosen c ON c.key = s.session_key"
    " JOIN main.sessions x ON x.key = c.key LEFT JOIN models d ON d.key = m.model_key ORDER BY m.key"
)


_PLACE: Final = len(BodyPlace._fields)


def _write_rows(
    connection: sqlite3.Connection, writers: Mapping[str, _TakesRows], on_progress: Callable[[int, int], None]
) -> None:
    for name, query in _QUERIES.items():
        for row in connection.execute(query):
            writers[name].add(row)
    _write_messages(connection, writers, on_progress)


def _write_messages(
    connection: sqlite3.Connection, writers: Mapping[str, _TakesRows], on_progress: Callable[[int, int], None]
) -> None:
    """Messages of each session, and the parts, calls and results of each message once."""
    (total,) = connection.execute(
        "SELECT count(*) FROM memberships s JOIN chosen c ON c.key = s.session_key"
    ).fetchone()
    # Not with the texts that stay in the archive: they are signatures and encrypted reasoning, which no column has.
    read, load = BodyReader(connection), BlobLoader(connection)
    last, text = None, None
    for done, (key, *columns) in enumerate(connection.execute(_MESSAGES)):
        row, place = columns[:-_PLACE], columns[-_PLACE:]
        if key != last:
            last = key
            message = bodies.resolve(bodies.decode(read(*place)), load)
            text = "\n\n".join(part.text for part in message.parts if isinstance(part, TextPart)) or None
            _write_parts(message, row[2], writers)
        writers["messages"].add((*row, text))
        if done % _ROWS == 0:
            on_progress(done, total)
    on_progress(total, total)


def _write_parts(message: Message, agent: str, writers: Mapping[str, _TakesRows]) -> None:
    for sequence, (part, part_id) in enumerate(zip(message.parts, part_ids(message), strict=True)):
        writers["parts"].add((agent, message.id, sequence, part_id, part.type, *_content(part)))
        if isinstance(part, ToolCallPart):
            writers["tool_calls"].add((agent, message.id, sequence, *_call(part)))
            for result in part.results:
                writers["results"].add((agent, message.id, part.tool_call_id, *_result(result)))


def _content(part: Part) -> tuple[Value, ...]:
    """Text, media type, file name, and as JSON what has no column of its own."""
    if isinstance(part, TextPart | ReasoningPart):
        return part.text, None, None, None
    if isinstance(part, ToolCallPart):
        return None, None, None, None
    if isinstance(part, FilePart):
        return None, part.media_type, part.filename, _json(part)
    return None, None, None, _json(part)


def _json(part: Part) -> str:
    return encode(msgspec.structs.replace(part, provider=None)).decode()


def _call(part: ToolCallPart) -> tuple[Value, ...]:
    given = part.input_text if part.input is UNSET else bytes(part.input).decode(errors="replace")
    started_at = _milliseconds(part.started_at)
    return part.tool_call_id, part.tool_name, str(part.kind), str(part.state), given, started_at, part.child_session_id


def _result(result: ToolResult) -> tuple[Value, ...]:
    return (
        *(result.id, result.status, result.preliminary, result.output_text, result.error_text, result.exit_code),
        *(_milliseconds(result.completed_at), result.duration_ms),
        sum(part.type == "file" for part in result.content),
    )


def _milliseconds(moment: Any) -> int | None:
    return None if moment is None else round(moment.timestamp() * 1000)


_SAID: Final = frozenset(
    ("text", "content", "input", "error_text", "title", "tags", "cwd", "git_branch", "path", "filename")
) | {"project", "project_path"}
"""Columns of what people, models and programs wrote, in which secrets may be."""

_NAMED: Final = frozenset(
    ("session_id", "parent_id", "message_id", "part_id", "tool_call_id", "result_id", "child_session_id", "tool_name")
) | {"model", "agent_version", "media_type", "stop_reason"}
"""Columns of ids and names, by which rows are joined: two with a secret stay two, and the same one in all tables."""

_JSON: Final = frozenset(("content", "input", "tags"))
"""Those of JSON; an input may be another text."""

_UNFINISHED: Final = ".turnlog-part"
"""The end of the name of a file that is being written: before it is what makes the name unique, before that the file's
name. What a killed export left has no metadata to know it by."""

_UNFINISHED_NAME: Final = re.compile(rf"(.+)\.\w+{re.escape(_UNFINISHED)}")

_MARK, _MARKED = b"written_by", b"turnlog export"
"""Metadata of each file, by which the next export knows that it may replace it."""

_CARD: Final = "README.md"

_WRITTEN_BY: Final = "Written by `turnlog export --as parquet`."
"""The line by which the next export knows this file."""

_CARD_SIZE: Final = 4096
"""Bytes of such a file at most."""


class _TakesRows(Protocol):
    """Takes the rows of one table."""

    def add(self, row: Sequence[Value], /) -> None:
        """Take a row, whose values are in the order of the columns."""
        ...


class _Learner:
    """Learns the secrets in the rows of one table."""

    def __init__(self, columns: Iterable[str], redactor: Redactor) -> None:
        self._written = _places(columns, _SAID)
        self._json = _places(columns, _JSON)
        self._redactor = redactor

    def add(self, row: Sequence[Value], /) -> None:
        """Learn what people, models and programs wrote."""
        for index in self._written:
            self._redactor.learn(_exact(row[index]) if index in self._json else row[index])


def _places(columns: Iterable[str], names: frozenset[str]) -> list[int]:
    return [index for index, name in enumerate(columns) if name in names]


def _exact(value: Value) -> Any:
    """A value of a column of JSON, in which an escape may be beside a secret; as it is where it is no JSON."""
    if not isinstance(value, str) or not value.startswith(("{", "[", '"')):
        return value
    try:
        msgspec.json.decode(value)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return value
    return msgspec.Raw(value.encode())


class TableWriter:
    """Writes one table, a group of rows at a time."""

    def __init__(self, path: Path, columns: dict[str, Kind], redactor: Redactor | None) -> None:
        self.path = path
        self._redactor = redactor
        self._written = _places(columns, _SAID)
        self._json = _places(columns, _JSON)
        self._named = _places(columns, _NAMED)
        self.rows = 0
        self._kinds = tuple(columns.values())
        self._schema = pa.schema([(name, _TYPES[kind]) for name, kind in columns.items()], metadata={_MARK: _MARKED})
        self._texts = [index for index, kind in enumerate(columns.values()) if kind == _TEXT]
        self._waiting: list[Sequence[Value]] = []
        self._characters = 0

    def __enter__(self) -> TableWriter:
        """Open the file beside the one that it will replace."""
        self._part, self._file = _open_unfinished(self.path)
        self._writer = pq.ParquetWriter(self._file, self._schema, compression="zstd")
        return self

    def __exit__(self, *error: object) -> None:
        """Write the rest."""
        is_whole = False
        try:
            with self._file:
                try:
                    if error[0] is None:
                        self._flush()
                finally:
                    # Which writes too: on a full disk it fails, and so does closing the file.
                    self._writer.close()
            is_whole = error[0] is None
        finally:
            if not is_whole:
                self._part.unlink(missing_ok=True)

    def add(self, row: Sequence[Value], /) -> None:
        """Add a row, whose values are in the order of the columns."""
        if self._redactor is not None:
            row = list(row)
            for index in self._written:
                row[index] = self._clean(row[index], is_json=index in self._json)
            for index in self._named:
                if isinstance(name := row[index], str):
                    row[index] = self._redactor.redact_id(name)
        self._waiting.append(row)
        for index in self._texts:
            if text := row[index]:
                self._characters += len(cast(str, text))
        if len(self._waiting) >= _ROWS or self._characters >= _CHARACTERS:
            self._flush()

    def _clean(self, value: Value, *, is_json: bool) -> Value:
        assert self._redactor is not None
        exact = _exact(value) if is_json else value
        made = self._redactor.redact(exact)
        return bytes(made).decode() if isinstance(made, msgspec.Raw) else made

    def publish(self) -> int:
        """Give the file its name; returns its size in bytes."""
        self._part.replace(self.path)
        return self.path.stat().st_size

    def discard(self) -> None:
        """Delete the file, unless it has its name."""
        self._part.unlink(missing_ok=True)

    def _flush(self) -> None:
        columns = list(zip(*self._waiting, strict=True)) or [()] * len(self._kinds)
        arrays = [_array(values, kind) for values, kind in zip(columns, self._kinds, strict=True)]
        self._writer.write_batch(pa.record_batch(arrays, schema=self._schema))
        self.rows += len(self._waiting)
        self._waiting, self._characters = [], 0


def _open_unfinished(path: Path) -> tuple[Path, BinaryIO]:
    """A new file beside the one that it will replace, locked while it is written."""
    # Of a name that nothing has: another export may write into the same folder, and links are not followed.
    descriptor, part = mkstemp(_UNFINISHED, f"{path.name}.", path.parent)
    lock(descriptor)
    return Path(part), os.fdopen(descriptor, "wb")


def _array(values: Sequence[Value], kind: Kind) -> Any:
    """A column, with SQLite's flags as booleans."""
    if kind == _FLAG:
        values = [None if value is None else bool(value) for value in values]
    try:
        return pa.array(values, type=_TYPES[kind])
    except UnicodeEncodeError:
        # UTF-8 cannot hold halves of surrogate pairs. Few columns have any: to look first takes as long as the rest.
        whole = [value.encode("utf-8", "replace").decode() if isinstance(value, str) else value for value in values]
        return pa.array(whole, type=_TYPES[kind])


def _write_card(folder: Path, text: str) -> None:
    """Write the file that describes the folder. Of one that a kill leaves, as of a table, the next export knows it."""
    part, file = _open_unfinished(folder / _CARD)
    try:
        with file:
            file.write(text.encode())
        part.replace(folder / _CARD)
    finally:
        part.unlink(missing_ok=True)


def _card(written: Iterable[WrittenTable]) -> str:
    """What the folder holds, with a head by which Hugging Face `datasets` finds each table."""
    return "\n".join([*_card_lines(written), ""])


def _card_lines(written: Iterable[WrittenTable]) -> Iterator[str]:
    tables = list(written)
    yield "---"
    yield "configs:"
    for table in tables:
        yield f"- config_name: {table.name}"
        yield f"  data_files: {table.path.name}"
    yield "---"
    yield ""
    yield "# Sessions of coding agents"
    yield ""
    yield _WRITTEN_BY
    yield ""
    yield "| table | rows |"
    yield "|---|---|"
    for table in tables:
        yield f"| {table.name} | {table.rows} |"
