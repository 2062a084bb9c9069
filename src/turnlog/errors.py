"""What turnlog raises: one small tree, so that a caller picks the class to catch without reading code.

* TurnlogError
  x SourceError              a log that cannot be read: path, line, offset, json_path
    + FormatError              it breaks the rules of its format: of_agents
  x ConversionError          a view that cannot be made
    + LossyConversionError     strict mode, and something would be lost: losses
    + StreamStateError         a chunk that is not allowed here: chunk_type, chunk_id
    + ShapeError               JSON that is not of the shape its format demands: json_path
  x HandoffError             a session that cannot be handed to another agent
  x SettingsError            the user's settings cannot be used
  x StoreError               what is kept cannot be reached
    + SchemaTooNewError        written by a newer turnlog: found, supported
    + DamagedError             the kept bytes of one file or message are damaged; the others are not
    + NotFoundError            no such session, message or blob
    + ConflictError            it was changed by somebody else meanwhile
    + StoreBusyError           another process is writing, and waiting for it took too long
    + StoreUnreachableError    the server that keeps it does not answer
    + StoreFullError           the disk that keeps it has no room

One bad line in a log is not an error but a diagnostic in the result; these are for what stops the work.
Every class survives pickling, because logs are read in several processes.
"""

from pathlib import Path
from typing import Any


class TurnlogError(Exception):
    """Base of everything that turnlog raises on purpose."""


class SettingsError(TurnlogError):
    """The user's settings cannot be read, or have an unknown or invalid setting."""


class SourceError(TurnlogError):
    """A log that cannot be read; `str()` of it leads to the place."""

    def __init__(
        self,
        reason: str,
        *,
        path: Path | None = None,
        line: int | None = None,
        offset: int | None = None,
        json_path: str | None = None,
    ) -> None:
        """Keep the reason and as much of the place as is known.

        Args:
            reason: What is wrong, without the place.
            path: The file.
            line: Line in it, counted from 1.
            offset: Byte at which the record begins, counted from 0.
            json_path: Place inside the record, as in `$.message.content[2]`.
        """
        super().__init__(reason)
        self.reason = reason
        self.path = path
        self.line = line
        self.offset = offset
        self.json_path = json_path

    def __str__(self) -> str:
        """Give `path:line: reason (byte 120, at $.message.id)`, leaving out what is not known."""
        place = "" if self.path is None else f"{self.path}: "
        if self.line is not None:
            place = f"line {self.line}: " if self.path is None else f"{self.path}:{self.line}: "
        details = [
            *([] if self.offset is None else [f"byte {self.offset}"]),
            *([] if self.json_path is None else [f"at {self.json_path}"]),
        ]
        return f"{place}{self.reason}" + (f" ({', '.join(details)})" if details else "")


class FormatError(SourceError):
    """A log that breaks the rules of its own format, or a file of none."""

    def __init__(self, reason: str, *, of_agents: tuple[str, ...] = (), **place: Any) -> None:
        """Keep the reason and the place, as `SourceError` does; `of_agents` says of each agent why it is not its."""
        super().__init__(reason, **place)
        self.of_agents = of_agents


class ConversionError(TurnlogError):
    """A view of a history that cannot be made."""


class LossyConversionError(ConversionError):
    """A strict conversion met something that its target cannot hold."""

    def __init__(self, reason: str, *, losses: tuple[object, ...] = ()) -> None:
        """Keep the losses, the same values that a lenient conversion returns with its result."""
        super().__init__(reason)
        self.losses = losses


class StreamStateError(ConversionError):
    """A stream whose chunks come in an order that its rules forbid."""

    def __init__(self, reason: str, *, chunk_type: str = "", chunk_id: str = "") -> None:
        """Keep the type of the offending chunk and the id of the part or call that it names."""
        super().__init__(reason)
        self.chunk_type = chunk_type
        self.chunk_id = chunk_id


class ShapeError(ConversionError):
    """JSON of another program that is not of the shape its format demands."""

    def __init__(self, reason: str, *, json_path: str = "$") -> None:
        """Keep the reason, and the place inside the value as in `$[0].parts[2].state`."""
        super().__init__(reason)
        self.reason = reason
        self.json_path = json_path

    def __str__(self) -> str:
        """Give `reason (at $[0].parts[2].state)`."""
        return f"{self.reason} (at {self.json_path})"


class HandoffError(TurnlogError):
    """A session that cannot be handed over, or whose hand-over cannot be undone. Nothing was written or removed."""


class StoreError(TurnlogError):
    """A store that cannot be opened, read or written."""


class SchemaTooNewError(StoreError):
    """A store that a newer turnlog has written; it is left untouched."""

    def __init__(self, reason: str, *, found: int | None = None, supported: int | None = None) -> None:
        """Keep the schema version found and the newest one this turnlog knows."""
        super().__init__(reason)
        self.found = found
        self.supported = supported


class DamagedError(StoreError):
    """The kept bytes of one file or message are missing or damaged; those of others can be read."""


class NotFoundError(StoreError):
    """The store holds nothing under this id."""


class ConflictError(StoreError):
    """What was to be changed has changed since it was read, or its id is taken by something else."""


class StoreBusyError(StoreError):
    """Another process held the store's write lock for longer than the wait allowed."""


class StoreUnreachableError(StoreError):
    """The server that keeps the store does not answer; it may later."""


class StoreFullError(StoreError):
    """The disk that keeps the store has no room: it can be read, and not written."""
