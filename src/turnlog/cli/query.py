"""`turnlog query`: a question in SQL over the documented views of the store."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import re
import sys
from collections.abc import Iterable, Iterator
from itertools import islice, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

import click

from turnlog.cli.fresh_store import fresh_store_option, open_fresh
from turnlog.cli.options import WholeNumber, examples, json_option
from turnlog.cli.terminal import Column, escaped_json, write_table, writing_lines
from turnlog.errors import TurnlogError
from turnlog.plain_text import csv_cell

if TYPE_CHECKING:
    from turnlog.store.sqlite.query import SqlValue

_SECONDS = 60.0

_ROWS = 1_000

_MEASURED = 1_000
"""Rows of a table that say how wide its columns are: all of these are kept until then."""

_LARGEST_MEASURED = 8 << 20
"""Bytes of such rows after which no more are kept, and of the largest row of a table."""

_MORE = ": --seconds gives it more time"

_SHOWN_VIEWS = 3
"""Views with a column that the one that is asked has not."""

_UNKNOWN = re.compile(r"no such (table|column): (\S+)")


@click.command(
    epilog=examples(
        "turnlog query                                              # list the views and their columns",
        'turnlog query "SELECT project, sum(cost) FROM v_usage GROUP BY 1 ORDER BY 2 DESC"',
        "turnlog query --csv \"SELECT * FROM v_tool_calls WHERE tool_state = 'output-error'\" > failures.csv",
        "turnlog query - < question.sql",
    )
)
@click.argument("sql", metavar="[SQL]", required=False)
@click.option(
    "--limit",
    type=WholeNumber(1),
    default=_ROWS,
    show_default=True,
    help="Show at most this many rows of a table. JSON and CSV have all.",
)
@click.option("--seconds", type=click.FloatRange(0.001), default=_SECONDS, show_default=True, help="Give up after.")
@click.option("--csv", "as_csv", is_flag=True, help="Write CSV for a spreadsheet.")
@json_option
@fresh_store_option
def query(sql: str | None, limit: int, seconds: float, as_csv: bool, as_json: bool, store_path: Path) -> None:
    """Ask the store in SQL; it is only read.

    The views are those of docs/reference/sql.md. Without SQL, they are listed; - reads SQL from standard input.
    """
    from turnlog.store.sqlite.query import MEMORY, QueryTimeoutError, list_views
    from turnlog.store.sqlite.query import query as ask

    if as_csv and as_json:
        raise click.UsageError("--csv and --json cannot be combined.")
    if sql == "-":
        sql = sys.stdin.read()
    with open_fresh(store_path):
        """What is new is in the store now."""
    if not sql:
        views = ((name, ", ".join(columns)) for name, columns in list_views(store_path).items())
        _write(("view", "columns"), iter(views), limit, as_csv=as_csv, as_json=as_json)
        return
    try:
        with ask(store_path, sql, seconds, on_stuck=lambda: _end(seconds), memory=MEMORY) as found:
            _write(found.columns, found.rows, limit, as_csv=as_csv, as_json=as_json)
    except ValueError as error:
        raise click.UsageError(f"{error}{_near(store_path, sql, str(error))}.") from error
    except QueryTimeoutError as error:
        raise QueryTimeoutError(f"{error}{_MORE}") from error


def _near(store_path: Path, sql: str, error: str) -> str:
    """The view or column that an unknown name may mean, and where all of them are."""
    from difflib import get_close_matches

    from turnlog.store.sqlite.query import list_views

    unknown = _UNKNOWN.search(error)
    if unknown is None:
        return ""
    views = list_views(store_path)
    name = unknown[2].rpartition(".")[2]
    having = [view for view, columns in views.items() if name in columns]
    if having:
        hint = f" (there is one in {', '.join(having[:_SHOWN_VIEWS])})"
    else:
        # Of the views that are asked: a similar column of another one leads astray.
        asked = [view for view in views if re.search(rf"\b{view}\b", sql)]
        names = list(views) if unknown[1] == "table" else sorted({each for view in asked for each in views[view]})
        near = get_close_matches(name, names, 1)
        hint = f" (did you mean {near[0]}?)" if near else ""
    return f"{hint}; `turnlog query` lists the views and their columns"


def _end(seconds: float) -> None:
    """End the process: SQLite does not come back, and nothing of the store is open for writing."""
    sys.stdout.flush()
    click.echo(f"turnlog: the query took more than {seconds:g} seconds{_MORE}", err=True)
    os._exit(1)


def _write(
    columns: tuple[str, ...], rows: Iterator[tuple[SqlValue, ...]], limit: int, *, as_csv: bool, as_json: bool
) -> None:
    if as_json:
        _write_json(columns, rows)
    elif as_csv:
        _write_csv(columns, rows)
    else:
        shown = _bounded(islice(rows, limit))
        first = list(_measured(shown))
        write_table(_columns(columns, first), map(_texts, first), rest=map(_texts, shown))
        if next(rows, None) is not None:
            click.echo(f"These are the first {limit:,} rows: --limit, --json and --csv show more.", err=True)


def _bounded(rows: Iterable[tuple[SqlValue, ...]]) -> Iterator[tuple[SqlValue, ...]]:
    """The same rows. Raises TurnlogError for one that is too large for a table, which has several copies of it."""
    for row in rows:
        if _size(row) > _LARGEST_MEASURED:
            most = f"{_LARGEST_MEASURED >> 20} MB"
            raise TurnlogError(f"a row of a table has at most {most}: --json and --csv write rows of any size")
        yield row


def _measured(rows: Iterator[tuple[SqlValue, ...]]) -> Iterator[tuple[SqlValue, ...]]:
    """The first rows, which are kept."""
    size = 0
    for row in islice(rows, _MEASURED):
        yield row
        size += _size(row)
        if size > _LARGEST_MEASURED:
            return


def _size(row: tuple[SqlValue, ...]) -> int:
    return sum(map(sys.getsizeof, row))


def _texts(row: tuple[SqlValue, ...]) -> list[str]:
    return [_text(value) for value in row]


def _columns(names: Iterable[str], rows: list[tuple[SqlValue, ...]]) -> list[Column]:
    numbers = [
        any(each is not None for each in values) and all(isinstance(each, int | float | None) for each in values)
        for values in zip(*rows, strict=True)
    ]
    return [
        Column(name, right=is_number, can_shrink=not is_number)
        for name, is_number in zip_longest(names, numbers, fillvalue=False)
        if isinstance(name, str)
    ]


def _write_csv(columns: tuple[str, ...], rows: Iterable[tuple[SqlValue, ...]]) -> None:
    """A row at a time, since there may be millions."""
    with writing_lines() as write:
        write(_csv_line(csv_cell(name) for name in columns))
        for row in rows:
            write(_csv_line([_csv_value(value) for value in row]))


def _write_json(columns: tuple[str, ...], rows: Iterable[tuple[SqlValue, ...]]) -> None:
    with writing_lines() as write:
        write(escaped_json('{"columns": ' + json.dumps(columns, ensure_ascii=False) + ', "rows": ['))
        for number, row in enumerate(rows):
            text = json.dumps([_json_value(value) for value in row], ensure_ascii=False)
            write(escaped_json(f"{',' if number else ''}\n{text}"))
        write("]}\n")


def _json_value(value: SqlValue) -> str | int | float | None:
    # JSON has no infinite number.
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value.hex() if isinstance(value, bytes) else value


def _text(value: SqlValue) -> str:
    if value is None:
        return ""
    return f"{value:.10g}" if isinstance(value, float) else value.hex() if isinstance(value, bytes) else str(value)


def _csv_value(value: SqlValue) -> str | int | float:
    return value if isinstance(value, int | float) else csv_cell(_text(value))


def _csv_line(cells: Iterable[str | int | float]) -> str:
    text = io.StringIO()
    csv.writer(text, quoting=csv.QUOTE_NONNUMERIC).writerow(cells)
    return text.getvalue()
