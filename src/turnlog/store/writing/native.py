"""Native sessions: a program writes them through turnlog, so the store has the only copy.

No sync and no rebuild changes them. Saving a session, message or tool call again replaces it; saving an equal one
changes nothing. A retracted message stays, with the fate `retracted`. Callers choose ids. The id of a message in
another session is refused, because otherwise a program could change a session through a message of another.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, get_args

import msgspec
from msgspec.structs import replace

from turnlog.agents.changes import Changes, MessageChange, Placement, SessionChange
from turnlog.errors import ConflictError, NotFoundError
from turnlog.model import (
    Fate,
    FilePart,
    Message,
    Origin,
    Part,
    ReasoningPart,
    Role,
    TextPart,
    ToolCallPart,
    ToolResult,
)
from turnlog.model.codec import decode_message, encode
from turnlog.model.session import TitleSource, title_from
from turnlog.store import bodies
from turnlog.store.connection import Connection, connect, write_transaction
from turnlog.store.external_content import BlobLoader
from turnlog.store.frames import BodyReader
from turnlog.store.keys import find_key, own_messages
from turnlog.store.reconcile.lesser_sources import save_answers
from turnlog.store.rows import milliseconds
from turnlog.store.values import CHAT_AGENT, AgentAnswer, SessionFacts
from turnlog.store.writing.batch import Batch
from turnlog.store.writing.owners import change_owner
from turnlog.store.writing.prepared import Pricer
from turnlog.store.writing.transaction import SourceRow

LONGEST_ID: Final = 512
"""Maximum characters in the id of a session, a message or a tool call."""

_SESSION_ID: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}:[^/\x00-\x1f\x7f]+")

_HELD: Final = (
    "(SELECT session_key, message_key, position, turn, step FROM memberships"
    " UNION ALL SELECT session_key, message_key, position, turn, step FROM superseded)"
)

_TEXT_FACTS: Final = ("cwd", "git_branch", "git_commit")


class ForgottenError(ConflictError):
    """The session was forgotten: its id cannot be used again."""


class NativeSessions:
    """Writes the native sessions of one store. Use it in one thread, and `close` it."""

    def __init__(self, connection: Connection, price: Pricer, price_version: str) -> None:
        """Write over a connection that checks no foreign keys; `price` and its version are as for `Batch`."""
        self._connection = connection
        self._own = own_messages(connection)
        self._price = price
        self._price_version = price_version

    def save_session(self, session_id: str, facts: SessionFacts) -> None:
        """Create or update a session; see `Store.save_session`."""
        with write_transaction(self._connection):
            self._check(session_id)
            change = self._described(session_id, facts)
            if change is not None:
                self._write(session_id, Changes(sessions={session_id: change}))
            if "ownership" in facts:
                change_owner(self._connection, session_id, facts["ownership"])

    def save_messages(
        self,
        session_id: str,
        messages: Sequence[Message],
        *,
        retracted: Collection[str] = (),
        answers: Mapping[str, AgentAnswer] | None = None,
    ) -> None:
        """Insert or replace messages by id; see `Store.save_messages`."""
        for message in messages:
            _check(message)
        messages = [_with_origin(message) for message in messages]
        if not messages and find_key(self._connection, session_id) is None:
            raise NotFoundError(f"there is no session {session_id}: save_session, or a message, makes it")
        self._save(session_id, lambda: self._renewed(session_id, messages), retracted=retracted, answers=answers)

    def save_tool_call(self, session_id: str, message_id: str, call: ToolCallPart) -> None:
        """Insert or replace a call by its id; see `Store.save_tool_call`."""

        def with_call() -> list[Message]:
            stored = self._stored(session_id.partition(":")[0], message_id)
            if stored is None or session_id.partition(":")[2] not in self._holders(session_id, message_id):
                raise NotFoundError(f"session {session_id} holds no message {message_id}")
            if stored.role != "assistant":
                raise ConflictError(f"message {message_id} is of the {stored.role}: only an assistant calls tools")
            message = replace(stored, parts=_with_call(stored.parts, call), updated_at=None)
            _check(message)
            return self._renewed(session_id, [message])

        self._save(session_id, with_call)

    def save(
        self,
        session_id: str,
        messages: Sequence[Message],
        *,
        retracted: Collection[str] = (),
        metadata: Mapping[str, Any] | None = None,
        answers: Mapping[str, AgentAnswer] | None = None,
    ) -> None:
        """Write messages, each merged with the stored one (`merge_messages`).

        `metadata` is merged with that of the session.

        Raises:
            ConflictError: The session is read from logs or was forgotten, or a message belongs to another session.
            StoreBusyError: Another process writes for too long.
        """
        self._save(session_id, lambda: messages, retracted=retracted, metadata=metadata, answers=answers)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _save(
        self,
        session_id: str,
        find_messages: Callable[[], Sequence[Message]],
        *,
        retracted: Collection[str] = (),
        metadata: Mapping[str, Any] | None = None,
        answers: Mapping[str, AgentAnswer] | None = None,
    ) -> None:
        with write_transaction(self._connection):
            self._check(session_id)
            messages = [_storable(message) for message in find_messages()]
            self._check_messages(session_id, messages)
            save_answers(self._connection, session_id, answers or {})
            if not (messages or retracted or metadata) and find_key(self._connection, session_id) is not None:
                return
            sequence = self._write(session_id, self._changes(session_id, messages, dict(metadata or {})))
            self._retract(session_id, retracted, sequence)

    def _write(self, session_id: str, changes: Changes) -> int:
        """Write rows; return the number of the change."""
        agent = session_id.partition(":")[0]
        batch = Batch(self._connection, self._price, self._price_version)
        # Native sessions have no source.
        batch.save(SourceRow(0, agent, "", 0, None), changes)
        saved = batch.close()
        self._mark(session_id)
        return saved.last_change

    # -- what may be written

    def _check(self, session_id: str) -> None:
        if len(session_id) > LONGEST_ID or not _SESSION_ID.fullmatch(session_id):
            raise ValueError(
                f"{session_id[:100]!r} cannot be a session's id: expected <agent>:<name>, the agent in small letters,"
                f" the name without a slash, up to {LONGEST_ID} characters"
            )
        if _has_logs(session_id.partition(":")[0]):
            raise ConflictError(f"{session_id} is the name of a session whose log turnlog reads")
        query = "SELECT 1 FROM tombstones WHERE session_id = ?"
        if self._connection.execute(query, (session_id,)).fetchone():
            raise ForgottenError(f"{session_id} was forgotten")
        query = "SELECT native FROM sessions WHERE agent = ? AND external_id = ?"
        row = self._connection.execute(query, session_id.partition(":")[::2]).fetchone()
        if row is not None and not row[0]:
            raise ConflictError(f"{session_id} is a session that turnlog read from a log")

    def _check_messages(self, session_id: str, messages: Sequence[Message]) -> None:
        for message in messages:
            if not message.id or len(message.id) > LONGEST_ID:
                raise ValueError(f"{message.id[:100]!r} cannot be a message's id: 1 to {LONGEST_ID} characters")
            _check_contents(message)
            holders = self._holders(session_id, message.id)
            if holders and session_id.partition(":")[2] not in holders:
                raise ConflictError(f"message {message.id} is of another session")

    def _holders(self, session_id: str, message_id: str) -> set[str]:
        """External ids of the sessions that contain a message."""
        rows = self._connection.execute(
            f"SELECT s.external_id FROM messages g JOIN {_HELD} m ON m.message_key = g.key"
            f" JOIN sessions s ON s.key = m.session_key WHERE g.agent = ? AND g.external_id = ?{self._own}",
            (session_id.partition(":")[0], message_id),
        )
        return {name for (name,) in rows}

    # -- what is new

    def _described(self, session_id: str, facts: SessionFacts) -> SessionChange | None:
        """The facts that are new; None if there are none."""
        columns = "facts_position, created_at, updated_at, cwd, git_branch, git_commit, titles, metadata"
        row = self._connection.execute(
            f"SELECT {columns} FROM sessions WHERE agent = ? AND external_id = ?", session_id.partition(":")[::2]
        ).fetchone()
        now = datetime.now(UTC)
        position, created, updated, *texts, titles, metadata = row or (0, None, None, None, None, None, None, None)
        known: dict[str, Any] = dict(zip(_TEXT_FACTS, texts, strict=True))
        given = {name: value for name in _TEXT_FACTS if (value := facts.get(name)) is not None}
        title = title_from(facts.get("title") or "")
        new_titles: dict[TitleSource, str] = {"custom": title} if title else {}
        new_metadata = dict(facts.get("metadata") or {})
        first, last = facts.get("created_at"), facts.get("updated_at")
        # A chat sends its facts with every request: without news nothing is written, and the session has not changed.
        is_known = (
            row is not None
            and all(known[name] == value for name, value in given.items())
            and new_titles.items() <= (msgspec.json.decode(titles) if titles else {}).items()
            and _holds(msgspec.json.decode(metadata) if metadata else {}, new_metadata)
            and (first is None or (created is not None and created <= (milliseconds(first) or 0)))
            and (last is None or (updated is not None and updated >= (milliseconds(last) or 0)))
        )
        if is_known:
            return None
        return SessionChange(
            session_id=session_id,
            position=position + 1,
            project_path=given.get("cwd"),
            titles=new_titles,
            first_at=first or (now if row is None else None),
            last_at=last or (now if row is None else None),
            metadata=new_metadata,
            **given,
        )

    def _renewed(self, session_id: str, messages: Sequence[Message]) -> list[Message]:
        """The messages to store, without those that add nothing."""
        now, agent = datetime.now(UTC), session_id.partition(":")[0]
        found: list[Message] = []
        for message in messages:
            stored = self._stored(agent, message.id)
            renewed = _renew(stored, message, now)
            if renewed != stored:
                found.append(renewed)
        return found

    def _stored(self, agent: str, message_id: str) -> Message | None:
        query = f"SELECT key FROM messages WHERE agent = ? AND external_id = ?{self._own}"
        row = self._connection.execute(query, (agent, message_id)).fetchone()
        if row is None:
            return None
        body = bodies.decode(BodyReader(self._connection).of(row[0]))
        return bodies.resolve(body, BlobLoader(self._connection))

    # -- rows

    def _retract(self, session_id: str, retracted: Collection[str], sequence: int) -> None:
        agent, _, name = session_id.partition(":")
        for change in ("memberships SET fate = ?1, changed_seq = ?2", "superseded SET fate = ?1"):
            self._connection.executemany(
                f"UPDATE {change} WHERE session_key = (SELECT key FROM sessions WHERE agent = ?3 AND external_id = ?4)"
                f" AND message_key = (SELECT key FROM messages WHERE agent = ?3 AND external_id = ?5{self._own})",
                [(Fate.RETRACTED, sequence, agent, name, message_id) for message_id in retracted],
            )

    def _changes(self, session_id: str, messages: Sequence[Message], metadata: dict[str, Any]) -> Changes:
        times = [time for message in messages for time in (message.created_at, message.completed_at) if time]
        placed = list(self._place(session_id, messages))
        change = SessionChange(
            session_id=session_id,
            first_at=min(times, default=None),
            last_at=max(times, default=None),
            titles=_titles(placed),
            metadata=metadata,
        )
        return Changes(sessions={session_id: change}, messages=placed)

    def _place(self, session_id: str, messages: Sequence[Message]) -> Iterator[MessageChange]:
        """Place each message where it is stored, or at the end. A prompt begins a turn, a model call is a step."""
        known = self._known(session_id, [message.id for message in messages])
        position, turn, step = self._last(session_id)
        for message in messages:
            if message.id in known:
                at = known[message.id]
            else:
                position += 1
                if message.role == "user":
                    turn, step = turn + 1, 0
                elif message.role == "assistant":
                    step += 1
                at = known[message.id] = (position, turn, step)
            placement = Placement(
                session_id=session_id,
                position=at[0],
                turn=at[1] or None,
                step=at[2] if message.role == "assistant" else None,
            )
            yield MessageChange(message=message, placement=placement)

    def _known(self, session_id: str, message_ids: Sequence[str]) -> dict[str, tuple[int, int, int]]:
        """Position, turn and step of those of these messages that the session holds."""
        rows = self._connection.execute(
            "SELECT g.external_id, m.position, coalesce(m.turn, 0), coalesce(m.step, 0) FROM json_each(?3) w"
            " CROSS JOIN messages g ON g.agent = ?1 AND g.external_id = w.value"
            f" JOIN {_HELD} m ON m.message_key = g.key JOIN sessions s ON s.key = m.session_key"
            f" WHERE s.agent = ?1 AND s.external_id = ?2{self._own}",
            (*session_id.partition(":")[::2], msgspec.json.encode(message_ids).decode()),
        )
        return {message_id: (position, turn, step) for message_id, position, turn, step in rows}

    def _last(self, session_id: str) -> tuple[int, int, int]:
        """Position, turn and step of the session's last message; zeros if it has none."""
        row = self._connection.execute(
            f"SELECT m.position, coalesce(m.turn, 0), coalesce(m.step, 0) FROM {_HELD} m"
            " WHERE m.session_key = (SELECT key FROM sessions WHERE agent = ? AND external_id = ?)"
            " ORDER BY m.position DESC, 2 DESC, 3 DESC LIMIT 1",
            session_id.partition(":")[::2],
        ).fetchone()
        return row or (0, 0, 0)

    def _mark(self, session_id: str) -> None:
        agent, _, name = session_id.partition(":")
        self._connection.execute("UPDATE sessions SET native = 1 WHERE agent = ? AND external_id = ?", (agent, name))
        for table in ("memberships", "superseded"):
            self._connection.execute(
                f"UPDATE {table} SET source_key = NULL WHERE source_key = 0 AND session_key ="
                " (SELECT key FROM sessions WHERE agent = ? AND external_id = ?)",
                (agent, name),
            )


