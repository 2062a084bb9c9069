"""The registry of coding agents: find one by name, find its sources, and recognise whose log a file is.

Built-in agents are listed in `built_in.BUILT_IN`. Other installed packages add agents through the entry-point group
`turnlog.agents`. An agent's module is imported when the agent is first used: `agents_here` imports only the built-in
agents of which something may be on this machine, `agents` all, `agent_names` none.
"""

from __future__ import annotations

import os
import sys
import threading
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from turnlog.agents.base import HOOK_MARKERS, Agent, Detection, Source, TurnMarker
from turnlog.agents.built_in import BUILT_IN, may_be_here
from turnlog.agents.commands import CommandFacts, find_command
from turnlog.agents.files import is_nameable, note_unreadable
from turnlog.errors import TurnlogError

if TYPE_CHECKING:
    from turnlog.agents.changes import Changes

GROUP = "turnlog.agents"


HEAD_SIZE = 1 << 16
"""Bytes at the beginning of a file from which an agent is first recognised."""

MORE_SIZE = 1 << 16
"""Bytes read after the line that crosses `HEAD_SIZE`, if those before it match no agent: a log may begin with a longer
line, or with lines that any agent could have written."""

_LONGEST_LINE = 1 << 28


def agent(name: str) -> Agent:
    """The agent with that name. Raises TurnlogError, listing the known names, if there is none."""
    if name in BUILT_IN:
        return _load(BUILT_IN[name].target)
    targets = _targets()
    if name not in targets:
        raise TurnlogError(f"no agent is named {name!r}; there are {', '.join(sorted(targets))}")
    return _load(targets[name])


def agents() -> Sequence[Agent]:
    """All agents, sorted by name. One that cannot be imported is left out with a warning."""
    return _loaded(_targets())


def agents_here() -> Sequence[Agent]:
    """Those of `agents` that may have something on this machine: with the others, a sync has nothing to do."""
    here = set(may_be_here())
    return _loaded({name: target for name, target in _targets().items() if name in here or name not in BUILT_IN})


def agent_names() -> Sequence[str]:
    """The names of all agents, sorted."""
    return sorted(_targets())


def _loaded(targets: Mapping[str, str]) -> list[Agent]:
    found: list[Agent] = []
    for name, target in sorted(targets.items()):
        try:
            found.append(_load(target))
        except Exception as error:  # A package of somebody else must not break everything.
            warnings.warn(f"agent {name!r} cannot be loaded: {error!r}", RuntimeWarning, stacklevel=2)
    return found


def agents_with_hooks() -> dict[str, Agent]:
    """The agents that support hooks, by the name of their program (`claude`)."""
    return {_program(agent): agent for agent in agents() if agent.hooks is not None}


def agents_with_mcp() -> dict[str, Agent]:
    """The agents to whose settings a server of the Model Context Protocol can be added, by their program's name."""
    return {_program(agent): agent for agent in agents() if agent.mcp is not None}


def _program(agent: Agent) -> str:
    return agent.command.program if agent.command is not None else agent.name


def started_agent(command: Sequence[str]) -> tuple[Agent, CommandFacts] | None:
    """The agent that a command line starts, with the facts in that line; None if it starts none."""
    found = {each.name: each for each in agents()}
    forms = {name: each.command for name, each in found.items() if each.command is not None}
    started = find_command(forms, command)
    return None if started is None else (found[started[0]], started[1])


def homes_of(agent: Agent) -> Sequence[Path]:
    """The agent's homes on this machine. Empty if its module fails, which is reported as in `find_sources`."""
    try:
        return list(agent.roots())
    except Exception as error:  # A package of somebody else must not break everything.
        note_unreadable(agent.name, f"{agent.display_name} cannot be looked for: {error!r}")
        return []


def find_sources(agents: Iterable[Agent], roots: Sequence[Path] | None = None) -> Iterator[tuple[Agent, Source]]:
    """Yield all sources of these agents below the roots, or below their own homes.

    Programs that began as copies of another keep its folders and file names (Qwen Code those of Gemini CLI). Below a
    root that several agents would read, a file belongs to the one that its content names.

    If the module of one agent fails, the others continue, and the homes of that agent count as unreadable
    (`files.collect_unreadable_folders`). So does a file whose name is not UTF-8.
    """
    readers = list(agents)
    found = _found_by_each(readers, roots)
    yield from found if roots is None else _one_each(found, {reader.name: reader for reader in readers})


def _one_each(found: Iterable[tuple[Agent, Source]], readers: Mapping[str, Agent]) -> Iterator[tuple[Agent, Source]]:
    claims: dict[str, list[tuple[Agent, Source]]] = {}
    for agent, source in found:
        claims.setdefault(source.path, []).append((agent, source))
    families = {name: _family_of(agent, readers.values()) for name, agent in readers.items()}
    for path, claimed in claims.items():
        # A root may have thousands of files that one reader looks for: only its family is asked whose each of them is.
        candidates = families[claimed[0][0].name] if len(claimed) == 1 else agents()
        yield claimed[0] if len(candidates) == 1 else _owned(path, claimed, readers, candidates)


