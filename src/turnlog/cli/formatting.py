"""Numbers, money and times as people read them. Unknown is a dash, never a zero."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from turnlog.model import Session
    from turnlog.store.values import SessionPreview

UNKNOWN = "–"  # noqa: RUF001  # an en dash is meant


def count(number: int | None) -> str:
    """`1,234`."""
    return UNKNOWN if number is None else f"{number:,}"


def tokens(number: int | None) -> str:
    """`950`, `12.3k`, `4.56M`."""
    if number is None:
        return UNKNOWN
    for size, unit, digits in ((10**9, "G", 2), (10**6, "M", 2), (10**3, "k", 1)):
        if number >= size:
            return f"{number / size:.{digits}f}{unit}"
    return str(number)


def money(amount: Decimal | None, unpriced_calls: int = 0) -> str:
    """`$1.23`; `$0.0042` below a cent; a `+` means that some calls are not included."""
    if amount is None:
        return UNKNOWN
    more = "+" if unpriced_calls else ""
    if 0 < amount < Decimal("0.0001"):
        return f"<$0.0001{more}"
    digits = 2 if amount >= Decimal("0.01") or amount == 0 else 4
    return f"${amount:,.{digits}f}{more}"


def cost_of(session: Session) -> str:
    """What a session's own calls cost; nothing for one without any, such as a fork that nobody continued."""
    if session.cost is None:
        return UNKNOWN if session.usage.calls or session.totals else money(Decimal(0))
    return money(session.cost.amount, session.unpriced_calls)


def cost_with_subagents(preview: SessionPreview) -> str:
    """What a session and the subagents below it cost; empty for one without subagents."""
    cost = preview.cost_with_subagents
    return "" if cost is None else money(cost.amount, preview.unpriced_with_subagents)


def size(number: int) -> str:
    """`512 B`, `1.5 MB`; thousands, as file managers count."""
    for power, unit in ((9, "GB"), (6, "MB"), (3, "kB")):
        if number >= 10**power:
            return f"{number / 10**power:.1f} {unit}"
    return f"{number} B"


def duration(milliseconds: int | None) -> str:
    """`85 ms`, `2.3 s`, `4 min 5 s`, `1 h 2 min`."""
    if milliseconds is None:
        return UNKNOWN
    if milliseconds < 1000:
        return f"{milliseconds} ms"
    seconds = milliseconds / 1000
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def span(session: Session) -> int | None:
    """Milliseconds from the first to the last record of a session; None without times."""
    if session.created_at is None or session.updated_at is None:
        return None
    return (session.updated_at - session.created_at) // timedelta(milliseconds=1)


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


def iso(at: datetime | None) -> str | None:
    """A time as JSON has it: ISO 8601, UTC, `Z`."""
    return None if at is None else at.isoformat().replace("+00:00", "Z")
