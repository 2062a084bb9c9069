"""The first picture, painted by hand while Textual is still to be imported: the list as it is about to be.

Textual paints over it. Importing Textual and starting it takes half a second; a person sees the sessions at once.
"""

from __future__ import annotations

import shutil
import sys
from datetime import UTC, datetime
from typing import Final

from turnlog.tui.listing import Filters, Listing, ListPage, cells

ENTER: Final = "\x1b[?1049h\x1b[2J\x1b[?25l"
LEAVE: Final = "\x1b[?25h\x1b[?1049l"

HEAD_LINES: Final = 2
"""Lines above the list: the search field and the filters."""

_DIM, _BOLD, _REVERSED, _PLAIN = "\x1b[2m", "\x1b[1m", "\x1b[7m", "\x1b[0m"


def paint(listing: Listing, filters: Filters) -> ListPage:
    """Paint the list on the terminal of standard output, and return its first page."""
    size = shutil.get_terminal_size()
    page = listing.page("", filters)
    sys.stdout.write(picture(page, filters, size.columns, size.lines))
    sys.stdout.flush()
    return page


def picture(page: ListPage, filters: Filters, columns: int, lines: int) -> str:
    """The picture as text for a terminal of this size."""
    now = datetime.now(UTC)
    found = [f"{_DIM}/ search{_PLAIN}", f"{_DIM}{status_line(page, filters)[: columns - 1]}{_PLAIN}"]
    for number, row in enumerate(page.rows[: max(0, lines - HEAD_LINES - 1)]):
        text = "".join(
            f"{_BOLD}{cell.text}{_PLAIN}" if cell.role == "title" else cell.text for cell in cells(row, columns, now)
        )
        found.append(f"{_REVERSED}{text.replace(_PLAIN, _PLAIN + _REVERSED)}{_PLAIN}" if number == 0 else text)
    return ENTER + "".join(f"\x1b[{number};1H{line}" for number, line in enumerate(found, 1))


def status_line(page: ListPage, filters: Filters) -> str:
    """How many sessions there are, and the filters."""
    more = "" if page.is_exact else "+"
    count = "" if page.total is None else f"{page.total:,}{more} {'session' if page.total == 1 else 'sessions'}"
    return " · ".join(word for word in (count, *filters.words()) if word)
