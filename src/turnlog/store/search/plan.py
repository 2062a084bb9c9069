"""A query and its filter -> the expression and the SQL conditions that find its documents.

Filters become markers in the index where they can. A message that several sessions share carries the marker of only
one of them, its home session; so a session filter looks under every home its messages have, and the store then
decides which messages belong.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import Any, NamedTuple

from turnlog.store.search import index_file, markers
from turnlog.store.search.base import FIELDS, SearchFilter
from turnlog.store.search.documents import FAILED, HAS_IMAGE, INPUT, OUTPUT
from turnlog.store.search.query import Expand, Query, any_of, to_expression
from turnlog.store.sqlite.paging import aware_milliseconds

LAST_ID = (1 << 63) - 1


class Plan(NamedTuple):
    """What is to be run."""

    expression: str
    """In FTS5's language."""
    conditions: str
    """SQL on `messages m`, to be added to a WHERE clause; empty when the expression says it all."""
    first_id: int
    last_id: int


class Planner:
    """Makes plans for one filter on one connection of `schema.open_for_reading`."""

    def __init__(self, connection: sqlite3.Connection, filter: SearchFilter, expand: Expand, displacement: int) -> None:
        """`displacement` is that of the index, `expand` finds words for a beginning."""
        self._connection = connection
        self._filter = filter
        self._expand = expand
        self._displacement = displacement

    def plan(self, query: Query) -> Plan | None:
        """What is to be run for a query; None when nothing can be found."""
        filter = self._filter
        required, forbidden = self._kind_words(query), list[str]()
        if required is None:
            return None
        if filter.tool is not None:
            required.append(any_of([markers.tool(filter.tool)]))
        for flag, wanted in ((FAILED, filter.failed), (HAS_IMAGE, filter.has_image)):
            if wanted is not None:
                (required if wanted else forbidden).append(any_of(markers.flags(flag)))
        conditions = self._times()
        for condition, words in (self._session_condition(), self._project_condition()):
            if words is None:
                return None
            conditions += condition
            required += words
        expression = to_expression(query, required, forbidden, self._expand)
        if expression is None:
            return None
        first, last = self._ids()
        return Plan(expression, conditions, first, last)

    def _kind_words(self, query: Query) -> list[str] | None:
        """Words for agent, role and field; all kinds when nothing else says what is to be found."""
        filter = self._filter
        fields = None if filter.field is None else (FIELDS.index(filter.field),)
        if filter.failed is False and fields is None:
            # What failed says so itself; what did not must be a tool call.
            fields = (INPUT, OUTPUT)
        is_filtered = filter.agent is not None or filter.role is not None or fields is not None
        if not is_filtered and (query.groups or filter.failed or filter.has_image or filter.tool):
            return []
        keys = markers.Kinds(self._connection).matching(filter.agent, filter.role, fields)
        return [any_of([markers.kind(key) for key in keys])] if keys else None

    def _session_condition(self) -> tuple[str, list[str] | None]:
        if self._filter.session is None:
            return "", []
        agent, _, external_id = self._filter.session.partition(":")
        keys = self._keys("SELECT key FROM sessions WHERE agent = ? AND external_id = ?", agent, external_id)
        homes = self._keys(
            "SELECT DISTINCT d.home FROM memberships x JOIN documents d ON d.message_key = x.message_key"
            f" WHERE x.session_key IN ({sql_list(keys)})"
        )
        condition = (
            f" AND EXISTS (SELECT 1 FROM memberships WHERE message_key = m.key AND session_key IN ({sql_list(keys)}))"
        )
        return condition, [any_of([markers.session(home) for home in homes])] if homes else None

    def _project_condition(self) -> tuple[str, list[str] | None]:
        if self._filter.project is None:
            return "", []
        projects = self._keys("SELECT key FROM projects WHERE path = ?1 OR name = ?1", self._filter.project)
        if not projects:
            return "", None
        # Messages that a session of the project shares may be marked with the home of another project.
        homes = self._keys(
            "SELECT DISTINCT d.home FROM sessions s JOIN memberships x ON x.session_key = s.key"
            " JOIN documents d ON d.message_key = x.message_key JOIN homes h ON h.session_key = d.home"
            f" WHERE s.shares = 1 AND s.project_key IN ({sql_list(projects)})"
            f" AND (h.project_key IS NULL OR h.project_key NOT IN ({sql_list(projects)}))"
        )
        condition = (
            " AND EXISTS (SELECT 1 FROM memberships x JOIN sessions s ON s.key = x.session_key"
            f" WHERE x.message_key = m.key AND s.project_key IN ({sql_list(projects)}))"
        )
        words = [markers.project(key) for key in projects] + [markers.session(home) for home in homes]
        return condition, [any_of(words)]

    def _keys(self, query: str, *parameters: Any) -> list[int]:
        return [key for (key,) in self._connection.execute(query, parameters)]

    def _times(self) -> str:
        limits = ((self._filter.since, ">="), (self._filter.until, "<"))
        wanted = [(operator, aware_milliseconds(limit)) for limit, operator in limits if limit is not None]
        return "".join([f" AND m.created_at {operator} {limit}" for operator, limit in wanted])

    def _ids(self) -> tuple[int, int]:
        """The range of ids in which documents of the wanted times lie."""
        since, until = self._filter.since, self._filter.until
        first = 0 if since is None else index_file.block_of(aware_milliseconds(since)) << index_file.SLOT_BITS
        last = LAST_ID if until is None else last_id_of(aware_milliseconds(until), self._displacement)
        return first, last


def last_id_of(created_at: int, displacement: int) -> int:
    """No document of this time or an earlier one has a larger id."""
    return (index_file.block_of(created_at) + displacement + 1 << index_file.SLOT_BITS) - 1


def sql_list(keys: Iterable[int]) -> str:
    """Keys as they stand between the brackets of `IN ()`."""
    return ",".join(map(str, keys))