def open_native(path: Path, price: Pricer, price_version: str) -> NativeSessions:
    """Write native sessions of the SQLite store at `path`, which is created if necessary."""
    return NativeSessions(connect(path, checked=False), price, price_version)


def _has_logs(agent: str) -> bool:
    """Whether turnlog reads logs of this agent."""
    if agent == CHAT_AGENT:
        return False
    # Agents of other packages are found through entry points, which is slow: import only when needed.
    from turnlog.agents import agent_names

    return agent in agent_names()


def _check_contents(message: Message) -> None:
    """Raise ValueError for contents that refer to other data in the store: the writer may not be allowed to read it."""
    if b'"$archived"' in encode(message) or any(map(_names_blob, message.parts)):
        raise ValueError(f"message {message.id} names a content of a store: it must hold the content itself")


def _names_blob(part: Part) -> bool:
    if isinstance(part, ToolCallPart):
        contents = [content for result in part.results for content in result.content]
        return part.input_blob is not None or any(map(_names_blob, contents))
    return isinstance(part, TextPart | ReasoningPart | FilePart) and part.blob is not None


def _holds(known: Mapping[str, Any], given: Mapping[str, Any]) -> bool:
    return all(name in known and known[name] == value for name, value in given.items())


def _renew(stored: Message | None, new: Message, now: datetime) -> Message:
    """The message to store: the new one, with calls and results that only the stored one has.

    Its time must be later than the stored one's, because `merge_messages` compares times.
    """
    if stored is None:
        times = {"created_at": new.created_at or now, "updated_at": new.updated_at or now}
        return replace(new, **times)
    kept = {"created_at": new.created_at or stored.created_at, "parts": _with_calls(stored.parts, new.parts)}
    whole = replace(new, **kept, updated_at=stored.updated_at)
    if whole == stored:
        return stored
    at = new.updated_at
    if at is None:
        at = now if stored.updated_at is None else max(now, stored.updated_at + timedelta(milliseconds=1))
    return replace(whole, updated_at=at)


