"""Where the settings of agents are, as the pages for users say it."""

from __future__ import annotations

import re
from pathlib import Path

PAGES = Path(__file__).parents[2] / "docs/how-to"

_ROW = re.compile(r"^\| `([\w-]+)` \| `~/([^`]+)` \|", re.MULTILINE)


def places_on(page: str) -> dict[str, str]:
    """Program -> its settings file below the user's home, of the table on a page of `docs/how-to`."""
    return dict(_ROW.findall((PAGES / page).read_text()))
