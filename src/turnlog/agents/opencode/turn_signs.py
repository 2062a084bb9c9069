"""Which events of OpenCode's server ask the user, and which say that it is idle. Its database tells neither."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from turnlog.agents.turns import TurnSign

TURN_SIGNS: Final[Mapping[str, TurnSign]] = {
    "permission.asked": "asks",
    "permission.updated": "asks",
    "session.idle": "end",
}
