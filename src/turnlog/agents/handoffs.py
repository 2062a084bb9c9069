"""Sessions that turnlog writes for an agent: the conversation, the writer, and the mark that names their origin.

`turnlog.handoff` makes a `HandoffConversation` that every agent can hold. The agent's package writes it
(`HandoffWriter`, named by `Agent.handoff`) in the agent's own format. Every carried record has the field `turnlog`
(`Carried`), which agents ignore: by it the fold knows that the session continues another one and that its messages are
billed there.
"""

from __future__ import annotations

import os
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Container, Iterable, Mapping
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol, get_args

import msgspec
from msgspec import UNSET

from turnlog.agents.changes import Link
from turnlog.atomic_files import make_folders
from turnlog.model import Message, Origin, ResultStatus, ToolCallPart

MARK: Final = "turnlog"
"""The field of a record, or of a part of it, that has what `Carried` reads."""


class Carried(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What turnlog wrote beside a record that it carried over from another session."""

    session: str = msgspec.field(name="from")
    """Id of the session that it comes from."""
    at: datetime | None = None
    """When it was handed over."""
    message: str | None = None
    """Id of the message that it comes from. Records of one message have the same."""
    origin: Origin | None = None
    status: ResultStatus | None = None
    """Of a result, as far as the agent's own fields cannot say it."""
    model: str | None = None
    """That gave the answer, where the format has no place for it."""
    records: int | None = None
    """In the head of a log: the number of its lines that were carried over."""


_STATUSES: Final = frozenset(get_args(ResultStatus))


def read_mark(value: Any) -> Carried | None:
    """What a record's mark says; None if there is none, or one of another shape."""
    try:
        return msgspec.convert(value, Carried) if isinstance(value, Mapping) else None
    except (msgspec.ValidationError, ValueError):
        return None


def mark(conversation: HandoffConversation, message: Message | None = None, **more: Any) -> dict[str, Any]:
    """The mark of a record of a message, as JSON values."""
    carried = Carried(
        session=conversation.origin,
        at=conversation.at,
        message=message.id if message else None,
        origin=message.origin if message else None,
        **more,
    )
    return msgspec.to_builtins(carried)


_REPORTS: Final = frozenset({Origin.COMPACTION, Origin.NOTIFICATION})


def carried_origin(carried: Carried, turn_origins: Container[Origin]) -> Origin:
    """The origin of a message that no model wrote. `turn_origins` are those that begin a turn of the agent.

    Any other, such as a command of the agent that it comes from, is a prompt.
    """
    origin = carried.origin
    return origin if origin is not None and (origin in turn_origins or origin in _REPORTS) else Origin.PROMPT


def continuation(carried: Carried, child: str) -> Link:
    """The relationship of a session to the one that it was handed over from."""
    return Link(kind="continuation", parent_session_id=carried.session, child_session_id=child)


HANDED_OVER: Final = "handed_over"
"""A key of a session's metadata: from which session, and when, turnlog wrote it."""


def handed_over_facts(carried: Carried) -> dict[str, Any]:
    """What the metadata of a session says about its hand-over."""
    return {HANDED_OVER: {"from": carried.session, "at": None if carried.at is None else iso(carried.at)}}


class HandoffConversation(msgspec.Struct, frozen=True, kw_only=True):
    """What is handed over, such that every agent can hold it.

    Messages are a user's or a model's, one for each model call. Their parts are texts, files with their bytes, and
    calls with one result each, whose input is a JSON object or a text and whose content are texts and files.
    """

    origin: str
    """Id of the session that it comes from."""
    at: datetime
    """When it is handed over."""
    title: str | None
    folder: Path
    """Where the new session works."""
    git_branch: str | None
    git_commit: str | None
    messages: tuple[Message, ...]


class NewFile(NamedTuple):
    """A file to write."""

    path: Path
    data: bytes
    is_shared: bool = False
    """Other sessions have it too: if it is there, it stays as it is."""


class NewSession(ABC):
    """A session as an agent will find it. Until `save` nothing is written."""

    external_id: str

    @property
    @abstractmethod
    def paths(self) -> tuple[Path, ...]:
        """What is written: files, or the database that gets the session."""

    @property
    @abstractmethod
    def size(self) -> int:
        """Bytes of the session."""

    @property
    def refusal(self) -> str | None:
        """Why it cannot be saved here, as a sentence; None if nothing is known to be in the way."""
        return None

    @abstractmethod
    def save(self) -> None:
        """Write all or nothing. Raises FileExistsError for a session of this id, OSError if it cannot be written."""


class NewFiles(NewSession):
    """A session in files of its own below the agent's home. The last one makes it a session."""

    def __init__(self, external_id: str, home: Path, files: tuple[NewFile, ...]) -> None:
        """Name the files."""
        self.external_id = external_id
        self._home = home
        self._files = files

    @property
    def paths(self) -> tuple[Path, ...]:
        """See `NewSession.paths`."""
        return tuple(file.path for file in self._files)

    @property
    def size(self) -> int:
        """See `NewSession.size`."""
        return sum(len(file.data) for file in self._files)

    def save(self) -> None:
        """See `NewSession.save`."""
        with ExitStack() as failure:
            for file in self._files:
                if file.is_shared and file.path.exists():
                    continue
                folder = file.path.parent
                # Gemini CLI takes an empty folder for that of another project.
                failure.callback(_remove_empty, [each for each in (folder, *folder.parents) if not each.exists()])
                make_folders(folder, self._home)
                _write_new(file)
                failure.callback(file.path.unlink, missing_ok=True)
            failure.pop_all()


def _remove_empty(folders: Iterable[Path]) -> None:
    """Remove those folders that have nothing in them."""
    for folder in folders:
        with suppress(OSError):
            folder.rmdir()


def _write_new(file: NewFile) -> None:
    """Write a file in one step, for the user alone. Raises FileExistsError if there is one."""
    descriptor, name = tempfile.mkstemp(dir=file.path.parent, prefix=f".{file.path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as new:
            new.write(file.data)
            new.flush()
            os.fsync(new.fileno())
        # Unlike a rename, a link never replaces a file.
        try:
            os.link(name, file.path)
        except FileExistsError as error:
            raise FileExistsError(error.errno, error.strerror, os.fspath(file.path)) from None
    finally:
        Path(name).unlink(missing_ok=True)


class HandoffWriter(Protocol):
    """Writes sessions in an agent's format."""

    @property
    def unanswered(self) -> str:
        """What the agent itself writes as the result of a call that got none."""
        ...

    @property
    def takes_text(self) -> bool:
        """Whether the input of a call may be a text; otherwise it is a JSON object."""
        ...

    @property
    def texts_first(self) -> bool:
        """Whether the agent sends the texts of an answer before its calls, in whatever order they are logged."""
        ...

    @property
    def is_flat(self) -> bool:
        """Whether the format has one text before the calls of an answer, and one text before the files of a result."""
        ...

    @property
    def unsent(self) -> tuple[str, ...] | None:
        """How prompts begin that the agent does not send to its model, as those without a text; None: it sends all."""
        ...

    @property
    def version(self) -> str:
        """The version of the agent in whose format it writes."""
        ...

    def write(self, conversation: HandoffConversation, home: Path) -> NewSession:
        """The conversation as a session of its own. Raises TurnlogError if this home cannot take it."""
        ...

    def remove(self, path: str, external_id: str) -> None:
        """Remove a session from its source at `path`. Raises OSError, HandoffError if a database says it goes on."""
        ...


class FileWriter(ABC):
    """A `HandoffWriter` whose sessions are files."""

    unanswered: str
    takes_text: bool = False
    texts_first: bool = False
    is_flat: bool = False
    unsent: tuple[str, ...] | None = None
    version: str

    @abstractmethod
    def write(self, conversation: HandoffConversation, home: Path) -> NewSession:
        """See `HandoffWriter.write`."""

    def remove(self, path: str, external_id: str) -> None:
        """See `HandoffWriter.remove`."""
        Path(path).unlink()


def object_input(call: ToolCallPart) -> msgspec.Raw | dict[str, Any]:
    """The exact input of a call, for formats that take an object."""
    return {} if call.input is UNSET else call.input


def input_text(call: ToolCallPart) -> str:
    """The exact input of a call as a text."""
    return call.input_text or "" if call.input is UNSET else bytes(call.input).decode(errors="replace")


def iso(moment: datetime) -> str:
    """A time as agents of JavaScript write it: in UTC, with milliseconds."""
    # `strftime` has no zeros before a year of few digits.
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"


def to_line(record: Mapping[str, Any]) -> bytes:
    """A record as a line of a log."""
    line = msgspec.json.encode(record)
    # An input is exact, and those of an indented file have its line ends: a raw one is never within a text.
    return (msgspec.json.format(line, indent=-1) if b"\n" in line or b"\r" in line else line) + b"\n"
