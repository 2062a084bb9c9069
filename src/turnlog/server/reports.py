"""What the background's process tells the server: one JSON line a report."""

from __future__ import annotations

from typing import TypeAlias

import msgspec


class _Report(msgspec.Struct, frozen=True, kw_only=True, tag_field="report"):
    """A line."""


class Began(_Report, frozen=True, kw_only=True, tag="began"):
    """A pass begins."""


class Moved(_Report, frozen=True, kw_only=True, tag="moved"):
    """The pass is in this phase, and so far in it."""

    phase: str
    done: int
    total: int


class Saved(_Report, frozen=True, kw_only=True, tag="saved"):
    """The store has something new, up to this number of the change sequence."""

    sequence: int


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """A file that could not be read."""

    path: str
    reason: str


class Ended(_Report, frozen=True, kw_only=True, tag="ended"):
    """The pass is over."""

    problems: list[Problem]


class Failed(_Report, frozen=True, kw_only=True, tag="failed"):
    """The pass could not be finished."""

    reason: str


Report: TypeAlias = Began | Moved | Saved | Ended | Failed
