"""Where the messages of chats are kept: the protocol, in memory, and as native sessions of a store.

A keeper over another database is a class with two methods. In a store a chat is the session `turnlog:<its id>`, one
stored message a model call, searched, priced, exported and shown like every other session. A message's id in the store
is `<chat>:<edition>:<id of the page>`: pages make their ids themselves, so two chats may have the same, and an edited
message keeps its id while the old one stays, retracted, under another edition. When a coding agent answers that writes
a log of its own, the log's session is the one that is listed, searched and priced; the chat is still loaded as saved.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Generator, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import Final, NamedTuple, Protocol, TypeVar, runtime_checkable
from urllib.parse import quote, unquote

from msgspec.structs import replace

from turnlog.aisdk.base import UIValue
from turnlog.aisdk.parts import UIMessage
from turnlog.aisdk.view import ui_message_id
from turnlog.arguments import checked
from turnlog.chat.conversion import agent_answer_of, join_step, to_stored
from turnlog.chat.loaded_chats import LoadedChats
from turnlog.chat.loading import EVERYTHING, load_ui_json
from turnlog.errors import ConflictError, NotFoundError, ShapeError
from turnlog.model import Fate, Message, Ownership, Session
from turnlog.model.codec import encode
from turnlog.store import open_store
from turnlog.store.base import SessionFilter, Store
from turnlog.store.session_state import LAST_ANSWER, AnswerOutcome
from turnlog.store.values import CHAT_AGENT, AgentAnswer
from turnlog.store.writing.native import LONGEST_ID, ForgottenError


class ChatKeeper(Protocol):
    """Keeps the messages of chats, by the ids that the page knows.

    There is one call at a time for a chat. Ids are unique in their chat, not among chats. What `load` returns is
    trusted: it must be what the server gave to `save`. Methods of a keeper that has nothing to wait for may be plain.
    """

    async def load(self, chat_id: str) -> list[UIMessage]:
        """The messages of a chat without the retracted ones, in order; none for an unknown chat."""
        ...

    async def save(self, chat_id: str, messages: Sequence[UIMessage], retracted: Collection[str] = ()) -> None:
        """Retract messages by their ids, then replace messages by their ids or add them at the end.

        A message that is being made is saved again and again, each time in a form that may be the last. An edited
        message is saved under the id of the retracted one.
        """
        ...


class StoredChat(UIValue, frozen=True, kw_only=True):
    """What a list shows of a chat."""

    id: str
    title: str | None = None
    """What the user called it, else the beginning of the first prompt."""
    created_at: datetime
    updated_at: datetime
    ownership: Ownership = Ownership()


class ChatPage(UIValue, frozen=True, kw_only=True):
    """A piece of a list of chats."""

    chats: tuple[StoredChat, ...]
    next_cursor: str | None = None
    """Where the next page begins; None on the last page."""


@runtime_checkable
class ChatDirectory(ChatKeeper, Protocol):
    """A keeper that knows whose chats are, and lists them.

    An `Ownership` names users, teams and tasks. A chat is somebody's if it has every name that this one has: a team's
    are those of all its users, and `Ownership()` has all. None means the chats that nobody owns. Every method but
    `chats` raises NotFoundError for a chat that is not the owner's, exactly as for one that does not exist.
    """

    async def claim(self, chat_id: str, owner: Ownership) -> None:
        """Make the chat the owner's if there is none of its id yet. Nobody claims a chat for None."""
        ...

    async def check(self, chat_id: str, owner: Ownership | None) -> None:
        """Do nothing for a chat that is the owner's, and for one that does not exist yet."""
        ...

    async def chats(self, owner: Ownership | None, *, limit: int = 50, cursor: str | None = None) -> ChatPage:
        """The owner's chats, the last changed first. Raises ValueError for a cursor that is none."""
        ...

    async def rename(self, chat_id: str, title: str | None, owner: Ownership | None) -> StoredChat:
        """Give a chat a title; None takes it away again."""
        ...

    async def delete(self, chat_id: str, owner: Ownership | None) -> None:
        """Remove a chat for good; its id cannot be used again."""
        ...


@runtime_checkable
class AnswerRecorder(Protocol):
    """A keeper that records how answers ended, from which the status of a chat follows."""

    async def record_answer(self, chat_id: str, outcome: AnswerOutcome | None) -> None:
        """Record how the newest answer ended, once it is saved; None when its last message is answered again."""
        ...


ANYBODY: Final = Ownership()
"""Whose every chat is."""


