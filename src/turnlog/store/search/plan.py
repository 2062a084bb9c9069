"""Plans what to run for a query and its filter: an FTS5 expression, SQL conditions and a range of document ids.

Filters are markers in the index where possible. A message that several sessions share has the marker of only one of
them, its home. So a filter of sessions looks under all homes of their messages, and the store then decides which
messages belong to the sessions.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from turnlog.store.names import all_agents, unknown_name
from turnlog.store.search import index_file
from turnlog.store.search.base import FIELDS, SearchFilter
from turnlog.store.search.blocks import Kinds, flag_markers, kind_marker, project_marker, session_marker, tool_marker
from turnlog.store.search.documents import FAILED, HAS_IMAGE, INPUT, OUTPUT, TEXT
from turnlog.store.search.query import (
    SESSION_FIELDS,
    Expand,
    Query,
    QueryError,
    Term,
    any_of,
    term_expression,
    to_expression,
)
from turnlog.store.search.vocabulary import MAX_WORDS
from turnlog.store.search.words import index_form, pieces
from turnlog.store.sqlite.reading import aware_milliseconds

LAST_ID = (1 << 63) - 1

_FLAGS = {"failed": FAILED, "image": HAS_IMAGE}
"""Value of `is:` -> flag of a document."""

_MOST_MARKERS = 200
"""Sessions that an expression names; for more, the store says of each match whether its session fits."""


_OWNED = (
    "SELECT s.key FROM sessions s JOIN owners o ON o.key = s.owner_key"
    " WHERE (?1 IS NULL OR o.user = ?1) AND (?2 IS NULL OR o.machine = ?2)"
)


_NAMES = {
    "agent": "",
    "project": "SELECT DISTINCT p.name FROM sessions s JOIN projects p ON p.key = s.project_key{allowed}",
    "model": (
        "SELECT DISTINCT d.name FROM sessions s JOIN usage u ON u.session_key = s.key"
        " JOIN models d ON d.key = u.model_key{allowed}"
    ),
}
"""Field of a query whose values are known -> its names in the store."""


_SAID_NAMES = {
    "branch": (
        "SELECT DISTINCT n.value FROM sessions s LEFT JOIN projects f ON f.key = s.folder_key"
        " JOIN json_each(json_array(s.git_branch, f.worktree)) n ON n.value IS NOT NULL{allowed}"
    ),
    "tag": (
        "SELECT DISTINCT t.value FROM annotations a JOIN json_each(iif(json_valid(a.tags), a.tags, '[]')) t"
        " JOIN sessions s ON a.session_id = s.agent || ':' || s.external_id{allowed}"
    ),
    "tool": "SELECT DISTINCT c.tool_name FROM call_totals c JOIN sessions s ON s.key = c.session_key{allowed}",
    "title": None,
    "file": None,
}
"""Field of a query of which it is only said that nothing has its value -> its names in the store, for the near ones.

Titles and files have so many that none is named."""


class SearchPlan(NamedTuple):
    """What to run for a query."""

    expression: str
    """An FTS5 expression."""
    conditions: str
    """SQL conditions on `messages m` for the WHERE clause; empty if the expression is enough."""
    first_id: int
    last_id: int


class Scope(NamedTuple):
    """What a match must fulfil besides the words of the query."""

    required: list[str]
    forbidden: list[str]
    """Expressions that must match, and that must not."""
    conditions: str
    """As in `SearchPlan`."""
    sessions: frozenset[int] | None
    """Keys of the sessions that the query's fields and the filter leave; None: all."""


