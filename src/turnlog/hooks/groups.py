"""Hooks in an agent's settings, in the form that several agents share: `{"hooks": {EVENT: [{"hooks": [HANDLER]}]}}`.

Ours are known by the command they start. Other hooks are never touched, nor is a group that holds one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from turnlog.errors import FormatError
from turnlog.hooks.edits import Edit, add_items, add_members, apply, cut
from turnlog.hooks.jsonc import Array, Node, Object, Scalar, line_of, parse, plain

_OURS = re.compile(r"turnlog[/\\]+hooks[/\\]+send\.py\b")

_FIELD = "hooks"


class Added(NamedTuple):
    """How hooks come into a text."""

    edits: list[Edit]
    made: list[list[str]]
    """Places in the settings that were not there before."""


def hook_groups(events: Mapping[str, Mapping[str, Any]], command: str) -> dict[str, Any]:
    """Event -> what stands under it: one group with one handler, which starts the command and has these fields too."""
    return {event: {_FIELD: [{"type": "command", "command": command, **more}]} for event, more in events.items()}


def with_hooks(text: str, groups: Mapping[str, Any], off: Iterable[tuple[tuple[str, ...], Any]]) -> Added:
    """Put in the hooks, into settings that have none of ours.

    Args:
        text: The settings. Raises FormatError when they do not allow hooks.
        groups: What shall stand under each event (`hook_groups`).
        off: Settings that turn all hooks off: where, and the value that does it.
    """
    lists = {event: [group] for event, group in groups.items()}
    if not text.strip("\ufeff \t\r\n"):
        whole = json.dumps({_FIELD: lists}, ensure_ascii=False, indent=2) + "\n"
        return Added([Edit(len(text), "", whole)], [[_FIELD]])
    root = _object(text, parse(text), "the settings")
    _refuse_off(text, root, off)
    node = root.get(_FIELD)
    if node is None:
        return Added(add_members(text, root, {_FIELD: lists}), [[_FIELD]])
    hooks = _object(text, node, "`hooks`")
    edits: list[Edit] = []
    missing: dict[str, Any] = {}
    for event, group in groups.items():
        known = hooks.get(event)
        if known is None:
            missing[event] = [group]
        elif isinstance(known, Array):
            edits += add_items(text, known, [group])
        else:
            raise FormatError(f"`hooks.{event}` is no list", line=line_of(text, known.start))
    return Added([*edits, *add_members(text, hooks, missing)], [[_FIELD, event] for event in missing])


def without_hooks(text: str, made: Sequence[Sequence[str]] | None = None) -> str:
    """The settings without our hooks, and without what holds nothing else.

    Args:
        text: The settings. Raises FormatError when they hold hooks of ours and cannot be read.
        made: What was not there before our hooks, so that it goes when it is empty; None: that is not known.
    """
    while _OURS.search(text):
        edits = _first_cut(text, parse(text), made)
        if edits is None:
            break
        text = apply(text, edits)
    return text


def has_hooks(text: str) -> bool:
    """Whether the text speaks of our hooks."""
    return _OURS.search(text) is not None


def _first_cut(text: str, root: Node, made: Sequence[Sequence[str]] | None) -> list[Edit] | None:
    """How to take out the first hook of ours, with all that would be empty then."""
    hooks = root.get(_FIELD) if isinstance(root, Object) else None
    if not isinstance(root, Object) or not isinstance(hooks, Object):
        return None
    for number, member in enumerate(hooks.members):
        if not isinstance(member.value, Array):
            continue
        for place, group, index in _ours(member.value):
            if len(group.items) > 1:
                return cut(text, group, index)
            if len(member.value.items) > 1 or not _goes([_FIELD, member.key], made):
                return cut(text, member.value, place)
            if len(hooks.members) > 1 or not _goes([_FIELD], made):
                return cut(text, hooks, number)
            return cut(text, root, next(at for at, each in enumerate(root.members) if each.value is hooks))
    return None


def _ours(event: Array) -> Iterator[tuple[int, Array, int]]:
    """(place of the group, its handlers, place of the handler) of each of ours."""
    for place, group in enumerate(event.items):
        handlers = group.get(_FIELD) if isinstance(group, Object) else None
        if isinstance(handlers, Array):
            for index, handler in enumerate(handlers.items):
                if _is_ours(handler):
                    yield place, handlers, index


def _is_ours(handler: Node) -> bool:
    command = handler.get("command") if isinstance(handler, Object) else None
    return isinstance(command, Scalar) and isinstance(command.value, str) and has_hooks(command.value)


def _goes(place: Sequence[str], made: Sequence[Sequence[str]] | None) -> bool:
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
