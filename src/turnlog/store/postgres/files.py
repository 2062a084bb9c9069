"""Files by their last touch in PostgreSQL, from the table `touches`: every message has its files there.

Triggers keep it (migration 12). A message of several sessions counts to one of those that the viewer sees, as in
`sqlite.tool_calls`, so that it is decided here to which.
"""

from __future__ import annotations

from typing import Final

from turnlog.store.base import EVERY_FILE, FileFilter
from turnlog.store.keys import session_key
from turnlog.store.rows import moment
from turnlog.store.sqlite.reading import Connections
from turnlog.store.sqlite.tool_calls import COUNTED_SESSION, conditions_of_files
from turnlog.store.values import TouchedFile

_OF_ONE: Final = (
    "SELECT t.file, t.session_key, t.calls, t.edits, t.last_at FROM touches t JOIN sessions s ON s.key = t.session_key"
    " WHERE {condition}"
)

_OF_ANY: Final = (
    "SELECT t.file, t.session_key, t.calls, t.edits, t.last_at FROM touches t WHERE t.session_key IS NOT NULL"
)
"""Without a look at the sessions."""

_SHARED: Final = f"SELECT t.*, {COUNTED_SESSION} AS counted FROM touches t WHERE t.session_key IS NULL"

_OF_SEVERAL: Final = (
    "SELECT resolve_path(t.path, s.cwd), s.key, t.calls, t.edits, t.last_at"
    " FROM shared t JOIN sessions s ON s.key = t.counted WHERE {condition}"
)

_FILES: Final = (
    f"WITH shared AS MATERIALIZED ({_SHARED}),"
    " seen (file, session_key, calls, edits, last_at) AS ({of_one} UNION ALL {of_several}),"
    " newest (file) AS (SELECT file FROM seen GROUP BY file{having}"
    " ORDER BY max(last_at) DESC NULLS LAST, file DESC LIMIT :limit)"
    " SELECT file, count(*), sum(calls), sum(edits), max(last_at) FROM"
    " (SELECT s.file, s.session_key, sum(s.calls) AS calls, sum(s.edits) AS edits, max(s.last_at) AS last_at"
    " FROM newest n JOIN seen s ON s.file = n.file GROUP BY s.file, s.session_key) f"
    " GROUP BY file ORDER BY max(last_at) DESC NULLS LAST, file DESC"
)
"""Sessions are counted only of the files that are shown: to sort all by file and session takes four times as long."""


class KeptFiles(Connections):
    """The query of `Store` for files by their last touch."""

    def touched_files(self, filter: FileFilter = EVERY_FILE, *, limit: int = 200) -> list[TouchedFile]:
        """See `turnlog.store.base.Store.touched_files`."""
        condition, values = conditions_of_files(filter)
        of_one = _OF_ANY if condition == "1" else _OF_ONE
        with self._snapshot() as connection:
            if filter.session is not None:
                values["session"] = session_key(connection, filter.session)
                of_session = "t.message_key IN (SELECT message_key FROM memberships WHERE session_key = :session)"
                of_one, condition = _OF_ONE, f"{condition} AND {of_session}"
            query = _FILES.format(
                of_one=of_one.format(condition=condition),
                of_several=_OF_SEVERAL.format(condition=condition),
                having=" HAVING sum(edits) > 0" if filter.changed else "",
            )
            rows = connection.execute(query, {**values, "limit": limit}).fetchall()
        return [TouchedFile(file, sessions, calls, edits, moment(last)) for file, sessions, calls, edits, last in rows]
