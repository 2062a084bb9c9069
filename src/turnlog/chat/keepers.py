"""Where the messages of chats are kept: what the endpoint asks of such a place, and the simplest one.

Chats as sessions of a store are `turnlog.chat.native`'s; a keeper over another database is a class with two methods.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from turnlog.aisdk.parts import UIMessage


class ChatKeeper(Protocol):
    """Keeps the messages of chats, by the ids that the page knows.

    Of one chat one call runs at a time. Ids are unique in their chat, not among chats. What `load` gives is believed:
    it must be what `save` got, from the server.
    """

    async def load(self, chat_id: str) -> list[UIMessage]:
        """The messages that stand, in order; none of an unknown chat."""
        ...

    async def save(self, chat_id: str, messages: Sequence[UIMessage], retracted: Collection[str] = ()) -> None:
        """Take messages back by their ids, then replace those of these ids or add them at the end.

        A message that is being made is saved again and again, each time in a form that may be the last. An edited one
        is saved under the id of the one that is taken back.
        """
        ...


class MemoryKeeper:
    """The chats of one process, gone with it; what was taken back is gone at once."""

    def __init__(self) -> None:
        """Start empty."""
        self._chats: dict[str, dict[str, UIMessage]] = {}

    async def load(self, chat_id: str) -> list[UIMessage]:
        """The messages that stand."""
        return list(self._chats.get(chat_id, {}).values())

    async def save(self, chat_id: str, messages: Sequence[UIMessage], retracted: Collection[str] = ()) -> None:
        """Take back, replace and add."""
        chat = self._chats.setdefault(chat_id, {})
        for message_id in retracted:
            chat.pop(message_id, None)
        chat.update({message.id: message for message in messages})
