"""The text of `turnlog statusline`, and the way to write it without a parser of arguments.

Claude Code asks for it after every answer, and importing the parser takes longer than all the rest.
"""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import cast

from turnlog import paths
from turnlog.cli import formatting
from turnlog.errors import TurnlogError
from turnlog.plain_text import one_line
from turnlog.store import open_store
from turnlog.store.times import midnight


def answer_quickly() -> bool:
    """Write the text for the user's own store.

    False if anything is in the way: standard input can be read again then, so that the command says what it is.
    """
    given = b""
    try:
        given = sys.stdin.buffer.read()
        print(status_text(given, paths.database_path()), flush=True)
    except Exception:  # Whatever it is, the command meets it again and reports it.
        sys.stdin = io.TextIOWrapper(io.BytesIO(given), encoding="utf-8")
        return False
    return True


def status_text(given: bytes, store_path: Path) -> str:
    """What is known of the session, of today and of the running block.

    `given` is the JSON that Claude Code writes. Raises TurnlogError if it is none; a store that cannot be used is left
    out.
    """
    try:
        values: object = json.loads(given)
    except (ValueError, RecursionError) as error:
        raise TurnlogError("standard input is not the JSON that an agent writes for a status line") from error
    parts = [*_given(values)]
    with suppress(TurnlogError):
        parts += _stored(store_path)
    return " · ".join(parts)


def _given(given: object) -> Iterator[str]:
    """What Claude Code itself says; versions differ in what they have."""
    model = _field(given, "model", "display_name")
    if isinstance(model, str) and (name := one_line(model)):
        yield name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"
    cost = _number(_field(given, "cost", "total_cost_usd"))
    if cost is not None:
        yield f"{formatting.money(Decimal(str(cost)))} session"
    used = _number(_field(given, "context_window", "used_percentage"))
    if used is not None:
        yield f"{used:.0f} % context"


def _number(value: object) -> float | None:
    """A number that can be shown: Python's JSON knows infinite ones, and true is none. Nothing costs less than 0."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value < _MOST else None


_MOST = 1e9

_LONGEST_NAME = 40
"""Characters of a model's name: a status line has one row."""


def _field(value: object, *names: str) -> object:
    for name in names:
        value = cast("dict[str, object]", value).get(name) if isinstance(value, dict) else None
    return value


def _stored(store_path: Path) -> Iterator[str]:
    now = datetime.now(UTC)
    with open_store(store_path) as store:
        today, block = store.spending(since=midnight(now.astimezone().date()))
    yield f"{formatting.money(*today)} today"
    if block is not None:
        left = formatting.duration((block.ends_at - now) // timedelta(minutes=1) * 60_000)
        yield f"{formatting.money(*block.spent)} block, {left.removesuffix(' 0 s')} left"
        if block.cost_per_hour is not None:
            yield f"{formatting.money(block.cost_per_hour)}/h"
