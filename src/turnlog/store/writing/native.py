"""Native sessions: written by a program through turnlog, and nowhere else, so that the store is their only home.

Neither a pass over logs nor a rebuild changes them. A message that is saved again takes the place of what was saved
before, when its `updated_at` is later; one that is taken back stays, with the fate `retracted`. Ids are the caller's:
one that another session holds is refused, since a message would otherwise be changed from a session it is not in.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from turnlog.agents.changes import Changes, MessageChange, Placement, SessionChange
from turnlog.errors import ConflictError
from turnlog.model import Fate, Message, TextPart
from turnlog.model.codec import decode_message, encode
from turnlog.model.session import TitleSource, title_from
from turnlog.store.connection import connect, write_transaction
from turnlog.store.reconcile.lesser_sources import save_answers
from turnlog.store.values import AgentAnswer
from turnlog.store.writing.batch import Batch
from turnlog.store.writing.transaction import Pricer, SourceRow

AGENT: Final = "turnlog"
"""What native sessions have for an agent: their ids are `turnlog:<name>`."""

_SOURCE: Final = SourceRow(0, AGENT, "", 0, None)
"""No file tells of them."""

_HELD: Final = (
    "(SELECT session_key, message_key, position, turn, step FROM memberships"
    " UNION ALL SELECT session_key, message_key, position, turn, step FROM superseded)"
)


class NativeSessions:
    """The native sessions of one store, for writing. Use it on one thread, and `close` it."""

    def __init__(self, path: Path, price: Pricer, price_version: str) -> None:
        """Open the store at `path`, made where there is none; `price` and its version as for `Batch`."""
        self._connection = connect(path, checked=False)
        self._price = price
        self._price_version = price_version

    def save(
        self,
        session_id: str,
        messages: Sequence[Message],
        *,
        retracted: Collection[str] = (),
        metadata: Mapping[str, Any] | None = None,
        answers: Mapping[str, AgentAnswer] | None = None,
    ) -> None:
        """Write messages, in their order behind those that are there, and take others back by their ids.

        What `metadata` says of the session is added to what is known of it. `answers` says, by the ids of messages,
        which of them an agent tells of in a log of its own: where that has them, they count there
        (`store.reconcile.lesser_sources`).

        Raises:
            ConflictError: It is no native session, or a forgotten one, or one of the messages is another session's.
            StoreBusyError: Somebody else writes, and did not end.
        """
        if not session_id.startswith(f"{AGENT}:"):
            raise ConflictError(f"{session_id} is the name of a session that logs tell of")
        messages = [_storable(message) for message in messages]
        with write_transaction(self._connection):
            self._check(session_id, messages)
            save_answers(self._connection, session_id, answers or {})
            batch = Batch(self._connection, self._price, self._price_version)
            batch.save(_SOURCE, self._changes(session_id, messages, dict(metadata or {})))
            saved = batch.close()
            self._retract(session_id, retracted, saved.last_change)
            self._mark(session_id)

    def close(self) -> None:
        """Close the store."""
        self._connection.close()

    def _check(self, session_id: str, messages: Sequence[Message]) -> None:
        query = "SELECT 1 FROM tombstones WHERE session_id = ?"
        if self._connection.execute(query, (session_id,)).fetchone():
            raise ConflictError(f"{session_id} was forgotten")
        for message in messages:
            holders = _holders(self._connection, message.id)
            if holders and session_id.partition(":")[2] not in holders:
                raise ConflictError(f"message {message.id} is of another session")

    def _retract(self, session_id: str, retracted: Collection[str], sequence: int) -> None:
        name = session_id.partition(":")[2]
        for change in ("memberships SET fate = ?1, changed_seq = ?2", "superseded SET fate = ?1"):
            self._connection.executemany(
                f"UPDATE {change} WHERE session_key = (SELECT key FROM sessions WHERE agent = ?3 AND external_id = ?4)"
                " AND message_key = (SELECT key FROM messages WHERE agent = ?3 AND external_id = ?5)",
                [(Fate.RETRACTED, sequence, AGENT, name, message_id) for message_id in retracted],
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
        """Each message where it stands already, or at the end; a user's begins a turn, a model's call is a step."""
        known = self._known(session_id)
        position, turn, step = max(known.values(), default=(0, 0, 0))
        for message in messages:
            if message.id in known:
                at = known[message.id]
            else:
                position += 1
                if message.role == "user":
                    turn, step = turn + 1, 0
                elif message.role == "assistant":
                    step += 1
                at = (position, turn, step)
            placement = Placement(
                session_id=session_id,
                position=at[0],
                turn=at[1] or None,
                step=at[2] if message.role == "assistant" else None,
            )
            yield MessageChange(message=message, placement=placement)

    def _known(self, session_id: str) -> dict[str, tuple[int, int, int]]:
        """Message id -> its position, turn and step."""
        rows = self._connection.execute(
            f"SELECT g.external_id, m.position, coalesce(m.turn, 0), coalesce(m.step, 0) FROM {_HELD} m"
            " JOIN messages g ON g.key = m.message_key JOIN sessions s ON s.key = m.session_key"
            " WHERE s.agent = ? AND s.external_id = ?",
            (AGENT, session_id.partition(":")[2]),
        )
        return {message_id: (position, turn, step) for message_id, position, turn, step in rows}

    def _mark(self, session_id: str) -> None:
        name = session_id.partition(":")[2]
        self._connection.execute("UPDATE sessions SET native = 1 WHERE agent = ? AND external_id = ?", (AGENT, name))
        for table in ("memberships", "superseded"):
            self._connection.execute(
                f"UPDATE {table} SET source_key = NULL WHERE source_key = 0 AND session_key ="
                " (SELECT key FROM sessions WHERE agent = ? AND external_id = ?)",
                (AGENT, name),
            )


def _storable(message: Message) -> Message:
    """The message as its JSON has it, where some text in it is half a character: no column could hold that."""
    try:
        msgspec.json.encode(message)
    except UnicodeEncodeError:
        return decode_message(encode(message))
    return message


def _titles(placed: Sequence[MessageChange]) -> dict[TitleSource, str]:
    """The first prompt, where it is among these; nobody has given the session another title yet."""
    for change in placed:
        if change.message.role == "user" and change.placement.turn == 1:
            texts = [part.text for part in change.message.parts if isinstance(part, TextPart)]
            title = title_from(" ".join(texts))
            return {"prompt": title} if title else {}
    return {}


def _holders(connection: sqlite3.Connection, message_id: str) -> set[str]:
    rows = connection.execute(
        f"SELECT s.external_id FROM messages g JOIN {_HELD} m ON m.message_key = g.key"
        " JOIN sessions s ON s.key = m.session_key WHERE g.agent = ? AND g.external_id = ?",
        (AGENT, message_id),
    )
    return {name for (name,) in rows}
