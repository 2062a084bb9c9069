"""Hooks in settings as TOML: a list of tables, each with its `event` and its `command`.

Ours are added at the end, which needs no knowledge of how the rest is written. A change is made only if the settings
then say the same as before but for our hooks: otherwise they are refused.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from turnlog.agent_settings.changes import lines_of
from turnlog.agent_settings.jsonc import Addition, Edit
from turnlog.errors import FormatError

_REFUSED = "hooks cannot be changed here without changing something else: do it by hand"


def with_hooks(text: str, field: str, events: Mapping[str, Mapping[str, Any]], command: str) -> Addition:
    """The edit that adds a hook for each event to settings without any of ours.

    Args:
        text: The settings. Raises FormatError if they are no TOML, or the list is written as a value.
        field: The name of the list.
        events: Event -> further fields of its hook.
        command: What each of them starts.
    """
    hooks = [{"event": event, "command": command, **more} for event, more in events.items()]
    newline = "\r\n" if "\r\n" in text else "\n"
    gap = "" if not text.strip() else newline if text.endswith("\n") else newline * 2
    tables = (
        newline.join([f"[[{field}]]", *(f"{name} = {json.dumps(value)}" for name, value in hook.items()), ""])
        for hook in hooks
    )
    added = gap + newline.join(tables)
    before = _parsed(text)
    expected = {**before, field: [*_hooks_in(before, field), *hooks]}
    if _parsed(text + added, _REFUSED) != expected:
        raise FormatError(_REFUSED)
    return Addition([Edit(len(text), "", added)], [])


def without_hooks(
    text: str, made: Sequence[Sequence[str]] | None = None, *, field: str, is_ours: Callable[[str], bool]
) -> str:
    """The settings without our hooks. Raises FormatError where that would change anything else."""
    if not is_ours(text):
        return text
    tables: list[list[str]] = [[]]
    for line in lines_of(text):
        # A line of a multi-line text may look like the head of a table, too: then the check below refuses the change.
        if line.startswith("["):
            tables.append([])
        tables[-1].append(line)
    kept: list[list[str]] = []
    for table in tables:
        if not (table and _is_head(table[0], field) and is_ours("".join(table))):
            kept.append(table)
        elif kept and kept[-1] and not kept[-1][-1].strip() and "".join(kept[-1]).strip():
            # The blank line that was added before the first of them.
            kept[-1].pop()
            kept.append([])
    left = "".join(line for table in kept for line in table)
    before = _parsed(text)
    hooks = [hook for hook in _hooks_in(before, field) if not is_ours(str(hook.get("command")))]
    expected = {name: value for name, value in before.items() if name != field} | ({field: hooks} if hooks else {})
    if _parsed(left, _REFUSED) != expected:
        raise FormatError(_REFUSED)
    return left


def _is_head(line: str, field: str) -> bool:
    return line.partition("#")[0].strip() == f"[[{field}]]"


def _hooks_in(settings: Mapping[str, Any], field: str) -> list[dict[str, Any]]:
    found = settings.get(field, [])
    if not isinstance(found, list) or not all(isinstance(hook, dict) for hook in cast("list[object]", found)):
        raise FormatError(f"`{field}` must be a list of tables")
    return cast("list[dict[str, Any]]", found)


def _parsed(text: str, reason: str = "no TOML") -> dict[str, Any]:
    try:
        return tomllib.loads(text.removeprefix("\ufeff"))
    except tomllib.TOMLDecodeError as error:
        raise FormatError(f"{reason}: {error}") from error
