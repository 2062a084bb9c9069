"""The queries of lists, and those that decode the messages of a session."""

from __future__ import annotations

from turnlog.store.base import check_arguments
from turnlog.store.sqlite.history import HistoryQueries
from turnlog.store.sqlite.lists import ListStore


class TranscriptStore(HistoryQueries, ListStore):
    """A store that has only imported queries for lists and for what happened in a session."""


check_arguments(TranscriptStore)
