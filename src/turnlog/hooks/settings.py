"""An agent's settings with turnlog's hooks put in or taken out: first a plan that can be shown, then the deed.

What a plan does not name stays byte for byte: order, comments, indentation, other hooks. How to undo it is written
down (`journal`), so that removing brings back the very bytes; where somebody has changed the file since, just our
hooks are cut out of it. A file that cannot be read for certain is refused, with path and line.
"""

from __future__ import annotations

import difflib
import json
import os
import shlex
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple

from turnlog import paths
from turnlog.agents.base import Agent, HookSettings
from turnlog.atomic_files import write_atomically
from turnlog.errors import ConflictError, FormatError, SourceError
from turnlog.hooks import send
from turnlog.hooks.edits import apply
from turnlog.hooks.folders import make_folders, remove_folders
from turnlog.hooks.groups import has_hooks, hook_groups, with_hooks, without_hooks
from turnlog.hooks.journal import Entry, Journal
from turnlog.hooks.versions import installed_version

State = Literal["installed", "outdated", "absent"]
"""`outdated`: hooks of ours are there, but not those that would be put in now."""


class Plan(NamedTuple):
    """What shall become of one file."""

    path: Path
    """The file itself, where the settings are a link to it."""
    before: bytes | None
    """None: it is not there."""
    after: bytes | None
    """None: it shall not be there."""
    entry: Entry | None
    """How to undo it; None when nothing of ours is left."""
    state: State
    """How it is now."""

    @property
    def is_needed(self) -> bool:
        """Whether anything changes."""
        return self.before != self.after

    def diff(self) -> str:
        """The change, as `diff -u` shows it; empty where there is none."""
        sides = [(data or b"").decode(errors="replace").splitlines(keepends=True) for data in (self.before, self.after)]
        names = ["/dev/null" if data is None else os.fspath(self.path) for data in (self.before, self.after)]
        lines = difflib.unified_diff(sides[0], sides[1], names[0], names[1])
        return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def hook_command(agent: str, folder: Path) -> str:
    """What an agent starts: it prints nothing and succeeds, even where turnlog has been removed."""
    program = [sys.executable, "-I", "-S", send.__file__, agent, os.fspath(folder)]
    return f"{shlex.join(program)} 2>/dev/null || :"


def plan_install(agent: Agent, folder: Path, project: Path | None = None) -> Plan:
    """Put the hooks in, or renew them.

    Args:
        agent: Whose settings; one that has hooks.
        folder: Where the store lies.
        project: The folder whose own settings are meant, instead of the user's.

    Raises SourceError when the settings cannot be read for certain, or turn hooks off.
    """
    settings = _settings_of(agent)
    path = _path_of(settings, project)
    before = _read(path)
    known = Journal(folder).get(path)
    is_new = before is None or (known is not None and known.is_new)
    if settings.plugin is not None:
        after = _plugin(settings.plugin, folder)
        _refuse_foreign(path, before)
        return Plan(path, before, after, Entry.of(after, [], [], is_new=is_new), _state(before, after))
    with _blaming(path):
        text = _cleaned(path, before, known)
        groups = hook_groups(_known_events(agent, settings), hook_command(agent.name, folder))
        edits, made = with_hooks(text, groups, settings.off)
    after = apply(text, edits).encode()
    return Plan(path, before, after, Entry.of(after, edits, made, is_new=is_new), _state(before, after))


def plan_remove(agent: Agent, folder: Path, project: Path | None = None) -> Plan:
    """Take the hooks out. Raises SourceError when the settings cannot be read for certain."""
    settings = _settings_of(agent)
    path = _path_of(settings, project)
    before = _read(path)
    known = Journal(folder).get(path)
    if not _is_ours(before):
        return Plan(path, before, before, None, "absent")
    with _blaming(path):
        text = "" if settings.plugin is not None else _cleaned(path, before, known)
    is_new = settings.plugin is not None or (known is not None and known.is_new)
    after = None if is_new and text.strip() in ("", "{}") else text.encode()
    return Plan(path, before, after, None, "installed")


def carry_out(plan: Plan, folder: Path) -> None:
    """Do what a plan says, the file as a whole or not at all.

    Raises ConflictError when the file has changed since it was planned, OSError when it cannot be written.
    """
    if _read(plan.path) != plan.before:
        raise ConflictError(f"{plan.path} has changed meanwhile: look at it again")
    journal = Journal(folder)
    known = journal.get(plan.path)
    made = known.folders if known is not None else []
    if plan.after is None:
        plan.path.unlink(missing_ok=True)
        remove_folders(made)
    else:
        made = made + make_folders(plan.path.parent)
        write_atomically(plan.path, plan.after)
    if plan.entry is not None:
        plan.entry.folders = made
    journal.put(plan.path, plan.entry)


def _settings_of(agent: Agent) -> HookSettings:
    if agent.hooks is None:
        raise ValueError(f"{agent.display_name} has no hooks")
    return agent.hooks


def _known_events(agent: Agent, settings: HookSettings) -> dict[str, Mapping[str, Any]]:
    """Event -> the fields of its handler, of the events that the installed version knows."""
    version: tuple[int, ...] = (0,)
    if agent.command is not None and any(handler.since for handler in settings.events.values()):
        version = installed_version(agent.command.program) or version
    return {event: handler.fields for event, handler in settings.events.items() if version >= handler.since}


def _cleaned(path: Path, before: bytes | None, known: Entry | None) -> str:
    """The settings without our hooks, as they were before these came in."""
    if before is None:
        return ""
    try:
        text = before.decode()
    except UnicodeDecodeError as error:
        raise SourceError("not UTF-8", path=path, offset=error.start) from error
    if known is not None and known.fits(before):
        return known.undone(text)
    return without_hooks(text, known.made if known is not None else None)


def _state(before: bytes | None, after: bytes) -> State:
    if before == after:
        return "installed"
    return "outdated" if _is_ours(before) else "absent"


def _is_ours(data: bytes | None) -> bool:
    return data is not None and (data.startswith(_HEAD) or has_hooks(data.decode(errors="replace")))


@contextmanager
def _blaming(path: Path) -> Generator[None]:
    """Say in which file something is wrong."""
    try:
        yield
    except FormatError as error:
        error.path = path
        raise


def _path_of(settings: HookSettings, project: Path | None) -> Path:
    home = paths.folders(settings.home)[0]
    place = home / settings.file if project is None else project.absolute() / settings.project_file
    try:
        return place.resolve()
    except (OSError, RuntimeError) as error:
        raise SourceError(f"the link leads nowhere: {error}", path=place) from error


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise SourceError(error.strerror or str(error), path=path) from error


# -- plugins, which are programs of their own

_HEAD = b"// turnlog's plugin"


def _plugin(plugin: Path, folder: Path) -> bytes:
    return plugin.read_text().replace('"{{FOLDER}}"', json.dumps(os.fspath(folder), ensure_ascii=False)).encode()


def _refuse_foreign(path: Path, before: bytes | None) -> None:
    if before is not None and not _is_ours(before):
        raise SourceError("another file is there already", path=path)
