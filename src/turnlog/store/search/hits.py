"""Hits for documents that match: their texts from the store, a snippet of each, and the sessions that have them."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias
from zlib import crc32

from turnlog.store.frames import BODY_COLUMNS, BodyReader
from turnlog.store.rows import moment
from turnlog.store.search import index_file
from turnlog.store.search.base import FIELDS, Hit, HitPlace
from turnlog.store.search.documents import Document, StoreReader, documents_of, texts_of
from turnlog.store.search.matches import Match
from turnlog.store.search.plan import json_list
from turnlog.store.search.query import Term
from turnlog.store.search.snippets import TermFinder

_GONE = ("", "", list[Document]())
"""A message that was deleted between two reads of the store."""

_PLACES = (
    "SELECT x.message_key, s.agent || ':' || s.external_id, x.position, coalesce(a.title, s.title), p.path, p.name"
    " FROM memberships x JOIN messages m ON m.key = x.message_key JOIN sessions s ON s.key = x.session_key"
    " LEFT JOIN projects p ON p.key = s.project_key"
    " LEFT JOIN annotations a ON a.session_id = s.agent || ':' || s.external_id"
    " WHERE x.message_key IN (SELECT value FROM json_each(?)) ORDER BY x.session_key IS NOT m.billed_key, x.session_key"
)

_BODIES = (
    f"SELECT m.key, m.agent, m.role, {BODY_COLUMNS} FROM messages m WHERE m.key IN (SELECT value FROM json_each(?))"
)

_Body: TypeAlias = tuple[str, str, list[Document]]
"""Agent, role and documents of the parts that match."""


class HitReader:
    """Makes hits for one query on one connection. A document whose text has changed since it was indexed is none."""

    def __init__(
        self, connection: sqlite3.Connection, terms: Sequence[Term], masked: Callable[[str], str] | None = None
    ) -> None:
        self._connection = connection
        self._masked = masked
        self._store_reader = StoreReader(connection, index_file.STORE)
        self._finder = TermFinder(terms)
        self._compared: dict[int, _Body] = {}
        """The bodies that `texts` read: the hits that are shown are among those that were compared."""

    def texts(self, matches: Iterable[Match]) -> dict[int, str]:
        """The texts of matches by document id, as far as bodies contain them."""
        matches = list(matches)
        bodies = self._compared = self._bodies(matches)
        found: dict[int, str] = {}
        for match in matches:
            document = _find(bodies.get(match.message_key, _GONE)[2], match)
            if document is not None:
                found[match.id] = document.inline_text
        return found

    def hits(self, matches: Sequence[Match]) -> Iterator[Hit]:
        """The hits, in the same order. After `texts` it takes only matches that were given to it."""
        bodies = self._compared or self._bodies(matches)
        places = self._places({match.message_key for match in matches})
        for match in matches:
            # The index lags behind the store: a document may be of a text that is no longer there.
            agent, role, documents = bodies.get(match.message_key, _GONE)
            document = _find(documents, match)
            text = None if document is None else self._text(match, document)
            if document is None or text is None:
                continue
            # A snippet may begin or end inside a token, which nobody recognises then.
            snippet = self._finder.snippet(text if self._masked is None else self._masked(text))
            yield Hit(
                match.message_id,
                agent,
                role,
                match.part,
                FIELDS[match.field],
                document.tool or None,
                moment(match.time),
                snippet.text,
                snippet.marks,
                tuple(places.get(match.message_key, ())),
            )

    def _bodies(self, matches: Iterable[Match]) -> dict[int, _Body]:
        """Message key -> agent, role and documents of the parts that match."""
        parts: dict[int, set[int]] = defaultdict(set)
        for match in matches:
            parts[match.message_key].add(match.part)
        rows = self._connection.execute(_BODIES, (json_list(parts),))
        read = BodyReader(self._connection, index_file.STORE)
        return {key: (agent, role, documents_of(read(*place), parts[key])) for key, agent, role, *place in rows}

    def _text(self, match: Match, document: Document) -> str | None:
        """The indexed text; None if it has changed since."""
        entry = match.entry
        for data in texts_of(document, self._store_reader.loader(match.message_key)):
            # Length and checksum identify the indexed piece: the body may have changed since.
            if len(data) == entry.length and crc32(data) == entry.checksum:
                return data.decode("utf-8", "replace")
        return None

    def _places(self, keys: Iterable[int]) -> dict[int, list[HitPlace]]:
        places: dict[int, list[HitPlace]] = {}
        for key, *place in self._connection.execute(_PLACES, (json_list(keys),)):
            places.setdefault(key, []).append(HitPlace(*place))
        return places


def _find(documents: Iterable[Document], match: Match) -> Document | None:
    for document in documents:
        if document.part == match.part and document.field == match.field:
            return document
    return None
