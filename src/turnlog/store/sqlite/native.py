"""Native sessions in SQLite: sessions that programs write, and owners of sessions."""

from __future__ import annotations

from collections.abc import Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Unpack

from turnlog.model import Message, Ownership, Session, ToolCallPart
from turnlog.store.keys import session_key
from turnlog.store.sqlite.messages import MessageQueries
from turnlog.store.sqlite.sessions import SessionQueries
from turnlog.store.values import AgentAnswer, SessionFacts

if TYPE_CHECKING:
    from turnlog.store.writing.native import NativeSessions


class NativeQueries(SessionQueries, MessageQueries):
    """The methods of `Store` that write native sessions."""

    def save_session(self, session_id: str, **facts: Unpack[SessionFacts]) -> Session:
        with self._native() as native:
            native.save_session(session_id, facts)
        return self.session(session_id)

    def save_messages(
        self,
        session_id: str,
        messages: Sequence[Message],
        *,
        retracted: Collection[str] = (),
        answers: Mapping[str, AgentAnswer] | None = None,
    ) -> None:
        with self._native() as native:
            native.save_messages(session_id, messages, retracted=retracted, answers=answers)

    def save_tool_call(self, session_id: str, message_id: str, call: ToolCallPart) -> Message:
        with self._native() as native:
            native.save_tool_call(session_id, message_id, call)
        return self.message(message_id, session_id=session_id)

    def change_owner(self, session_id: str, ownership: Ownership) -> Session:
        from turnlog.store.writing.owners import change_owner

        with self._writing() as connection:
            session_key(connection, session_id)
            change_owner(connection, session_id, ownership)
        return self.session(session_id)

    @contextmanager
    def _native(self) -> Generator[NativeSessions]:
        # Imported on the first write, because every command opens a store and few write.
        from turnlog.pricing import price_nanos, price_version
        from turnlog.store.writing.native import open_native

        native = open_native(self.path, price_nanos, price_version())
        try:
            yield native
        finally:
            native.close()
