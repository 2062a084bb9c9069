"""A session played again: what a screen shows, what the model saw, how long everything took.

`replay` derives the events of a screen, `model_view` keeps what the model sees, `timed` adds the pauses, and
`iter_runs` with `stream_run` yields the same as `StreamEvent`s, for a page that reads chunks.
"""

from __future__ import annotations

from turnlog.replay.derive import replay, response_metadata_of
from turnlog.replay.events import (
    AnswerShown,
    CompactionShown,
    DeveloperShown,
    ErrorShown,
    ImageShown,
    InterruptShown,
    ReplayEvent,
    ResponseMetadata,
    RewindShown,
    RunMetadataShown,
    ToolCallShown,
    ToolResultShown,
    TurnStarted,
    UserShown,
)
from turnlog.replay.stream import LONGEST_PAUSE, ReplayRun, Timed, iter_runs, stream_run, timed
from turnlog.replay.view import ModelView, model_view

__all__ = [
    "LONGEST_PAUSE",
    "AnswerShown",
    "CompactionShown",
    "DeveloperShown",
    "ErrorShown",
    "ImageShown",
    "InterruptShown",
    "ModelView",
    "ReplayEvent",
    "ReplayRun",
    "ResponseMetadata",
    "RewindShown",
    "RunMetadataShown",
    "Timed",
    "ToolCallShown",
    "ToolResultShown",
    "TurnStarted",
    "UserShown",
    "iter_runs",
    "model_view",
    "replay",
    "response_metadata_of",
    "stream_run",
    "timed",
]
