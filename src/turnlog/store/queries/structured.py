"""The agent's own JSON of results, which stands in the records that brought them and nowhere else."""

from __future__ import annotations

import sqlite3
from collections.abc import Container
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec

from turnlog.model import Message, ToolCallPart, ToolKind, ToolResult
from turnlog.store.archive import Archive, RecordReader
from turnlog.store.packed_columns import unpack_records
from turnlog.store.queries.placed_rows import PlacedRow

if TYPE_CHECKING:
    from turnlog.agents.base import Agent


def _result_records(row: PlacedRow) -> dict[str, tuple[int, int]]:
    """Result id -> offset and length of the record that brought it: the message's own when it stands in that."""
    records = unpack_records(row.records)
    own = next(((offset, length) for offset, length, what in records if what is None), None)
    places = {what: (offset, length) for offset, length, what in records if isinstance(what, str)}
    return {what: place if place[1] or own is None else own for what, place in places.items()}


class StructuredResults:
    """Fills in the agent's own JSON of each result, read from the record that brought it."""

    def __init__(self, connection: sqlite3.Connection, session_id: str, kinds: Container[ToolKind]) -> None:
        self._name = session_id.partition(":")[0]
        self._kinds = kinds
        self._archive = RecordReader(Archive(connection))

    def fill(self, row: PlacedRow, message: Message) -> Message:
        """The message with what its calls of these kinds brought."""
        wanted = [part for part in message.parts if isinstance(part, ToolCallPart) and part.kind in self._kinds]
        if not wanted or row.source_key is None:
            return message
        places = _result_records(row)
        filled = {id(call): self._filled(call, row, places) for call in wanted}
        return msgspec.structs.replace(message, parts=tuple([filled.get(id(part), part) for part in message.parts]))

    @cached_property
    def _agent(self) -> Agent | None:
        # Agents of other packages are found through the entry points of all that are installed: asked for late.
        from turnlog.agents import agent

        try:
            return agent(self._name)
        except Exception:  # A stranger's package must not take a message down.
            return None

    def _filled(self, call: ToolCallPart, row: PlacedRow, places: dict[str, tuple[int, int]]) -> ToolCallPart:
        results = tuple([self._result(call, result, row, places.get(result.id)) for result in call.results])
        return msgspec.structs.replace(call, results=results)

    def _result(
        self, call: ToolCallPart, result: ToolResult, row: PlacedRow, place: tuple[int, int] | None
    ) -> ToolResult:
        if place is None or row.source_key is None or self._agent is None:
            return result
        record = self._archive.read(row.source_key, row.generation, *place)
        structured = self._agent.structured_result(record, call.tool_call_id)
        return result if structured is None else msgspec.structs.replace(result, structured=structured)
