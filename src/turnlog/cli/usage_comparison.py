"""What `turnlog usage --compare` writes: two periods beside each other, why their cost differs, models and projects."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, time, timedelta, tzinfo
from decimal import Decimal
from typing import TYPE_CHECKING, NamedTuple

import click

from turnlog.cli import formatting
from turnlog.cli.terminal import Column, write_note, write_table
from turnlog.cli.usage_sums import KINDS, token_sums
from turnlog.store.times import midnight
from turnlog.store.usage_comparison import Cause, ComparedPeriod, ComparedRow, UsageComparison, compare_usage

if TYPE_CHECKING:
    from turnlog.store.base import Store, UsageFilter
    from turnlog.store.usage_report import UsageTotals

_DAYS = 7
"""Days that are compared if no time is given, today included."""

_ROWS = 10


def compare(store: Store, wanted: UsageFilter, zone: tzinfo | None) -> UsageComparison:
    """The period of a filter beside the one before it; without times, the last seven days, today included.

    A period that begins with a day and has no end goes to the end of today, so that both periods are whole days.
    Raises click.UsageError for a period that has only an end, or no length.
    """
    now = datetime.now(zone).astimezone(zone)
    if wanted.since is None and wanted.until is not None:
        raise click.UsageError("--compare with --until needs --since too.")
    since = wanted.since or midnight(now.date() - timedelta(days=_DAYS - 1), zone)
    end = midnight(now.date() + timedelta(days=1), zone) if _is_midnight(since.astimezone(zone)) else now
    try:
        return compare_usage(store, since, wanted.until or end, wanted, zone=zone)
    except ValueError as error:
        raise click.UsageError(f"{error}.") from error


def _is_midnight(at: datetime) -> bool:
    return at.time() == time()


def write_comparison(comparison: UsageComparison) -> None:
    """Tables of the periods, the causes, the models and the projects."""
    earlier, later = comparison.earlier, comparison.later
    columns = (
        Column(""),
        *(
            Column(title, right=True)
            for title in (*(_span(period, comparison.zone) for period in (earlier, later)), "Change")
        ),
    )
    counts = {"Sessions": (earlier.sessions, later.sessions), "Calls": (earlier.totals.calls, later.totals.calls)}
    rows = [(name, *map(formatting.count, both), formatting.change(*both)) for name, both in counts.items()]
    write_table(columns, [*rows, *_compared(earlier.totals, later.totals)])
    if comparison.causes:
        _heading("Why the cost changed")
        _write_causes(comparison)
    for title, rows in (("Model", comparison.models), ("Project", comparison.projects)):
        if rows:
            _heading(f"{title}s")
            _write_rows(title, rows)
    if not later.sessions:
        click.echo(f"No session used a model {_span(later, comparison.zone)}: --since names another time.", err=True)
    for sentence in comparison.missing:
        write_note(sentence)


def _heading(text: str) -> None:
    click.echo(f"\n{text}")


def _span(period: ComparedPeriod, zone: str) -> str:
    """The first and the last day of whole days, else the times."""
    since, until = (at.astimezone(UTC if zone == "UTC" else None) for at in (period.since, period.until))
    if _is_midnight(since) and _is_midnight(until):
        return f"{since.date()} to {until.date() - timedelta(days=1)}"
    return f"{formatting.moment(period.since)} to {formatting.moment(period.until)}"


_TOKENS: tuple[Callable[[UsageTotals], int], ...] = (
    lambda totals: totals.input + totals.tool_prompt,
    lambda totals: totals.cache_write_5m + totals.cache_write_1h + totals.cache_write,
    lambda totals: totals.cache_read,
    lambda totals: totals.output + totals.reasoning,
)
"""The numbers of `token_sums`."""


class _CauseText(NamedTuple):
    name: str
    measure: Callable[[float | None], str]


def _number(value: float | None) -> str:
    return formatting.UNKNOWN if value is None else f"{value:,.1f}".removesuffix(".0")


def _tokens(value: float | None) -> str:
    return formatting.tokens(None if value is None else round(value))


def _nothing(_: float | None) -> str:
    return ""


_CAUSES: dict[Cause, _CauseText] = {
    "sessions": _CauseText("sessions with a known price", _number),
    "calls_per_session": _CauseText("calls per session", _number),
    "models": _CauseText("other models", _nothing),
    "tokens_per_call": _CauseText("tokens per call", _tokens),
    "output_share": _CauseText("output among the tokens", formatting.share),
    "cache_share": _CauseText("prompts read from the cache", formatting.share),
    "price": _CauseText("price of a token", _nothing),
}


def _write_causes(comparison: UsageComparison) -> None:
    """The causes, their sum, and what no cause contains."""
    rows = [
        (name, measure(each.earlier), measure(each.later), _signed(each.cost_change))
        for each in comparison.causes
        for name, measure in [_CAUSES[each.cause]]
    ]
    rows.append(("all causes", "", "", _signed(comparison.cost_change)))
    before, after = (
        period.totals.unpriced_calls + period.totals.unknown_calls for period in (comparison.earlier, comparison.later)
    )
    if before or after:
        rows.append(("calls without a known price", formatting.count(before), formatting.count(after), "not in it"))
    write_table((Column("Cause"), *(Column(title, right=True) for title in ("Before", "After", "Change"))), rows)


def _compared(earlier: UsageTotals, later: UsageTotals) -> Iterator[tuple[str, str, str, str]]:
    for name, number, *shown in zip(KINDS, _TOKENS, token_sums(earlier), token_sums(later), strict=True):
        change = formatting.change(number(earlier), number(later))
        yield name, shown[0], shown[1], formatting.UNKNOWN if formatting.UNKNOWN in shown else change
    yield "Cost", _cost(earlier), _cost(later), formatting.change(earlier.cost, later.cost)


def _cost(totals: UsageTotals) -> str:
    return formatting.money(totals.cost, totals.unpriced_calls + totals.unknown_calls)


def _signed(amount: Decimal | None) -> str:
    if amount is None:
        return formatting.UNKNOWN
    sign = "-" if amount < 0 else "+" if amount > 0 else ""
    return f"{sign}{formatting.money(abs(amount))}"


def _write_rows(title: str, rows: Sequence[ComparedRow]) -> None:
    columns = (
        Column(title, can_shrink=True),
        *(Column(name, right=True) for name in ("Calls before", "Calls", "Cost before", "Cost", "Change")),
    )
    labels = formatting.named_apart((row.name, row.label) for row in rows)
    cells = [
        (
            labels[row.name],
            formatting.count(row.earlier.calls),
            formatting.count(row.later.calls),
            _cost(row.earlier),
            _cost(row.later),
            _signed(row.cost_change),
        )
        for row in rows[:_ROWS]
    ]
    write_table(columns, cells)
    if len(rows) > _ROWS:
        click.echo(f"… {len(rows) - _ROWS} more")
