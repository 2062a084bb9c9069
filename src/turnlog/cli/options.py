"""What commands are asked: options that mean the same everywhere, and how times are written."""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Any, TypeVar

import click

from turnlog import paths

CommandT = TypeVar("CommandT", bound=Callable[..., Any])


def examples(*lines: str) -> str:
    """The end of a command's help."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


def store_option(command: CommandT) -> CommandT:
    """`--store PATH`: which store; by default the one `turnlog db path` names."""
    return click.option(
        "--store",
        "store_path",
        metavar="PATH",
        type=click.Path(path_type=Path, dir_okay=False),
        default=paths.database_path,
        callback=_note_store,
        help="Use this store instead of your own.",
    )(command)


STORE = "turnlog.store"
"""Under which name all contexts of a call know the path of the store: an error may have to name it."""


def _note_store(ctx: click.Context, _: click.Parameter, path: Path) -> Path:
    ctx.meta[STORE] = path
    return path


def json_option(command: CommandT) -> CommandT:
    """`--json`: a document of `turnlog.cli.documents` instead of text."""
    return click.option("--json", "as_json", is_flag=True, help="Write JSON instead of text.")(command)


MOST_ROWS = 1_000_000_000
"""What `--limit` may ask for: more than any store has."""


def limit_option(default: int, *, least: int = 1, meaning: str = "How many at most.") -> Callable[[CommandT], CommandT]:
    """`--limit`: how many rows are listed."""
    return click.option(
        "--limit", type=click.IntRange(least, MOST_ROWS), default=default, show_default=True, help=meaning
    )


def period_options(*, utc: bool = False) -> Callable[[CommandT], CommandT]:
    """`--since` and `--until`; days begin at midnight of this machine, or of UTC."""

    def decorate(command: CommandT) -> CommandT:
        whose = "UTC" if utc else "your time"
        command = click.option("--until", type=When(end=True, utc=utc), help=f"Up to and with this day ({whose}).")(
            command
        )
        return click.option(
            "--since", type=When(utc=utc), help="From then on: 2026-11-20, 2026-11, an ISO time, today, 7d, 12h."
        )(command)

    return decorate


class When(click.ParamType[datetime]):
    """A time as people write it. `end`: what names a day or a month means its end."""

    name = "when"

    def __init__(self, *, end: bool = False, utc: bool = False) -> None:
        self._end = end
        self._utc = utc

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        """An aware time; a usage error for what is none."""
        if isinstance(value, datetime):
            return value
        text = str(value).strip().upper()
        try:
            return self._parse(text)
        except (ValueError, OverflowError):
            self.fail(f"{value!r} is no time: write 2026-11-20, 2026-11, 2026-11-20T14:30, today or 7d", param, ctx)

    def _parse(self, text: str) -> datetime:
        ago = re.fullmatch(r"(\d+)([HDW])", text)
        if ago is not None:
            return datetime.now(UTC) - int(ago[1]) * _AGO[ago[2]]
        if text in ("TODAY", "YESTERDAY"):
            return self._day(self._aware(datetime.now(UTC)).date() - timedelta(days=text == "YESTERDAY"))
        month = re.fullmatch(r"(\d{4})-(\d\d)", text)
        if month is not None:
            first = date(int(month[1]), int(month[2]), 1)
            return self._day(first.replace(day=monthrange(first.year, first.month)[1]) if self._end else first)
        if re.fullmatch(r"\d{4}-\d\d-\d\d", text):
            return self._day(date.fromisoformat(text))
        moment = datetime.fromisoformat(text)
        return moment if moment.tzinfo is not None else self._aware(moment)

    def _day(self, day: date) -> datetime:
        if self._end and day == date.max:
            # No day comes after it.
            return datetime.max.replace(tzinfo=UTC)
        return self._midnight(day + timedelta(days=self._end))

    def _midnight(self, day: date) -> datetime:
        return self._aware(datetime.combine(day, time()))

    def _aware(self, moment: datetime) -> datetime:
        """A naive time becomes one of this machine's zone (or UTC); an aware one is shown in it."""
        if self._utc:
            return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
        return moment.astimezone()


_AGO = {"H": timedelta(hours=1), "D": timedelta(days=1), "W": timedelta(weeks=1)}