class MemoryKeeper:
    """The chats of one process, lost when it ends; a retracted message is deleted."""

    def __init__(self) -> None:
        """Start empty."""
        self._chats: dict[str, dict[str, UIMessage]] = {}

    @checked
    async def load(self, chat_id: str) -> list[UIMessage]:
        """The messages of a chat, in order."""
        return list(self._chats.get(chat_id, {}).values())

    @checked
    async def save(self, chat_id: str, messages: Sequence[UIMessage], retracted: Collection[str] = ()) -> None:
        """Retract, replace and add."""
        chat = self._chats.setdefault(chat_id, {})
        for message_id in retracted:
            chat.pop(message_id, None)
        chat.update({message.id: message for message in messages})


ResultT = TypeVar("ResultT")

_MAX_DIGESTS = 20_000
"""How many saved steps are remembered, of all chats together."""

_ACTIVE = frozenset({Fate.ACTIVE})

_PAGE = 100
"""UI messages that are read at once. A request reads one or two such pages of a chat that was loaded before."""


class NativeKeeper:
    """Keeps chats in a store, and lists them (`ChatDirectory`).

    A thread of its own does the work, so that the event loop never waits for the disk.
    """

    @checked
    def __init__(self, store: Store | Path | str | None = None) -> None:
        """Keep chats in a store.

        Args:
            store: An open store, which stays open when the keeper is closed; or a path or URL, as for `open_store`,
                where a store is made if there is none; None for the user's own.

        Raises:
            StoreError: It cannot be opened.
        """
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="chat-keeper")
        self._is_own = store is None or isinstance(store, str | Path)
        if store is None or isinstance(store, str | Path):
            store = self._thread.submit(open_store, store, create=True).result()
        self._chats = _StoredChats(store)

    @checked
    async def load(self, chat_id: str) -> list[UIMessage]:
        """The messages of a chat, in order."""
        return await self._run(lambda: self._chats.load(chat_id))

    @checked
    async def save(self, chat_id: str, messages: Sequence[UIMessage], retracted: Collection[str] = ()) -> None:
        """Retract, replace and add, in one transaction.

        Raises:
            ConflictError: The chat was deleted.
            StoreBusyError: Another process writes, and did not end in time.
        """
        await self._run(lambda: self._chats.save(chat_id, messages, retracted))

    @checked
    async def record_answer(self, chat_id: str, outcome: AnswerOutcome | None) -> None:
        """Record how the newest answer ended; None when its last message is answered again."""
        await self._run(lambda: self._chats.record_answer(chat_id, outcome))

    @checked
    async def claim(self, chat_id: str, owner: Ownership) -> None:
        """Make the chat the owner's if there is none of its id yet; NotFoundError for somebody else's."""
        await self._run(lambda: self._chats.claim(chat_id, owner))

    @checked
    async def check(self, chat_id: str, owner: Ownership | None) -> None:
        """Raise NotFoundError for a chat that is somebody else's; for None, one that anybody owns."""
        await self._run(lambda: self._chats.check(chat_id, owner))

    @checked
    async def chats(
        self,
        owner: Ownership | None = ANYBODY,
        *,
        limit: int = 50,
        cursor: str | None = None,
        title: str | None = None,
    ) -> ChatPage:
        """The owner's chats, the last changed first; for None, those that nobody owns.

        With `title`, those whose title contains it in any case.
        """
        return await self._run(lambda: self._chats.list(owner, limit, cursor, title))

    @checked
    async def rename(self, chat_id: str, title: str | None, owner: Ownership | None = ANYBODY) -> StoredChat:
        """Give a chat a title; None takes it away again. Raises NotFoundError."""
        return await self._run(lambda: self._chats.rename(chat_id, title, owner))

    @checked
    async def delete(self, chat_id: str, owner: Ownership | None = ANYBODY) -> None:
        """Remove a chat for good, with its subagents' sessions and the logs of agents that answered it.

        Its id cannot be used again. Raises NotFoundError.
        """
        await self._run(lambda: self._chats.delete(chat_id, owner))

    @checked
    async def change_owner(self, chat_id: str, owner: Ownership) -> StoredChat:
        """Say whose a chat is from now on. Raises NotFoundError for one that does not exist."""
        return await self._run(lambda: self._chats.change_owner(chat_id, owner))

    def close(self) -> None:
        """Close the store if the keeper opened it; the keeper cannot be used afterwards."""
        if self._is_own:
            self._thread.submit(self._chats.close).result()
        self._thread.shutdown()

    async def _run(self, work: Callable[[], ResultT]) -> ResultT:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)


LONGEST_CHAT: Final = 400
"""Characters of a chat's session id: the ids of its messages begin with its own, and have `LONGEST_ID` at most."""


