"""Which records of Claude Code end a turn. No record says that somebody is asked for leave: only hooks do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from turnlog.agents.turns import TurnSign

TURN_SIGNS: Final[Mapping[str, TurnSign]] = {
    "system/turn_duration": "end",
    "system/stop_hook_summary": "end",
    "result/success": "end",
    "result/error_during_execution": "end",
    "result/error_max_budget_usd": "end",
    "result/error_max_structured_output_retries": "end",
    "result/error_max_turns": "end",
}
