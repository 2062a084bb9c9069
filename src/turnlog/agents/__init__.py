"""The coding agents whose logs are read, by name, and which of them wrote a file.

Agents are found through the entry-point group `turnlog.agents`, so that a package that is installed beside this one
adds its own; the built-in ones are there also when no package is installed at all. A module is imported when its
agent is asked for.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import cache
from importlib import metadata
from pathlib import Path

from turnlog.agents.base import Agent, Changes, Detection, Source
from turnlog.errors import TurnlogError

GROUP = "turnlog.agents"

_BUILT_IN = {
    "claude-code": metadata.EntryPoint("claude-code", "turnlog.agents.claude_code:ClaudeCode", GROUP),
}

_HEAD_SIZE = 1 << 16
"""Bytes at a file's beginning that tell who wrote it."""


def agent(name: str) -> Agent:
    """The agent of that name. Raises TurnlogError, naming those there are, when there is none."""
    if name in _BUILT_IN:
        return _load(_BUILT_IN[name])
    entries = _entry_points()
    if name not in entries:
        raise TurnlogError(f"no agent is named {name!r}; there are {', '.join(sorted(entries))}")
    return _load(entries[name])


def agents() -> Sequence[Agent]:
    """Every agent, by name. One that cannot be imported is left out with a warning."""
    found: list[Agent] = []
    for name, entry in sorted(_entry_points().items()):
        try:
            found.append(_load(entry))
        except Exception as error:  # A stranger's package must not take everything down.
            warnings.warn(f"agent {name!r} cannot be loaded: {error!r}", RuntimeWarning, stacklevel=2)
    return found


def detect(path: Path) -> Detection:
    """Which agent wrote the file, in which version, by what stands in it; or why nobody can tell (R-S21)."""
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD_SIZE)
    except OSError as error:
        return Detection(reason=f"cannot be read: {error.strerror or error}")
    if not head:
        return Detection(reason="empty")
    reasons: list[str] = []
    for candidate in agents():
        detection = candidate.detect(path, head)
        if detection.agent is not None:
            return detection
        reasons.append(f"{candidate.display_name}: {detection.reason}")
    return Detection(reason="; ".join(reasons))


def fold_bytes(agent: Agent, source: Source, data: bytes) -> Changes:
    """All that one file's bytes bring, in one feed from its start."""
    return agent.fold(source).feed(data, 0)


def _entry_points() -> dict[str, metadata.EntryPoint]:
    """All of them, by name. Looking takes milliseconds, so it is left until somebody else's agent may be meant."""
    return {**{entry.name: entry for entry in metadata.entry_points(group=GROUP)}, **_BUILT_IN}


@cache
def _load(entry: metadata.EntryPoint) -> Agent:
    return entry.load()()
