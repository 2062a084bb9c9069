"""Numbers, money and times as people read them. Unknown is a dash, never a zero."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from turnlog.model import Session
    from turnlog.model.usage import Exactness
    from turnlog.store.values import SessionPreview

UNKNOWN = "–"  # noqa: RUF001  # an en dash is meant


def count(number: int | None) -> str:
    """`1,234`."""
    return UNKNOWN if number is None else f"{number:,}"


def tokens(number: int | None) -> str:
    """`950`, `1.23k`, `48.3k`, `3.14M`: three digits, as the page writes them."""
    if number is None:
        return UNKNOWN
    for size, least, unit in _UNITS:
        if number >= least:
            scaled = number / size
            digits = 2 if scaled < 9.995 else 1 if scaled < 99.95 else 0
            shown = _fixed(scaled, digits)
            return f"{shown.rstrip('0').rstrip('.') if digits else shown}{unit}"
    return str(number)


_UNITS = ((1e9, 999_500_000, "B"), (1e6, 999_500, "M"), (1e3, 1_000, "k"))
"""Size, least number and name: a unit is used from where the smaller one would be rounded up to a thousand."""


def mark(exactness: Exactness, left_out: int = 0) -> str:
    """What stands before a sum: `≥ ` if it is a lower bound or leaves calls out, `≈ ` if it is estimated."""
    if left_out or exactness == "lower_bound":
        return "≥ "
    return "≈ " if exactness == "estimated" else ""


def money(amount: Decimal | None, unpriced_calls: int = 0, exactness: Exactness = "exact") -> str:
    """`$0.0042`, `$0.31`, `$12.08`, `$1,204`, as the page writes them, behind a `mark`."""
    if amount is None:
        return UNKNOWN
    dollars = float(amount)
    digits = 0 if dollars == 0 or dollars >= 1000 else 2 if dollars >= 0.01 else 4 if dollars >= 0.0001 else 6
    return f"{mark(exactness, unpriced_calls)}${_fixed(dollars, digits)}"


def share(value: float | None) -> str:
    """`0 %`, `< 0.1 %`, `4.2 %`, `83 %`, `99.6 %`, as the page writes them: few and all are not none and all."""
    if value is None:
        return UNKNOWN
    percent = 100 * value
    if 0 < percent < 0.1:
        return "< 0.1 %"
    if 99.9 < percent < 100:
        return "> 99.9 %"
    digits = 1 if percent < 9.95 or 99 < percent < 100 else 0
    return f"{_fixed(percent, digits).removesuffix('.0')} %"


def change(before: float | Decimal | None, after: float | Decimal | None) -> str:
    """How much more or less something became: `+50 %`, `-67 %`, `-99.6 %`, `< -99.9 %`; unknown from nothing.

    As the page writes them: only to nothing is `-100 %`.
    """
    if not before or after is None:
        return UNKNOWN
    percent = 100 * (float(after) - float(before)) / float(before)
    if after and percent < -99.9:
        return "< -99.9 %"
    difference = _fixed(percent, 1 if after and percent <= -99.5 else 0)
    if difference in ("0", "-0"):
        return "0 %"
    return f"{difference if difference.startswith('-') else f'+{difference}'} %"


def _fixed(value: float, digits: int) -> str:
    """So many decimals, with ties rounded up as JavaScript's `toFixed` does."""
    return f"{Decimal(value).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP):,}"


def cost_of(session: Session) -> str:
    """What a session's own calls cost: `$0` for one without any, what its agent reported where no price is known.

    One that only shares messages, such as a fork that nobody continued, has no figure: they count where they come from.
    """
    if session.cost is None and session.reported_cost is not None:
        return f"{money(session.reported_cost.amount)} reported"
    if session.cost is None:
        is_shared = any(link.kind != "subagent" for link in session.relationships)
        return UNKNOWN if session.usage.calls or session.totals or is_shared else money(Decimal(0))
    return money(session.cost.amount, session.unpriced_calls, session.usage.usage.exactness)


def cost_with_subagents(preview: SessionPreview, exactness: Exactness) -> str:
    """What a session and the subagents below it cost, at most as exact as itself; empty for one without subagents."""
    cost = preview.cost_with_subagents
    return "" if cost is None else money(cost.amount, preview.unpriced_with_subagents, exactness)


def size(number: int) -> str:
    """`512 B`, `1.5 MB`; thousands, as file managers count."""
    for power, unit in ((9, "GB"), (6, "MB"), (3, "kB")):
        if number >= 10**power:
            return f"{number / 10**power:.1f} {unit}"
    return f"{number} B"


def duration(milliseconds: float | None) -> str:
    """`85 ms`, `2.3 s`, `43 s`, `4 min 5 s`, `1 h 2 min`, `3 d 4 h`, as the page writes them."""
    if milliseconds is None:
        return UNKNOWN
    if milliseconds < 1000:
        return f"{_fixed(milliseconds, 0)} ms"
    if milliseconds < 9950:
        return f"{_fixed(milliseconds / 1000, 1)} s"
    seconds = int(milliseconds / 1000 + 0.5)
    if seconds < 60:
        return f"{seconds} s"
    if seconds < 3600:
        return f"{seconds // 60} min {seconds % 60} s"
    minutes = int(seconds / 60 + 0.5)
    if minutes < 24 * 60:
        return f"{minutes // 60} h {minutes % 60} min"
    hours = int(minutes / 60 + 0.5)
    return f"{hours // 24} d {hours % 24} h"


def span(session: Session) -> int | None:
    """Milliseconds from the first to the last record of a session; None without two times.

    A log that has one time for a whole run does not say how long it took.
    """
    if session.created_at is None or session.updated_at is None:
        return None
    return (session.updated_at - session.created_at) // timedelta(milliseconds=1) or None


def moment(at: datetime | None) -> str:
    """Date and minute, in the time of this machine."""
    return UNKNOWN if at is None else f"{_here(at):%Y-%m-%d %H:%M}"


def clock(at: datetime | None) -> str:
    """Time of day, in the time of this machine."""
    return UNKNOWN if at is None else f"{_here(at):%H:%M:%S}"


def _here(at: datetime) -> datetime:
    """The time in this machine's zone; unchanged if the zone cannot represent it, as with year 1 or 9999."""
    try:
        return at.astimezone()
    except OverflowError:
        return at


def plural(number: int, one: str, many: str | None = None) -> str:
    """`1 session`, `2 sessions`."""
    return f"{count(number)} {one if number == 1 else many or one + 's'}"


def named_apart(labels: Iterable[tuple[str | None, str | None]]) -> dict[str | None, str]:
    """Labels, from pairs of name and label: by label, and by name where several have one label.

    Names are paths of projects or ids of sessions; None is what no log names.
    """
    called = {name: label or name or "unknown" for name, label in labels}
    shared = Counter(called.values())
    return {name: label if shared[label] == 1 else name or "unknown" for name, label in called.items()}


def iso(at: datetime | None) -> str | None:
    """A time as JSON has it: ISO 8601, UTC, `Z`."""
    return None if at is None else at.isoformat().replace("+00:00", "Z")
