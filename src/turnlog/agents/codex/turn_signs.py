"""Which events of Codex begin and end a turn, and which ask the user."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from turnlog.agents.turns import TurnSign

TURN_SIGNS: Final[Mapping[str, TurnSign]] = {
    "event_msg/task_started": "start",
    "event_msg/turn_started": "start",
    "turn.started": "start",
    "event_msg/task_complete": "end",
    "event_msg/turn_complete": "end",
    "event_msg/turn_aborted": "end",
    "turn.completed": "end",
    "event_msg/apply_patch_approval_request": "asks",
    "event_msg/elicitation_request": "asks",
    "event_msg/exec_approval_request": "asks",
    "event_msg/request_permissions": "asks",
    "event_msg/request_user_input": "asks",
}