@checked
def session_id_of(chat_id: str) -> str:
    """The id of a chat's session; a `/`, which no session id may hold, is `%2F` in it.

    Raises ShapeError for a chat id that is too long; it comes from a page.
    """
    found = f"{CHAT_AGENT}:{_name_of(chat_id)}"
    if len(found) > LONGEST_CHAT:
        raise ShapeError(
            f"the id of a chat is too long: its session's would exceed {LONGEST_CHAT} characters", json_path="$.id"
        )
    return found


def _name_of(chat_id: str) -> str:
    # Characters that need no escape in a path, a command line or a URL stay readable.
    return quote(chat_id, safe=" !$&'()*+,;=:@[]{}|^#~", errors="replace")


_OWNER_NAMES: Final = ("user", "team", "task", "machine")


def is_of(session: Session, owner: Ownership | None) -> bool:
    """Whether the session has every name that the owner has; for None, whether nobody owns it."""
    if owner is None:
        known = session.ownership
        return known.user is None and known.team is None and known.task is None
    names = ((getattr(owner, name), getattr(session.ownership, name)) for name in _OWNER_NAMES)
    return all(name is None or name == known for name, known in names)


def _chat_of(session: Session) -> StoredChat:
    now = datetime.now(UTC)
    return StoredChat(
        id=unquote(session.external_id),
        title=session.title,
        created_at=session.created_at or now,
        updated_at=session.updated_at or now,
        ownership=session.ownership,
    )


class _Edition(NamedTuple):
    """The stored messages of one message of the page, as it was before or after one of its edits."""

    number: int
    stored_ids: list[str]
    is_active: bool