def _with_calls(stored: Sequence[Part], new: Sequence[Part]) -> tuple[Part, ...]:
    known = {part.tool_call_id: part for part in stored if isinstance(part, ToolCallPart)}
    parts = [_with_results(known.pop(part.tool_call_id, None), part) for part in new if isinstance(part, ToolCallPart)]
    calls = iter(parts)
    return (*(next(calls) if isinstance(part, ToolCallPart) else part for part in new), *known.values())


def _check(message: Message) -> None:
    """Raise TypeError for a message that could not be read again: structs do not check what they are made of.

    Raises ValueError for a role that there is not, and for a time without a time zone.
    """
    if message.role not in get_args(Role):
        roles = ", ".join(map(repr, get_args(Role)))
        raise ValueError(f"role of message {message.id!r} cannot be {message.role!r}: expected one of {roles}")
    for name, found in _times(message):
        if found.tzinfo is None:
            raise ValueError(f"{name} of message {message.id!r} has no time zone: expected one, as datetime.now(UTC)")
    try:
        decode_message(encode(message))
    except (msgspec.ValidationError, AttributeError) as error:
        raise TypeError(f"message {message.id!r} cannot be stored: {error}") from error


def _with_origin(message: Message) -> Message:
    """A user's message is a prompt if its program does not say otherwise: what counts prompts looks at the origin."""
    is_prompt = message.role == "user" and message.origin is None
    return replace(message, origin=Origin.PROMPT) if is_prompt else message


