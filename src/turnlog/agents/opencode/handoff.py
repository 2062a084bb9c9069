"""A conversation as a session of OpenCode: rows of its database, in the format of 1.18, written in one transaction.

OpenCode's own `import` writes the same rows, but not at once, and stops in the middle where it does not understand a
message. The tables are OpenCode's: the database must be there.
"""

from __future__ import annotations

import base64
import secrets
import sqlite3
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from turnlog.agents.databases import open_snapshot
from turnlog.agents.handoffs import MARK, HandoffConversation, NewSession, mark, object_input
from turnlog.agents.opencode import PROGRAMS, Program
from turnlog.agents.opencode.database import database_session_of
from turnlog.errors import HandoffError, SourceError
from turnlog.model import FilePart, Message, Part, TextPart, ToolCallPart

_BUSY_SECONDS: Final = 5.0

_NO_TOKENS: Final = {"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}}

_MODEL: Final = {"providerID": "unknown", "modelID": "unknown"}
"""Of a prompt, where the database has no prompt yet: OpenCode asks for the model then."""

_GLOBAL: Final = "global"
"""The project of folders that are in none."""


class OpenCodeWriter:
    """See `turnlog.agents.handoffs.HandoffWriter`."""

    unanswered = "Tool execution aborted"
    takes_text = False
    texts_first = True
    is_flat = True
    unsent = None
    version = "1.18.33"

    def __init__(self, program: Program) -> None:
        """Write for one program of the family."""
        self._program = program

    def write(self, conversation: HandoffConversation, home: Path) -> NewSession:
        """The rows. Raises HandoffError for a database of another schema; where there is none, nothing is saved."""
        path = home / f"{self._program.database}.db"
        try:
            database = _read_database(path, conversation.folder) if path.is_file() else _Database()
        except (SourceError, sqlite3.Error) as error:
            reason = error if isinstance(error, SourceError) else f"{path}: {error}"
            raise HandoffError(f"the database can take no session: {reason}") from None
        except OSError as error:
            raise HandoffError(f"{path} cannot be read ({error.strerror or error})") from None
        return NewRows(path, list(_Rows(conversation, database, self.version).all()))

    def remove(self, path: str, external_id: str) -> None:
        """Delete the session's rows. Raises HandoffError if it was continued, OSError if that cannot be done."""
        found = database_session_of(path)
        database = found[0] if found else Path(path)
        try:
            with closing(_connect(database)) as connection, connection:
                # Nothing is added between the look and the deletion.
                connection.execute("BEGIN IMMEDIATE")
                own = f"SELECT count(*) FROM message WHERE session_id = ? AND json_extract(data, '$.{MARK}') IS NULL"
                if connection.execute(own, (external_id,)).fetchone()[0]:
                    raise HandoffError(f"{external_id} was continued and is left as it is")
                # What refers to another row goes before it.
                for table in ("part", "message"):
                    connection.execute(f"DELETE FROM {table} WHERE session_id = ?", (external_id,))
                connection.execute("DELETE FROM session WHERE id = ?", (external_id,))
        except sqlite3.Error as error:
            raise OSError(0, str(error), str(database)) from error


OPENCODE: Final = OpenCodeWriter(PROGRAMS[0])
KILO: Final = OpenCodeWriter(PROGRAMS[1])


def _connect(database: Path) -> sqlite3.Connection:
    """A connection that writes to a database that is there."""
    return sqlite3.connect(f"{database.absolute().as_uri()}?mode=rw", uri=True, timeout=_BUSY_SECONDS)


_Row = tuple[str, dict[str, Any]]
"""A table, and the columns of a row of it."""


class NewRows(NewSession):
    """A session as rows of a database."""

    def __init__(self, database: Path, rows: Sequence[_Row]) -> None:
        """Name the rows; one of them is the session's."""
        self.external_id = next(str(row["id"]) for table, row in rows if table == "session")
        self._database = database
        self._rows = rows

    @property
    def paths(self) -> tuple[Path, ...]:
        """See `NewSession.paths`."""
        return (self._database,)

    @property
    def size(self) -> int:
        """See `NewSession.size`."""
        return sum(len(str(row.get("data", ""))) for _, row in self._rows)

    @property
    def refusal(self) -> str | None:
        """See `NewSession.refusal`: the tables are made by the program alone."""
        missing = f"there is no database {self._database}: start the agent once, it makes it"
        return None if self._database.is_file() else missing

    def save(self) -> None:
        """See `NewSession.save`."""
        try:
            with closing(_connect(self._database)) as connection, connection:
                # Without this SQLite takes rows that refer to nothing, which the program cannot open.
                connection.execute("PRAGMA foreign_keys = ON")
                for table, row in self._rows:
                    names = ", ".join(f'"{name}"' for name in row)
                    # The program may have made its project of all folders since the database was read.
                    verb = "INSERT OR IGNORE" if table == "project" else "INSERT"
                    marks = ", ".join("?" * len(row))
                    connection.execute(f'{verb} INTO "{table}" ({names}) VALUES ({marks})', tuple(row.values()))
        except sqlite3.Error as error:
            # Other constraints are the program's own: a row that it does not take is no session that is there.
            is_there = getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY
            raise (FileExistsError if is_there else OSError)(0, str(error), str(self._database)) from error


class _Database(NamedTuple):
    """What a database says of a folder; nothing of one that is not there yet."""

    columns: Mapping[str, Set[str]] = {}
    """The columns of each table."""
    project: str = _GLOBAL
    prompt: Mapping[str, Any] = {}
    """The newest prompt, which has a model that the user has."""


def _read_database(path: Path, folder: Path) -> _Database:
    tables = frozenset({"session", "message", "part", "project"})
    with open_snapshot(path, tables, lambda data: data.decode(errors="replace")) as connection:
        columns = {
            table: {column[0] for column in connection.execute(f"SELECT * FROM {table} LIMIT 0").description}
            for table in tables
        }
        return _Database(columns, _project_of(connection, folder), _newest_prompt(connection))


def _project_of(connection: sqlite3.Connection, folder: Path) -> str:
    """The project of the newest session in the folder, else the one whose folder is nearest above it."""
    newest = connection.execute(
        "SELECT project_id FROM session WHERE directory = ? ORDER BY time_updated DESC LIMIT 1", (str(folder),)
    ).fetchone()
    if newest is not None:
        return newest[0]
    projects = {tree: name for name, tree in connection.execute("SELECT id, worktree FROM project")}
    above = (str(each) for each in (folder, *folder.parents))
    return next((projects[each] for each in above if each in projects and each != "/"), _GLOBAL)


def _newest_prompt(connection: sqlite3.Connection) -> Mapping[str, Any]:
    """The JSON of the newest prompt: its model is one that the user has."""
    rows = connection.execute("SELECT data FROM message ORDER BY time_created DESC LIMIT 50")
    for (data,) in rows:
        try:
            found = msgspec.json.decode(data, type=dict[str, Any])
        except msgspec.MsgspecError:
            continue
        if found.get("role") == "user" and MARK not in found and isinstance(found.get("model"), dict):
            return found
    return {}


class _Rows:
    """The rows of one session. Ids are of the time of the hand-over and sort in the order of messages."""

    def __init__(self, conversation: HandoffConversation, database: _Database, version: str) -> None:
        self._conversation = conversation
        self._database = database
        self._version = version
        self._at = int(conversation.at.timestamp() * 1000)
        # The program counts ids of sessions downwards, so that the newest sorts first.
        self._session = _new_id("ses", ~(self._at * 0x1000))
        self._numbers = iter(range(1 << 30))

    def all(self) -> Iterator[_Row]:
        conversation, folder = self._conversation, str(self._conversation.folder)
        if self._database.project == _GLOBAL:
            row = {"id": _GLOBAL, "worktree": "/", "sandboxes": "[]"}
            yield self._row("project", row | {"time_created": self._at, "time_updated": self._at})
        yield self._row(
            "session",
            {
                "id": self._session,
                "project_id": self._database.project,
                "slug": "handed-over",
                "directory": folder,
                "title": conversation.title or "Handed over",
                "version": self._version,
                "time_created": self._at,
                "time_updated": self._at,
            },
        )
        prompt = None
        for message, time in zip(conversation.messages, self._times(), strict=True):
            name = self._next_id("msg")
            # An answer has to name a prompt: one before all prompts names itself.
            prompt = name if message.role == "user" or prompt is None else prompt
            answers = message.role == "assistant"
            info = self._answer(message, time, prompt) if answers else self._prompt(time)
            yield self._placed("message", name, time, {**info, MARK: mark(conversation, message)})
            for part in self._parts(message, time, name):
                row = self._placed("part", self._next_id("prt"), time, part)
                row[1]["message_id"] = name
                yield row

    def _row(self, table: str, row: dict[str, Any]) -> _Row:
        """The row with those columns that this version of the database has."""
        columns = self._database.columns.get(table, row)
        return table, {name: value for name, value in row.items() if name in columns}

    def _placed(self, table: str, name: str, time: int, data: Mapping[str, Any]) -> _Row:
        row = {"id": name, "session_id": self._session, "time_created": time, "time_updated": time}
        return self._row(table, {**row, "message_id": "", "data": msgspec.json.encode(data).decode()})

    def _next_id(self, kind: str) -> str:
        # Below every id that the program makes after the hand-over: what it adds sorts behind.
        return _new_id(kind, (self._at - 1) * 0x1000 - (1 << 24) + next(self._numbers))

    def _times(self) -> list[int]:
        """When each message was created, in Unix milliseconds: growing, and before the hand-over."""
        times: list[int] = []
        latest = self._at
        for message in reversed(self._conversation.messages):
            latest = min(latest - 1, _milliseconds(message.created_at) or latest)
            times.append(latest)
        return times[::-1]

    def _prompt(self, time: int) -> dict[str, Any]:
        newest = self._database.prompt
        return {
            "role": "user",
            "time": {"created": time},
            "agent": newest.get("agent") or "build",
            "model": newest.get("model") or _MODEL,
        }

    def _answer(self, message: Message, time: int, prompt: str) -> dict[str, Any]:
        folder = str(self._conversation.folder)
        return {
            "parentID": prompt,
            "role": "assistant",
            "mode": "build",
            "agent": "build",
            "path": {"cwd": folder, "root": folder},
            "cost": 0,
            "tokens": _NO_TOKENS,
            "modelID": message.model or "unknown",
            "providerID": "turnlog",
            "time": {"created": time, "completed": time},
            "finish": _finish(message),
        }

    def _parts(self, message: Message, time: int, name: str) -> Iterator[dict[str, Any]]:
        if message.role == "user":
            yield from (_content(part) for part in message.parts)
            return
        yield {"type": "step-start"}
        for part in message.parts:
            yield self._call(part, time, name) if isinstance(part, ToolCallPart) else _content(part)
        yield {"type": "step-finish", "reason": _finish(message), "cost": 0, "tokens": _NO_TOKENS}

    def _call(self, call: ToolCallPart, time: int, message: str) -> dict[str, Any]:
        result = call.results[0]
        text = "\n".join(part.text for part in result.content if isinstance(part, TextPart))
        files = [_content(part) for part in result.content if isinstance(part, FilePart)]
        state: dict[str, Any] = {"input": object_input(call), "metadata": {}, "time": {"start": time, "end": time}}
        if result.status == "success":
            state |= {"status": "completed", "output": text, "title": call.title or call.tool_name}
        else:
            state |= {"status": "error", "error": text}
        if files:
            placed = {"sessionID": self._session, "messageID": message}
            state["attachments"] = [{"id": self._next_id("prt"), **placed, **file} for file in files]
        marked = mark(self._conversation, status=result.status)
        return {"type": "tool", "tool": call.tool_name, "callID": call.tool_call_id, "state": state, MARK: marked}


def _finish(message: Message) -> str:
    return "tool-calls" if any(isinstance(part, ToolCallPart) for part in message.parts) else "stop"


def _content(part: Part) -> dict[str, Any]:
    if isinstance(part, TextPart):
        return {"type": "text", "text": part.text}
    assert isinstance(part, FilePart)
    data = base64.b64encode(part.data or b"").decode()
    name = {"filename": part.filename} if part.filename else {}
    return {"type": "file", "mime": part.media_type, **name, "url": f"data:{part.media_type};base64,{data}"}


def _milliseconds(moment: datetime | None) -> int | None:
    return None if moment is None else int(moment.timestamp() * 1000)


_LETTERS: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def _new_id(kind: str, value: int) -> str:
    """An id as OpenCode makes them: six bytes that sort, then random letters."""
    return f"{kind}_{value & 0xFFFFFFFFFFFF:012x}{''.join(secrets.choice(_LETTERS) for _ in range(14))}"
