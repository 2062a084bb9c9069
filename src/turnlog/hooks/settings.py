"""turnlog's hooks in an agent's settings: a plan of the change that can be shown, and carrying it out.

Several agents share one form of settings, `{"hooks": {EVENT: [{"hooks": [HANDLER]}]}}`, where the outer `hooks` may be
missing, or the groups; some have a list in TOML (`toml_list`). Others get a file of their own: a plugin, or a script
for each event. Our handlers are known by the command they start. What a plan does not name stays byte for byte: order,
comments, indentation, other hooks, and groups that hold one. How to undo it is written down (`journal`), so that
removing restores the very bytes; where somebody has changed the file since, only our hooks are cut out of it. A file
that cannot be read for certain is refused, with path and line.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, cast

from turnlog.agent_settings import changes
from turnlog.agent_settings.changes import (
    FolderPlan,
    Journal,
    JournalEntry,
    Plan,
    SettingsPlan,
    State,
    naming_file,
    read_settings,
    settings_path,
    text_before,
)
from turnlog.agent_settings.jsonc import (
    Addition,
    Array,
    Edit,
    Node,
    Object,
    add_items,
    add_members,
    apply,
    cut,
    line_of,
    parse,
    plain,
)
from turnlog.agents.base import Agent, HookSettings
from turnlog.errors import FormatError, SourceError
from turnlog.hooks import send, toml_list
from turnlog.paths import find_program

_SECONDS = 10
"""Seconds after which a program that prints its version is stopped."""

_VERSION = re.compile(r"\b(\d+)\.(\d+)\.(\d+)\b")

_OURS = re.compile(r"turnlog[/\\]+hooks[/\\]+send\.py\b")

_FIELD = "hooks"
"""The field of a group with its handlers; in most settings also that with the events."""


def plan_install(agent: Agent, folder: Path, project: Path | None = None) -> Plan:
    """The plan that installs the hooks of an agent, or renews them.

    Args:
        agent: Whose settings; one that has hooks.
        folder: The folder of the store.
        project: The folder of a project whose settings are meant, instead of the user's.

    Raises SourceError when the settings cannot be read for certain, or turn hooks off.
    """
    settings = _settings_of(agent)
    if settings.form == "scripts":
        return _plan_of_scripts(agent, settings, folder, project)
    path = settings_path(settings.home, settings.file, project, settings.project_file)
    before = read_settings(path)
    known = journal_in(folder).get(path)
    is_new = before is None or (known is not None and known.is_new)
    if settings.plugin is not None:
        after = _plugin(settings.plugin, folder)
        _refuse_foreign(path, before, _is_ours)
        return SettingsPlan(
            path, before, after, JournalEntry.of(after, [], [], is_new=is_new), _state(before, after, settings)
        )
    with naming_file(path):
        text = text_before(path, before, known, _without(settings))
        events = _known_events(agent, settings)
        command = hook_command(agent.name, folder, settings.session_field)
        if settings.form == "toml-list":
            edits, made = toml_list.with_hooks(text, settings.field or _FIELD, events, command)
        else:
            edits, made = with_hooks(text, hook_groups(events, command, settings.form), settings)
        after = apply(text, edits).encode()
        entry = JournalEntry.of(after, edits, made, is_new=is_new)
        return SettingsPlan(path, before, after, entry, _state(before, after, settings))


def plan_remove(agent: Agent, folder: Path, project: Path | None = None) -> Plan:
    """The plan that removes the hooks of an agent. Raises SourceError when the settings cannot be read for certain."""
    settings = _settings_of(agent)
    if settings.form == "scripts":
        return _plan_without_scripts(settings, project)
    path = settings_path(settings.home, settings.file, project, settings.project_file)
    before = read_settings(path)
    known = journal_in(folder).get(path)
    with naming_file(path):
        if not _has_live_hooks(before, settings) and not (before and known is not None and known.fits(before)):
            return SettingsPlan(path, before, before, None, "absent")
        text = "" if settings.plugin is not None else text_before(path, before, known, _without(settings))
    is_new = settings.plugin is not None or (known is not None and known.is_new)
    after = None if is_new and text.strip() in ("", "{}") else text.encode()
    return SettingsPlan(path, before, after, None, "installed")


def carry_out(plan: Plan, folder: Path) -> None:
    """Carry out a plan of the store in `folder`. See `turnlog.agent_settings.changes.carry_out`."""
    changes.carry_out(plan, journal_in(folder))


def journal_in(folder: Path) -> Journal:
    """The journal of hooks next to the store in `folder`."""
    return Journal(folder / "hooks-installed.json")


def hook_command(agent: str, folder: Path, field: str = send.SESSION_FIELD) -> str:
    """The shell command that an agent starts: silent and successful, even after turnlog has been uninstalled.

    `field` is that of its events which names the session.
    """
    program = [sys.executable, "-I", "-S", send.__file__, agent, os.fspath(folder)]
    program += [field] if field != send.SESSION_FIELD else []
    return f"{shlex.join(program)} 2>/dev/null || :"


def _settings_of(agent: Agent) -> HookSettings:
    if agent.hooks is None:
        raise ValueError(f"{agent.display_name} has no hooks")
    return agent.hooks


def _without(settings: HookSettings) -> Callable[[str, Sequence[Sequence[str]] | None], str]:
    """What removes our hooks from settings of that form."""
    if settings.form == "toml-list":
        return partial(toml_list.without_hooks, field=settings.field or _FIELD, is_ours=has_hooks)
    return partial(without_hooks, field=settings.field)


def _known_events(agent: Agent, settings: HookSettings) -> dict[str, Mapping[str, Any]]:
    """Event -> the fields of its handler, for the events that the installed version knows."""
    version: tuple[int, ...] = (0,)
    if agent.command is not None and any(handler.since for handler in settings.events.values()):
        version = installed_version(agent.command.program) or version
    return {event: handler.fields for event, handler in settings.events.items() if version >= handler.since}


def installed_version(program: str) -> tuple[int, ...] | None:
    """The version that `program --version` prints; None if the program is missing or prints none."""
    path = find_program(program)
    if path is None:
        return None
    try:
        printed = subprocess.run(
            [path, "--version"], stdin=subprocess.DEVNULL, capture_output=True, timeout=_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = _VERSION.search(printed.stdout.decode(errors="replace"))
    return tuple(int(number) for number in found.groups()) if found else None


def _state(before: bytes | None, after: bytes, settings: HookSettings) -> State:
    if before == after:
        return "installed"
    return "outdated" if _has_live_hooks(before, settings) else "absent"


def _has_live_hooks(data: bytes | None, settings: HookSettings) -> bool:
    """Whether the agent sees a hook of ours; it sees none in a comment. Raises FormatError as `parse` does."""
    if data is None or not _is_ours(data):
        return False
    if settings.plugin is not None or settings.form == "toml-list":
        return True
    text = data.decode(errors="replace")
    return _first_cut(text, parse(text), None, settings.field) is not None


def _is_ours(data: bytes | None) -> bool:
    return data is not None and (data.startswith(_HEAD) or has_hooks(data.decode(errors="replace")))


# -- hooks in a file of JSON


def hook_groups(events: Mapping[str, Mapping[str, Any]], command: str, form: str = "groups") -> dict[str, Any]:
    """Event -> its group: one handler, which starts the command and has these fields too; or the handler alone."""
    if form == "handlers":
        return {event: {"command": command, **more} for event, more in events.items()}
    return {event: {_FIELD: [{"type": "command", "command": command, **more}]} for event, more in events.items()}


def with_hooks(text: str, groups: Mapping[str, Any], settings: HookSettings) -> Addition:
    """The edits that add hooks to settings without any of ours.

    Args:
        text: The settings. Raises FormatError if they do not allow hooks, or if the agent would not read exactly the
            same with the hooks.
        groups: Event -> the group to add (`hook_groups`).
        settings: How the file names hooks.
    """
    added = _with_hooks(text, groups, settings)
    before: dict[str, Any] = {} if _is_empty(text) else plain(parse(text))
    expected = {**settings.more, **before} if _is_empty(text) else dict(before)
    hooks: dict[str, Any] = dict(before if settings.field is None else before.get(settings.field, {}))
    hooks |= {event: [*hooks.get(event, []), group] for event, group in groups.items()}
    expected |= hooks if settings.field is None else {settings.field: hooks}
    if plain(parse(apply(text, added.edits))) != expected:
        raise FormatError("hooks cannot be added here without changing something else: do it by hand")
    return added


def _with_hooks(text: str, groups: Mapping[str, Any], settings: HookSettings) -> Addition:
    field = settings.field
    lists = {event: [group] for event, group in groups.items()}
    if _is_empty(text):
        events = lists if field is None else {field: lists}
        whole = json.dumps({**settings.more, **events}, ensure_ascii=False, indent=2) + "\n"
        return Addition([Edit(len(text), "", whole)], [[event] for event in lists] if field is None else [[field]])
    root = _object(text, parse(text), "the settings")
    _refuse_off(text, root, settings.off)
    hooks, place = root, list[str]()
    if field is not None:
        node = root.get(field)
        if node is None:
            return Addition(add_members(text, root, {field: lists}), [[field]])
        hooks, place = _object(text, node, f"`{field}`"), [field]
    edits: list[Edit] = []
    missing: dict[str, Any] = {}
    for event, group in groups.items():
        known = hooks.get(event)
        if known is None:
            missing[event] = [group]
        elif isinstance(known, Array):
            edits += add_items(text, known, [group])
        else:
            raise FormatError(f"`{'.'.join([*place, event])}` is no list", line=line_of(text, known.start))
    return Addition([*edits, *add_members(text, hooks, missing)], [[*place, event] for event in missing])


def without_hooks(text: str, made: Sequence[Sequence[str]] | None = None, field: str | None = _FIELD) -> str:
    """The settings without our hooks, and without groups and lists that contained nothing else.

    Args:
        text: The settings. Raises FormatError if they contain our hooks and cannot be read.
        made: Places that our hooks added, removed if they are empty; None if unknown, so all that are empty.
        field: The field with the events; None if the file has nothing else.
    """
    left = text
    while _OURS.search(left):
        edits = _first_cut(left, parse(left), made, field)
        if edits is None:
            break
        left = apply(left, edits)
    if left != text and _others(left, field) != _others(text, field):
        raise FormatError("hooks cannot be removed here without changing something else: do it by hand")
    return left


def _others(text: str, field: str | None) -> Any:
    """The settings as the agent reads them, without our hooks and without what would be empty then."""
    if _is_empty(text):
        return {}
    settings = plain(parse(text))
    hooks = settings if field is None else settings.get(field)
    if not isinstance(hooks, dict):
        return settings
    events = {event: _other_groups(groups) for event, groups in cast("dict[str, Any]", hooks).items()}
    events = {event: groups for event, groups in events.items() if groups != []}
    if field is None:
        return events
    others = {name: value for name, value in settings.items() if name != field}
    return {**others, field: events} if events else others


def _other_groups(groups: Any) -> Any:
    """The groups of an event without our handlers, and without those that have no other."""
    if not isinstance(groups, list):
        return groups
    kept: list[Any] = []
    for group in cast("list[Any]", groups):
        handlers = cast("dict[str, Any]", group).get(_FIELD) if isinstance(group, dict) else None
        if isinstance(handlers, list):
            others = [each for each in cast("list[Any]", handlers) if not _is_our_command(each)]
            if others:
                kept.append({**group, _FIELD: others})
        elif not _is_our_command(group):
            kept.append(group)
    return kept


def _is_our_command(handler: Any) -> bool:
    command = cast("dict[str, Any]", handler).get("command") if isinstance(handler, dict) else None
    return isinstance(command, str) and has_hooks(command)


def _is_empty(text: str) -> bool:
    return not text.strip("\ufeff \t\r\n")


def has_hooks(text: str) -> bool:
    """Whether the command of one of our hooks is in the text."""
    return _OURS.search(text) is not None


def _first_cut(text: str, root: Node, made: Sequence[Sequence[str]] | None, field: str | None) -> list[Edit] | None:
    """The edits that remove our first hook, with what would be empty then."""
    hooks = root.get(field) if isinstance(root, Object) and field is not None else root
    if not isinstance(root, Object) or not isinstance(hooks, Object):
        return None
    above = [] if field is None else [field]
    for number, member in enumerate(hooks.members):
        if not isinstance(member.value, Array):
            continue
        for place, group, index in _ours(member.value):
            if group is not None and len(group.items) > 1:
                return cut(text, group, index)
            if len(member.value.items) > 1 or not _is_removable([*above, member.key], made):
                return cut(text, member.value, place)
            if hooks is root or len(hooks.members) > 1 or not _is_removable(above, made):
                return cut(text, hooks, number)
            return cut(text, root, next(at for at, each in enumerate(root.members) if each.value is hooks))
    return None


def _ours(event: Array) -> Iterator[tuple[int, Array | None, int]]:
    """(index of the group, its handlers, index of the handler) of each of our handlers; None: it is in no group."""
    for place, group in enumerate(event.items):
        if _is_our_handler(group):
            yield place, None, 0
        handlers = group.get(_FIELD) if isinstance(group, Object) else None
        if isinstance(handlers, Array):
            for index, handler in enumerate(handlers.items):
                if _is_our_handler(handler):
                    yield place, handlers, index


def _is_our_handler(handler: Node) -> bool:
    return isinstance(handler, Object) and _is_our_command(plain(handler))


def _is_removable(place: Sequence[str], made: Sequence[Sequence[str]] | None) -> bool:
    return made is None or any(list(place[: len(each)]) == list(each) for each in made)


def _object(text: str, node: Node, what: str) -> Object:
    if not isinstance(node, Object):
        raise FormatError(f"{what} must be an object", line=line_of(text, node.start))
    return node


def _refuse_off(text: str, root: Object, off: Iterable[tuple[tuple[str, ...], Any]]) -> None:
    for path, value in off:
        node: Node | None = root
        for name in path:
            node = node.get(name) if isinstance(node, Object) else None
        if node is not None and plain(node) is value:
            reason = f"hooks are turned off here: `{'.'.join(path)}` is {json.dumps(value)}"
            raise FormatError(reason, line=line_of(text, node.start))


# -- plugins, which are separate programs

_HEAD = b"// turnlog's plugin"


def _plugin(plugin: Path, folder: Path) -> bytes:
    return (
        plugin.read_text(encoding="utf-8")
        .replace('"{{FOLDER}}"', json.dumps(os.fspath(folder), ensure_ascii=False))
        .encode()
    )


def _refuse_foreign(path: Path, before: bytes | None, is_ours: Callable[[bytes], bool]) -> None:
    if before is not None and not is_ours(before):
        raise SourceError("another file is there already", path=path)


# -- scripts, of which each event has one

_EVENT = "{EVENT}"

_SHEBANG = "#!/bin/sh\n# turnlog's hook. `turnlog hooks remove` deletes this file.\n"


def _plan_of_scripts(agent: Agent, settings: HookSettings, folder: Path, project: Path | None) -> FolderPlan:
    command = hook_command(agent.name, folder, settings.session_field)
    after = f"{_SHEBANG}{command}\n".encode()
    plans: list[SettingsPlan] = []
    for path in _scripts(settings, project):
        before = read_settings(path)
        _refuse_foreign(path, before, _is_our_script)
        state: State = "absent" if before is None else "installed" if before == after else "outdated"
        plans.append(SettingsPlan(path, before, after, JournalEntry.of(after, [], [], is_new=True), state))
    return FolderPlan(plans[0].path.parent, tuple(plans))


def _plan_without_scripts(settings: HookSettings, project: Path | None) -> FolderPlan:
    plans: list[SettingsPlan] = []
    # The first one was made with its folder, which can go when all others have gone.
    for path in reversed(_scripts(settings, project)):
        before = read_settings(path)
        is_ours = before is not None and _is_our_script(before)
        state: State = "installed" if is_ours else "absent"
        plans.append(SettingsPlan(path, before, None if is_ours else before, None, state))
    return FolderPlan(plans[0].path.parent, tuple(plans))


def _scripts(settings: HookSettings, project: Path | None) -> list[Path]:
    """The file of each event."""
    in_project = settings.project_file or ""
    return [
        settings_path(settings.home, settings.file.replace(_EVENT, event), project, in_project.replace(_EVENT, event))
        for event in settings.events
    ]


def _is_our_script(data: bytes) -> bool:
    return data.startswith(_SHEBANG.encode())
