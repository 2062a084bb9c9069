"""Searches that only find: what else could have been meant takes longer than all hits of a small store."""

from __future__ import annotations

import pytest

from turnlog.store.search import searcher


def leave_out_suggestions(patch: pytest.MonkeyPatch) -> None:
    """Let no search of this test look for words that are spelt alike."""
    patch.setattr(searcher, "suggestion", _no_suggestion)


def _no_suggestion(*_: object) -> None:
    """In place of `spelling.suggestion`."""
