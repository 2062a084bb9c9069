"""Folds of sidecars: files next to a log that hold one JSON object and are rewritten whole each time."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar, Generic, TypeVar

import msgspec

from turnlog.agents.base import Source, StatelessFold
from turnlog.agents.changes import Changes, Diagnostic
from turnlog.agents.decoding import salvage
from turnlog.agents.jsonl import UNREADABLE

FactsT = TypeVar("FactsT", bound=msgspec.Struct)


class SidecarFold(StatelessFold, Generic[FactsT]):
    """Reads one object of facts."""

    kind: type[FactsT]
    """The struct that the object is decoded into."""
    salvages: ClassVar[bool] = False
    """Of an object with a field of another shape, the other fields are read; otherwise it is reported as unreadable."""

    def __init__(self, source: Source) -> None:
        self._source = source

    def feed(self, data: bytes, offset: int) -> Changes:
        """See `turnlog.agents.base.Fold.feed`."""
        changes = Changes()
        facts = self._decode(data)
        if isinstance(facts, str):
            changes.counts.unreadable = 1
            changes.diagnostics.append(Diagnostic(offset=0, length=len(data), line=1, reason=facts))
            return changes
        changes.counts.events = 1
        self.add_facts(facts, len(data), changes)
        return changes

    @abstractmethod
    def add_facts(self, facts: FactsT, size: int, changes: Changes) -> None:
        """Add to `changes` what the object says; `size` is that of the file in bytes."""

    def _decode(self, data: bytes) -> FactsT | str:
        """The object, or the reason why it cannot be read."""
        try:
            return msgspec.json.decode(data, type=self.kind)
        except msgspec.ValidationError as error:
            if not self.salvages:
                return str(error)
        except UNREADABLE as error:
            return str(error)
        try:
            found = salvage(data, self.kind, "$", [])
        except RecursionError:
            # A field of another shape stands before one that is nested too deep, …
            return "nested too deep"
        except UNREADABLE as error:
            # … or before the end of what is there.
            return str(error)
        return found if isinstance(found, self.kind) else "not a JSON object"
