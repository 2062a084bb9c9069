"""The coding agents whose logs are read, by name, and which of them wrote a file.

Built-in agents have a line in `BUILT_IN`; packages that are installed beside this one add theirs through the
entry-point group `turnlog.agents`. A module is imported when its agent is asked for.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from turnlog.agents.base import HOOK_MARKERS, Agent, Detection, Source, TurnMarker
from turnlog.agents.commands import CommandFacts, find_command
from turnlog.agents.files import is_nameable, note_unreadable
from turnlog.errors import TurnlogError

if TYPE_CHECKING:
    from turnlog.agents.changes import Changes

GROUP = "turnlog.agents"

BUILT_IN = {
    "claude-code": "turnlog.agents.claude_code:ClaudeCode",
    "codex": "turnlog.agents.codex:Codex",
    "gemini-cli": "turnlog.agents.gemini_cli:GeminiCli",
    "klaude": "turnlog.agents.klaude:Klaude",
    "opencode": "turnlog.agents.opencode:OpenCode",
}
"""Agent -> its class. Packages cannot replace these."""

HEAD_SIZE = 1 << 16
"""Bytes at a file's beginning that tell who wrote it."""

MORE_SIZE = 1 << 16
"""Bytes behind the line in which those end that are looked at too where they tell nobody's: a log may begin with a
line that is longer, or with many that any agent could have written."""

_LONGEST_LINE = 1 << 28


def agent(name: str) -> Agent:
    """The agent of that name. Raises TurnlogError, naming those there are, when there is none."""
    if name in BUILT_IN:
        return _load(BUILT_IN[name])
    targets = _targets()
    if name not in targets:
        raise TurnlogError(f"no agent is named {name!r}; there are {', '.join(sorted(targets))}")
    return _load(targets[name])


def agents() -> Sequence[Agent]:
    """Every agent, by name. One that cannot be imported is left out with a warning."""
    found: list[Agent] = []
    for name, target in sorted(_targets().items()):
        try:
            found.append(_load(target))
        except Exception as error:  # A stranger's package must not take everything down.
            warnings.warn(f"agent {name!r} cannot be loaded: {error!r}", RuntimeWarning, stacklevel=2)
    return found


def agents_with_hooks() -> dict[str, Agent]:
    """The agents that can tell of themselves by hooks, by the name of their program (`claude`)."""
    return {
        agent.command.program if agent.command is not None else agent.name: agent
        for agent in agents()
        if agent.hooks is not None
    }


def started_agent(command: Sequence[str]) -> tuple[Agent, CommandFacts] | None:
    """The agent that a command starts, and what the command says; None for a command of no agent."""
    found = {each.name: each for each in agents()}
    forms = {name: each.command for name, each in found.items() if each.command is not None}
    started = find_command(forms, command)
    return None if started is None else (found[started[0]], started[1])


def homes_of(agent: Agent) -> Sequence[Path]:
    """The agent's homes on this machine; none where its module fails, which is reported as `find_sources` does."""
    try:
        return list(agent.roots())
    except Exception as error:  # A stranger's package must not take everything down.
        note_unreadable(agent.name, f"{agent.display_name} cannot be looked for: {error!r}")
        return []


def find_sources(agents: Iterable[Agent], roots: Sequence[Path] | None = None) -> Iterator[tuple[Agent, Source]]:
    """Every source of these agents below the roots, or below their own homes.

    Where an agent's module fails, the others go on; its homes count as unreadable
    (`discovery.collect_unreadable_folders`). So does a file whose name is not UTF-8.
    """
    for agent in agents:
        try:
            for source in agent.discover(roots):
                if is_nameable(source.path):
                    yield agent, source
        except Exception as error:  # A stranger's package must not take everything down.
            for home in homes_of(agent) if roots is None else roots:
                note_unreadable(str(home), f"{agent.display_name} cannot be looked for: {error!r}")


def detect(path: Path) -> Detection:
    """Which agent wrote the file, in which version, by what stands in it; or why nobody can tell (R-S21)."""
    try:
        with path.open("rb") as file:
            head = file.read(HEAD_SIZE)
            found = _whose(path, head)
            if found.agent is None and len(head) == HEAD_SIZE:
                found = _whose(path, head + file.readline(_LONGEST_LINE) + file.read(MORE_SIZE))
    except OSError as error:
        return Detection(reason=f"cannot be read: {error.strerror or error}")
    return found


def _whose(path: Path, head: bytes) -> Detection:
    if not head:
        return Detection(reason="empty")
    # The order of names decides where two agents would take a file; no recorded file is taken by two.
    reasons: list[str] = []
    for candidate in agents():
        detection = candidate.detect(path, head)
        if detection.agent is not None:
            return detection
        reasons.append(f"{candidate.display_name}: {detection.reason}")
    return Detection(reason="; ".join(reasons))


@cache
def turn_markers(name: str) -> Mapping[str, TurnMarker]:
    """Kinds of events -> what they say, for the agent of that name; those of hooks alone where it is not installed."""
    try:
        return {**HOOK_MARKERS, **agent(name).turn_markers}
    except TurnlogError:
        return HOOK_MARKERS


def log_marks_turns(name: str) -> bool:
    """Whether the log of the agent of that name has events that say when a turn ends."""
    return any(marker == "end" and kind not in HOOK_MARKERS for kind, marker in turn_markers(name).items())


def fold_bytes(agent: Agent, source: Source, data: bytes) -> Changes:
    """All that one file's bytes bring, in one feed from its start."""
    return agent.fold(source).feed(data, 0)


def _targets() -> dict[str, str]:
    """Where each agent's class is, by the agent's name."""
    if not any(_names_group(Path(folder)) for folder in sys.path):
        return BUILT_IN
    # Imported here because it takes longer than all of this package.
    from importlib.metadata import entry_points

    return {**{entry.name: entry.value for entry in entry_points(group=GROUP)}, **BUILT_IN}


def _names_group(place: Path) -> bool:
    """Whether a place that packages are imported from may hold one with an agent.

    Few installations have one, and each light command would pay for looking into every package.
    """
    if place.is_file():
        return True  # A zip file, whose packages only `importlib.metadata` reads.
    group = f"[{GROUP}]".encode()
    with suppress(OSError), os.scandir(place) as entries:
        packages = [entry.path for entry in entries if entry.name.endswith((".dist-info", ".egg-info"))]
        return any(group in _entry_points_of(package) for package in packages)
    return False


def _entry_points_of(package: str) -> bytes:
    try:
        return Path(package, "entry_points.txt").read_bytes()
    except OSError:
        return b""


def load_target(target: str) -> Any:
    """What `module:name` names. Raises ImportError or AttributeError when it is not there."""
    module, _, name = target.partition(":")
    return getattr(import_module(module), name)


@cache
def _load(target: str) -> Agent:
    return load_target(target)()