class Planner:
    """Plans queries with one filter over one connection from `index_file.open_for_reading`."""

    def __init__(self, connection: sqlite3.Connection, filter: SearchFilter, expand: Expand, displacement: int) -> None:
        """`displacement` is that of the index, `expand` finds the words with a prefix."""
        self._connection = connection
        self._filter = filter
        self._expand = expand
        self._displacement = displacement
        self._kinds = Kinds(connection)

    def plan(self, query: Query) -> SearchPlan | None:
        """The plan for a query; None if nothing can match."""
        scope = self.scope(query)
        if scope is None:
            return None
        words = words_of(query)
        # FTS5 needs at least one term that must match. Anything else is enough, so the kinds are named only without it.
        required = scope.required or ([] if words.groups else [self.any_kind()])
        expression = self.expression(words, [each for each in required if each], scope.forbidden)
        if expression is None:
            return None
        return SearchPlan(expression, scope.conditions, *self.ids())

    def expression(self, words: Query, required: Sequence[str], forbidden: Sequence[str]) -> str | None:
        """The FTS5 expression for the words of a query; None if nothing can match."""
        return to_expression(words, required, forbidden, self._expand, self._field_expression)

    def scope(self, query: Query) -> Scope | None:
        """What must be fulfilled besides the words; None if nothing can."""
        filter = self._filter
        required, forbidden = self._kind_words(), list[str]()
        if required is None:
            return None
        if filter.tool is not None:
            required.append(any_of([tool_marker(filter.tool)]))
        for flag, wanted in ((FAILED, filter.failed), (HAS_IMAGE, filter.has_image)):
            if wanted is not None:
                (required if wanted else forbidden).append(any_of(flag_markers(flag)))
        conditions = self._times()
        sessions = self._sessions(query)
        for condition, words in (
            self._session_condition(),
            self._project_condition(),
            self._sessions_condition(sessions),
        ):
            if words is None:
                return None
            conditions += condition
            required += words
        return Scope(required, forbidden, conditions, sessions)

    def ids(self) -> tuple[int, int]:
        """The range of document ids for the times of the filter."""
        since, until = self._filter.since, self._filter.until
        first = 0 if since is None else index_file.block_of(aware_milliseconds(since)) << index_file.SLOT_BITS
        last = LAST_ID if until is None else last_id_of(aware_milliseconds(until), self._displacement)
        return first, last

    def prompts(self) -> str:
        """The expression for what people wrote; "" if the index has none of it."""
        return self._kinds_expression(self._kinds.matching(None, "user", (TEXT,)))

    def any_kind(self) -> str:
        """The expression for every document; "" if the index has none."""
        return self._kinds_expression(self._kinds.matching(None, None, None))

    def sessions_with(self, term: Term, columns: Sequence[str]) -> list[int]:
        """Keys of the sessions that have a term in one of these columns of `session_words`, the newest first."""
        found = term_expression(term, self._beginning_words)
        if not found:
            return []
        query = "SELECT rowid FROM session_words WHERE session_words MATCH ? ORDER BY rowid DESC"
        return self._keys(query, f"{{{' '.join(columns)}}} : ({found})")

    # -- fields

    def check_names(self, query: Query) -> None:
        """Refuse an agent, project or model that no session has which the reader may see.

        To find nothing would look like an answer, and to find nothing only of what others have would tell of them.

        Raises QueryError with the near ones.
        """
        for term in (*(term for group in query.groups for term in group), *query.excluded):
            if term.field not in _NAMES or self._is_in_a_session(term, term.field):
                continue
            names = self._names(term.field)
            # The index lags behind the store.
            if not any(_folded(term.typed) in _folded(name) for name in names):
                raise QueryError(unknown_name(term.field, term.typed, names))

    def note(self, query: Query) -> str | None:
        """Which branches, tags, tools, titles and files of the query nothing has, with the near ones."""
        terms = (*(term for group in query.groups for term in group), *query.excluded)
        said = [sentence for term in terms if term.field in _SAID_NAMES and (sentence := self._absence(term))]
        return " ".join(dict.fromkeys(said)) or None

    def _absence(self, term: Term) -> str | None:
        """That nothing has the value of a field; None if something has it, or may have it."""
        field = str(term.field)
        statement = _SAID_NAMES[field]
        if field != "tool" and self._is_in_a_session(term, field):
            return None
        if statement is None:
            return f"There is no {field} with {term.typed!r}."
        names = sorted(self._stored_names(statement))
        wanted = _folded(term.typed)
        # The index lags behind the store, and knows names by their words.
        if any(wanted == _folded(name) if field == "tool" else wanted in _folded(name) for name in names):
            return None
        said = unknown_name(field, term.typed, names)
        return f"{said[0].upper()}{said[1:]}{'' if said.endswith('?') else '.'}"

    def _is_in_a_session(self, term: Term, field: str) -> bool:
        """Whether a session that the reader may see has the term in this field."""
        found = self.sessions_with(term, [field])
        return bool(found if self._filter.only is None else self._allowed().intersection(found))

    def _names(self, field: str) -> list[str]:
        """The names that a field can have, without those of sessions that the reader may not see."""
        return all_agents(()) if field == "agent" else self._stored_names(_NAMES[field])

    def _stored_names(self, statement: str) -> list[str]:
        """The names that a statement finds, of the sessions that the reader may see."""
        allowed = "" if self._filter.only is None else f" WHERE s.key IN ({sql_list(sorted(self._allowed()))})"
        return [name for (name,) in self._connection.execute(statement.format(allowed=allowed))]

    def _field_expression(self, term: Term) -> str:
        """The expression of a term with a field, for documents; "" if nothing fits it."""
        if term.field == "role":
            return self._kinds_expression(self._kinds.matching(None, term.pieces[0], None))
        if term.field == "tool":
            return any_of([tool_marker(term.typed)])
        if term.field == "is":
            return any_of(flag_markers(_FLAGS[term.pieces[0]]))
        keys = self.sessions_with(term, [str(term.field)])[:_MOST_MARKERS]
        return any_of([session_marker(key) for key in keys]) if keys else ""

    def _sessions(self, query: Query) -> frozenset[int] | None:
        """The sessions that the query's fields leave; None if it names none. A field beside OR is left to the words."""
        groups = [group for group in query.groups if is_of_session(group)]
        excluded = [term for term in query.excluded if term.field in SESSION_FIELDS]
        wanted = self._filter
        if not groups and not excluded and wanted.only is None and wanted.user is None and wanted.machine is None:
            return None
        found = set(self._keys("SELECT key FROM sessions")) if wanted.only is None else self._allowed()
        if wanted.user is not None or wanted.machine is not None:
            found &= set(self._keys(_OWNED, wanted.user, wanted.machine))
        for group in groups:
            found &= {key for term in group for key in self.sessions_with(term, [str(term.field)])}
        for term in excluded:
            found.difference_update(self.sessions_with(term, [str(term.field)]))
        return frozenset(found)

    def _allowed(self) -> set[int]:
        only = self._filter.only or frozenset()
        rows = self._connection.execute("SELECT key, agent || ':' || external_id FROM sessions")
        return {key for key, id in rows if id in only}

    def _beginning_words(self, beginning: str) -> list[str]:
        """Words of sessions with a prefix."""
        prefix = index_form(beginning)
        query = "SELECT term FROM session_words_rows WHERE term >= ? AND term < ? ORDER BY doc DESC LIMIT ?"
        rows = self._connection.execute(query, (prefix, f"{prefix}\U0010ffff", MAX_WORDS))
        return list(dict.fromkeys([prefix, *(term for (term,) in rows)]))

    # -- kinds

    def _kind_words(self) -> list[str] | None:
        """Markers of agent, role and field; None if the index has none of them."""
        filter = self._filter
        fields = None if filter.field is None else (FIELDS.index(filter.field),)
        if filter.failed is False and fields is None:
            # Failed calls have their own flag. Other calls have none, so the kind must say that it is a tool call.
            fields = (INPUT, OUTPUT)
        if filter.agent is None and filter.role is None and fields is None:
            return []
        keys = self._kinds.matching(filter.agent, filter.role, fields)
        return [self._kinds_expression(keys)] if keys else None

    def _kinds_expression(self, keys: Sequence[int]) -> str:
        return any_of([kind_marker(key) for key in keys]) if keys else ""

    # -- sessions and times

    def _sessions_condition(self, sessions: frozenset[int] | None) -> tuple[str, list[str] | None]:
        if sessions is None:
            return "", []
        if not sessions:
            return "", None
        self._connection.execute("CREATE TABLE IF NOT EXISTS temp.wanted_sessions (key INTEGER PRIMARY KEY)")
        self._connection.execute("DELETE FROM temp.wanted_sessions")
        self._connection.executemany("INSERT INTO temp.wanted_sessions VALUES (?)", [(key,) for key in sessions])
        condition = (
            " AND EXISTS (SELECT 1 FROM memberships x JOIN temp.wanted_sessions w ON w.key = x.session_key"
            " WHERE x.message_key = m.key)"
        )
        if len(sessions) > _MOST_MARKERS:
            return condition, []
        homes = self._keys(
            "SELECT DISTINCT d.home FROM temp.wanted_sessions w JOIN sessions s ON s.key = w.key AND s.shares = 1"
            " JOIN memberships x ON x.session_key = s.key JOIN documents d ON d.message_key = x.message_key"
        )
        return condition, [any_of([session_marker(home) for home in {*sessions, *homes}])]

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
        return condition, [any_of([session_marker(home) for home in homes])] if homes else None

    def _project_condition(self) -> tuple[str, list[str] | None]:
        if self._filter.project is None:
            return "", []
        projects = self._keys("SELECT key FROM projects WHERE path = ?1 OR name = ?1", self._filter.project)
        if not projects:
            return "", None
        # Messages shared with a session of the project may be marked with a home in another project.
        homes = self._keys(
            "SELECT DISTINCT d.home FROM sessions s JOIN memberships x ON x.session_key = s.key"
            " JOIN documents d ON d.message_key = x.message_key JOIN home_sessions h ON h.session_key = d.home"
            f" WHERE s.shares = 1 AND s.project_key IN ({sql_list(projects)})"
            f" AND (h.project_key IS NULL OR h.project_key NOT IN ({sql_list(projects)}))"
        )
        condition = (
            " AND EXISTS (SELECT 1 FROM memberships x JOIN sessions s ON s.key = x.session_key"
            f" WHERE x.message_key = m.key AND s.project_key IN ({sql_list(projects)}))"
        )
        words = [project_marker(key) for key in projects] + [session_marker(home) for home in homes]
        return condition, [any_of(words)]

    def _keys(self, query: str, *parameters: Any) -> list[int]:
        return [key for (key,) in self._connection.execute(query, parameters)]

    def _times(self) -> str:
        limits = ((self._filter.since, ">="), (self._filter.until, "<"))
        wanted = [(operator, aware_milliseconds(limit)) for limit, operator in limits if limit is not None]
        return "".join([f" AND m.created_at {operator} {limit}" for operator, limit in wanted])


def _folded(name: str) -> str:
    """A name as it is compared with what was typed."""
    return " ".join(pieces(name)).lower()


def is_of_session(group: Sequence[Term]) -> bool:
    """Whether all alternatives say something of whole sessions."""
    return all(term.field in SESSION_FIELDS for term in group)


def words_of(query: Query) -> Query:
    """The query without what says something of whole sessions."""
    return query._replace(
        groups=tuple(group for group in query.groups if not is_of_session(group)),
        excluded=tuple(term for term in query.excluded if term.field not in SESSION_FIELDS),
    )


def last_id_of(created_at: int, displacement: int) -> int:
    """The largest id of a document with this time or an earlier one."""
    return (index_file.block_of(created_at) + displacement + 1 << index_file.SLOT_BITS) - 1


def json_list(keys: Iterable[int]) -> str:
    """Keys for `json_each`: a statement that does not contain them is prepared once, which can take as long as it."""
    return f"[{sql_list(keys)}]"


def sql_list(keys: Iterable[int]) -> str:
    """Keys as a list for `IN ()`."""
    return ",".join(map(str, keys))
