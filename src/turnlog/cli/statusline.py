"""`turnlog statusline`: a line for Claude Code's status line, from what it writes to standard input and the store.

Claude Code runs it after every answer, so it opens the store only to read totals, reads no logs and never fails for a
store that it cannot use.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import cast

import click

from turnlog.cli import formatting
from turnlog.cli.options import examples, open_existing, store_option
from turnlog.errors import TurnlogError
from turnlog.plain_text import one_line
from turnlog.store.base import UsageFilter
from turnlog.store.periods import BLOCK


@click.command(
    epilog=examples(
        "turnlog statusline < input.json",
        """In ~/.claude/settings.json: "statusLine": {"type": "command", "command": "turnlog statusline"}""",
    )
)
@store_option
def statusline(store_path: Path) -> None:
    """Write a status line for Claude Code: the model, and what the session, today and the running block cost.

    Reads the JSON that Claude Code writes to standard input. A session's cost is Claude Code's own figure; the rest is
    from the store, as `turnlog usage --no-sync` has it.
    """
    try:
        given: object = json.loads(sys.stdin.buffer.read())
    except ValueError as error:
        raise TurnlogError("standard input is not the JSON that an agent writes for a status line") from error
    parts = [*_given(given)]
    with suppress(TurnlogError):
        parts += _stored(store_path)
    click.echo(" · ".join(parts))


def _given(given: object) -> Iterator[str]:
    """What Claude Code itself says; versions differ in what they have."""
    model = _field(given, "model", "display_name")
    if isinstance(model, str) and model:
        yield one_line(model)
    cost = _number(_field(given, "cost", "total_cost_usd"))
    if cost is not None:
        yield f"{formatting.money(Decimal(str(cost)))} session"
    used = _number(_field(given, "context_window", "used_percentage"))
    if used is not None:
        yield f"{used:.0f} % context"


def _number(value: object) -> float | None:
    """A number that can be shown; Python's JSON knows infinite ones, and true is no number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) < _MOST else None


_MOST = 1e9


def _field(value: object, *names: str) -> object:
    for name in names:
        value = cast("dict[str, object]", value).get(name) if isinstance(value, dict) else None
    return value


def _stored(store_path: Path) -> Iterator[str]:
    now = datetime.now(UTC)
    midnight = now.astimezone().replace(hour=0, minute=0, second=0, microsecond=0)
    with open_existing(store_path) as store:
        today = store.usage("day", UsageFilter(since=midnight), zone=None).totals
        blocks = store.usage("block", UsageFilter(since=now - BLOCK), zone=None).rows
    yield f"{formatting.money(today.cost, today.unpriced_calls + today.unknown_calls)} today"
    for row in blocks:
        if row.block is not None and row.block.is_running:
            cost = formatting.money(row.totals.cost, row.totals.unpriced_calls + row.totals.unknown_calls)
            left = formatting.duration((row.block.end - now) // timedelta(minutes=1) * 60_000)
            yield f"{cost} block, {left.removesuffix(' 0 s')} left"
            if row.block.cost_per_hour is not None:
                yield f"{formatting.money(row.block.cost_per_hour)}/h"
