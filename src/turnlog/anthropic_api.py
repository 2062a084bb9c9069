"""Words of Anthropic's Messages API that more than one room reads.

The provider reads them in responses. Claude Code copies the API's messages into its logs as they came, so its reader
finds the same words there. `agents` and `providers` do not import each other, and `model` knows no provider, so the
words are here.
"""

from __future__ import annotations

from typing import Final

from turnlog.model.message import StopReason

STOP_REASONS: Final[dict[str, StopReason]] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "tool_use": "tool_use",
    "refusal": "refusal",
    "pause_turn": "pause",
    "model_context_window_exceeded": "context_window",
    "compaction": "pause",
}
"""`stop_reason` of a message -> why the model stopped. A word that is not here has no known meaning."""

UNKNOWN_REGION: Final = "not_available"
"""`inference_geo` of a message whose region the API does not name."""