def _times(value: Message | Part | ToolResult) -> Iterator[tuple[str, datetime]]:
    """The names and values of all times in a message."""
    for name in value.__struct_fields__:
        found = getattr(value, name)
        if isinstance(found, datetime):
            yield name, found
        elif name in ("parts", "results"):
            for inner in found:
                yield from _times(inner)


def _with_call(parts: Sequence[Part], call: ToolCallPart) -> tuple[Part, ...]:
    """The parts of a message, with one call replaced or added."""
    if not call.tool_call_id or len(call.tool_call_id) > LONGEST_ID:
        raise ValueError(f"{call.tool_call_id[:100]!r} cannot be a call's id: 1 to {LONGEST_ID} characters")
    is_known = any(isinstance(part, ToolCallPart) and part.tool_call_id == call.tool_call_id for part in parts)
    if not is_known:
        return (*parts, call)
    return tuple(
        call if isinstance(part, ToolCallPart) and part.tool_call_id == call.tool_call_id else part for part in parts
    )


def _with_results(stored: ToolCallPart | None, new: ToolCallPart) -> ToolCallPart:
    """The call to store: results are kept if the new one has none of its own.

    Aborts are not kept: a chat that is saved while a call runs has one in case nothing follows.
    """
    if stored is None or new.results or all(result.status == "aborted" for result in stored.results):
        return new
    return replace(new, results=stored.results, state=stored.state)


def _storable(message: Message) -> Message:
    """The message as its JSON has it, if a text contains lone surrogates, which no column can store."""
    try:
        msgspec.json.encode(message)
    except UnicodeEncodeError:
        return decode_message(encode(message))
    return message


def _titles(placed: Sequence[MessageChange]) -> dict[TitleSource, str]:
    """The first prompt as title, if it is among these messages; the session has no other title yet."""
    for change in placed:
        if change.message.role == "user" and change.placement.turn == 1:
            texts = [part.text for part in change.message.parts if isinstance(part, TextPart)]
            title = title_from(" ".join(texts))
            return {"prompt": title} if title else {}
    return {}