class _StoredChats:
    """The work of a `NativeKeeper`, all of it on one thread."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._digests: dict[str, bytes] = {}
        """Id in the store -> digest of the step as it was saved last; the newest `_MAX_DIGESTS` of all chats."""
        self._loaded = LoadedChats(store)

    def load(self, chat_id: str) -> list[UIMessage]:
        prefix = _prefix(chat_id)
        try:
            return self._loaded.load(
                session_id_of(chat_id),
                lambda cursor: load_ui_json(
                    self._store,
                    session_id_of(chat_id),
                    limit=_PAGE,
                    cursor=cursor,
                    fates=_ACTIVE,
                    generate_id=lambda _, message: _page_id(prefix, message),
                ),
            )
        except NotFoundError:
            return []

    def save(self, chat_id: str, messages: Sequence[UIMessage], retracted: Collection[str]) -> None:
        known, prefix = self._editions(chat_id), _prefix(chat_id)
        gone = [stored for id in retracted for stored in (known[id].stored_ids if id in known else ())]
        saved: list[Message] = []
        changed: list[Message] = []
        answers: dict[str, AgentAnswer] = {}
        for message in messages:
            edition = known.get(message.id, _Edition(0, [], is_active=True))
            fresh = message.id in retracted or not edition.is_active
            number = edition.number + 1 if fresh else edition.number
            new = self._changed_steps(message, f"{prefix}{number}:")
            saved += new
            changed += self._stored_form(new, () if fresh else edition.stored_ids)
            answer = agent_answer_of(message)
            if answer is not None:
                answers |= {step.id: answer for step in new}
        if changed or gone:
            with _as_deleted(chat_id):
                self._store.save_messages(session_id_of(chat_id), changed, retracted=gone, answers=answers)
        self._remember(saved)

    def record_answer(self, chat_id: str, outcome: AnswerOutcome | None) -> None:
        session_id = session_id_of(chat_id)
        places = self._store.places(session_id, fates=_ACTIVE, limit=EVERYTHING) if outcome else ()
        last = places[-1].message_id if places else None
        self._store.save_session(session_id, metadata={LAST_ANSWER: {"outcome": outcome, "message": last}})

    def close(self) -> None:
        self._store.close()

    def claim(self, chat_id: str, owner: Ownership) -> None:
        if self._find(chat_id) is None:
            with _as_deleted(chat_id):
                self._store.save_session(session_id_of(chat_id), ownership=owner)
        else:
            self.check(chat_id, owner)

    def check(self, chat_id: str, owner: Ownership | None) -> None:
        session = self._find(chat_id)
        if session is not None and not is_of(session, owner):
            raise NotFoundError(f"there is no chat {chat_id}")

    def list(self, owner: Ownership | None, limit: int, cursor: str | None, title: str | None) -> ChatPage:
        wanted = SessionFilter(agent=CHAT_AGENT, native=True, imported=False, title=title)
        if owner is None:
            wanted = wanted._replace(owned=False)
        else:
            wanted = wanted._replace(**{name: getattr(owner, name) for name in _OWNER_NAMES})
        page = self._store.sessions(wanted, limit=limit, cursor=cursor)
        return ChatPage(chats=tuple(_chat_of(session) for session in page.items), next_cursor=page.next_cursor)

    def rename(self, chat_id: str, title: str | None, owner: Ownership | None) -> StoredChat:
        session = self._owned(chat_id, owner)
        self._store.annotate(session.id, title=title)
        return _chat_of(self._store.session(session.id))

    def delete(self, chat_id: str, owner: Ownership | None) -> None:
        self._store.forget(self._owned(chat_id, owner).id)
        self._loaded.forget(session_id_of(chat_id))
        # Else a message that is sent again would count as saved, and the chat as one that can go on.
        prefix = _prefix(chat_id)
        self._digests = {id: digest for id, digest in self._digests.items() if not id.startswith(prefix)}

    def change_owner(self, chat_id: str, owner: Ownership) -> StoredChat:
        return _chat_of(self._store.change_owner(self._owned(chat_id, ANYBODY).id, owner))

    def _owned(self, chat_id: str, owner: Ownership | None) -> Session:
        session = self._find(chat_id)
        if session is None or not is_of(session, owner):
            raise NotFoundError(f"there is no chat {chat_id}")
        return session

    def _find(self, chat_id: str) -> Session | None:
        return self._store.find_session(CHAT_AGENT, _name_of(chat_id))

    def _changed_steps(self, message: UIMessage, prefix: str) -> list[Message]:
        """The steps of a message that have changed since they were saved last: of a long message hardly any."""
        named = [replace(step, id=f"{prefix}{step.id}") for step in to_stored(message)]
        if any(len(step.id) > LONGEST_ID for step in named):
            reason = f"the id of a message is too long: with that of its chat it would exceed {LONGEST_ID} characters"
            raise ShapeError(reason, json_path="$.messages")
        return [step for step in named if self._digests.get(step.id) != _digest(step)]

    def _remember(self, steps: Iterable[Message]) -> None:
        for step in steps:
            self._digests.pop(step.id, None)
            self._digests[step.id] = _digest(step)
        while len(self._digests) > _MAX_DIGESTS:
            del self._digests[next(iter(self._digests))]

    def _stored_form(self, steps: Iterable[Message], stored_ids: Iterable[str]) -> list[Message]:
        """The steps as they are to be stored, joined with what is stored of them; without those that are stored so."""
        now, stored = datetime.now(UTC), set(stored_ids)
        found: list[Message] = []
        for step in steps:
            stamped = replace(step, created_at=now, completed_at=now, updated_at=now)
            joined = join_step(self._store.message(step.id), stamped) if step.id in stored else stamped
            if joined is not None:
                found.append(joined)
        return found

    def _editions(self, chat_id: str) -> dict[str, _Edition]:
        """The newest edition of each message, by the page's id."""
        session_id, prefix = session_id_of(chat_id), _prefix(chat_id)
        try:
            self._store.session(session_id)
        except NotFoundError:
            return {}
        found: dict[str, dict[int, _Edition]] = {}
        for fate in (Fate.RETRACTED, Fate.ACTIVE):
            for place in self._store.places(session_id, fates={fate}, limit=EVERYTHING):
                number, page_id = _parse_id(prefix, place.message_id, place.role)
                editions = found.setdefault(page_id, {})
                edition = editions.setdefault(number, _Edition(number, [], fate is Fate.ACTIVE))
                edition.stored_ids.append(place.message_id)
        return {page_id: editions[max(editions)] for page_id, editions in found.items()}


@contextmanager
def _as_deleted(chat_id: str) -> Generator[None, None, None]:
    """Say of a forgotten session what its user did: delete the chat."""
    try:
        yield
    except ForgottenError as error:
        raise ConflictError(f"chat {chat_id} was deleted") from error


def _digest(step: Message) -> bytes:
    return blake2b(encode(step), digest_size=16).digest()


def _prefix(chat_id: str) -> str:
    return f"{_name_of(chat_id)}:"


def _page_id(prefix: str, message: Message) -> str:
    return _parse_id(prefix, message.id, message.role)[1]


def _parse_id(prefix: str, stored_id: str, role: str) -> tuple[int, str]:
    """The edition and the page's id of a stored message; one that another program put into the session keeps its id."""
    number, colon, page_id = stored_id.removeprefix(prefix).partition(":")
    if not stored_id.startswith(prefix) or not colon or not number.isdecimal():
        return 0, stored_id
    of_step = ui_message_id(page_id) if role == "assistant" else None
    return int(number), of_step or page_id