def _family_of(agent: Agent, readers: Iterable[Agent]) -> list[Agent]:
    """The agent, and those that read files as it does, or as the one that it began as a copy of: from other homes."""
    origins = tuple(type(each) for each in readers if isinstance(agent, type(each)))
    return [each for each in readers if isinstance(each, origins)]


def _owned(
    path: str, claimed: Sequence[tuple[Agent, Source]], readers: Mapping[str, Agent], candidates: Sequence[Agent]
) -> tuple[Agent, Source]:
    """The file as a source of that reader which its content names, also if that one would not look for it there."""
    found = detect(Path(path), candidates)
    own = next((claim for claim in claimed if claim[0].name == found.agent), None)
    reader = readers.get(found.agent or "")
    if own is not None or reader is None or found.source is None:
        return own or claimed[0]
    return reader, msgspec.structs.replace(found.source, root=claimed[0][1].root)


def _found_by_each(agents: Iterable[Agent], roots: Sequence[Path] | None) -> Iterator[tuple[Agent, Source]]:
    for agent in agents:
        try:
            for source in agent.discover(roots):
                if is_nameable(source.path):
                    yield agent, source
        except Exception as error:  # A package of somebody else must not break everything.
            for home in homes_of(agent) if roots is None else roots:
                note_unreadable(str(home), f"{agent.display_name} cannot be looked for: {error!r}")


def detect(path: Path, candidates: Sequence[Agent] | None = None) -> Detection:
    """Recognise which agent and version wrote a file, from its content, or say why none matches (R-S21).

    Args:
        path: The file.
        candidates: The agents that may have written it; None: all.
    """
    asked = agents() if candidates is None else candidates
    from turnlog.atomic_files import open_file

    try:
        with open_file(path) as file:
            head = file.read(HEAD_SIZE)
            found = _whose(path, head, asked)
            if found.agent is None and len(head) == HEAD_SIZE:
                found = _whose(path, head + file.readline(_LONGEST_LINE) + file.read(MORE_SIZE), asked)
    except OSError as error:
        return Detection(reason=f"cannot be read: {error.strerror or error}")
    return found


def _whose(path: Path, head: bytes, asked: Sequence[Agent]) -> Detection:
    if not head:
        return Detection(reason="empty")
    reasons: dict[str, Detection] = {}
    found = most_certain(_matches(path, head, asked, reasons))
    if found is not None:
        return found
    # Of a damaged file, the damage is the reason, and not that of each agent.
    damaged = next((detection for detection in reasons.values() if detection.is_damaged), None)
    texts = tuple(f"{name}: {detection.reason}" for name, detection in reasons.items())
    return damaged or Detection(reason="; ".join(texts), reasons=texts)


def _matches(path: Path, head: bytes, asked: Sequence[Agent], reasons: dict[str, Detection]) -> Iterator[Detection]:
    """Those who wrote it; `reasons` gets the others by name."""
    for candidate in asked:
        detection = candidate.detect(path, head)
        if detection.agent is not None:
            yield detection
        else:
            reasons[candidate.display_name] = detection


def most_certain(found: Iterable[Detection]) -> Detection | None:
    """The first detection that is certain, otherwise the first; None if there is none.

    The order of the agents never matters for recorded files: of each, one agent is certain, or only one matches.
    """
    first: Detection | None = None
    for detection in found:
        if detection.is_certain:
            return detection
        first = first or detection
    return first


@cache
def turn_markers(name: str) -> Mapping[str, TurnMarker]:
    """Kind of event -> turn marker, for the agent with that name; only those of hooks if it is not installed."""
    try:
        return {**HOOK_MARKERS, **agent(name).turn_markers}
    except TurnlogError:
        return HOOK_MARKERS


def log_marks_turns(name: str) -> bool:
    """Whether the logs of that agent contain events that mark the end of a turn."""
    return any(marker == "end" and kind not in HOOK_MARKERS for kind, marker in turn_markers(name).items())


def fold_bytes(agent: Agent, source: Source, data: bytes) -> Changes:
    """The changes of a whole file, read in one feed."""
    return agent.fold(source).feed(data, 0)


def _targets() -> dict[str, str]:
    """Agent -> `module:class`, built-in agents and those of installed packages."""
    built_in = {name: each.target for name, each in BUILT_IN.items()}
    if not any(_names_group(Path(folder)) for folder in sys.path):
        return built_in
    # Imported here because it takes longer than all of this package.
    from importlib.metadata import entry_points

    return {**{entry.name: entry.value for entry in entry_points(group=GROUP)}, **built_in}


def _names_group(place: Path) -> bool:
    """Whether a place on `sys.path` may contain a package that registers an agent.

    Few installations have one, and importing `importlib.metadata` would slow down every light command.
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
        # A path object for each of hundreds of packages would cost more than reading their files.
        with open(f"{package}{os.sep}entry_points.txt", "rb") as file:  # noqa: PTH123
            return file.read()
    except OSError:
        return b""


importing = threading.RLock()
"""Held by threads that import large packages while others may do so.

Python lets two threads into one package at a time, and gives one of them modules that are not complete if they wait for
each other.
"""


def load_target(target: str) -> Any:
    """Import `module:name` and return it. Raises ImportError or AttributeError if it does not exist."""
    module, _, name = target.partition(":")
    with importing:
        return getattr(import_module(module), name)


@cache
def _load(target: str) -> Agent:
    return load_target(target)()
