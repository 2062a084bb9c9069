"""Which files a tool call touches, as its input says, and how a path that an agent wrote is to be understood.

A command that is run may touch anything; only calls whose kind is about files are looked at.
"""

from __future__ import annotations

import posixpath
import re
from typing import Any, cast

import msgspec

from turnlog.model import ToolCallPart

FILE_KINDS = frozenset({"read", "edit", "delete", "move"})

CHANGING_KINDS = ("edit", "delete", "move")
"""Kinds of calls after which a file is another."""

_PATCHED = re.compile(r"^\*\*\* (?:(?:Add|Update|Delete) File|Move to): (.+?)\s*$", re.MULTILINE)
"""The lines of a patch of the form that OpenAI's models write which name a file."""

_ABSOLUTE = re.compile(r"~|[A-Za-z]:[\\/]|\\\\")
"""How a path of another system, or of a home, begins that does not depend on a folder."""

_DETOUR = re.compile(r"/\.|//|/$")
"""What a path may hold that leads nowhere else."""


class _Named(msgspec.Struct):
    """The fields of a tool's input that may name files; everything else is skipped."""

    file_path: Any = None
    path: Any = None
    notebook_path: Any = None
    filePath: Any = None
    filename: Any = None
    destination: Any = None
    paths: Any = None
    changes: Any = None
    patch: Any = None
    patchText: Any = None
    input: Any = None


_decoder = msgspec.json.Decoder(_Named)


def touched_paths(part: ToolCallPart) -> tuple[str, ...]:
    """The files that a call names, as it writes them, none twice; none for a call that is about no file."""
    if part.kind not in FILE_KINDS:
        return ()
    if part.input is msgspec.UNSET:
        found = _PATCHED.findall(part.input_text or "")
    else:
        try:
            found = _named(_decoder.decode(part.input))
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return ()
    return tuple(dict.fromkeys(path for path in found if isinstance(path, str) and path))


def _named(fields: _Named) -> list[Any]:
    first = (fields.file_path, fields.path, fields.notebook_path, fields.filePath, fields.filename)
    found: list[Any] = [next((path for path in first if isinstance(path, str) and path), None), fields.destination]
    found += _several(fields.paths) + _several(fields.changes)
    for patch in (fields.patch, fields.patchText, fields.input):
        found += _PATCHED.findall(patch) if isinstance(patch, str) else ()
    return found


def _several(value: Any) -> list[Any]:
    """Paths in a list, in objects of a list, or as the keys of an object."""
    match value:
        case dict():
            return list(cast("dict[Any, Any]", value))
        case list():
            items = cast("list[Any]", value)
            return [cast("dict[str, Any]", item).get("path") if isinstance(item, dict) else item for item in items]
        case _:
            return []


def resolve_path(path: str, folder: str | None) -> str:
    """A path as it is from anywhere: one that depends on a folder, from the folder of its session."""
    if path.startswith("/"):
        return posixpath.normpath(path) if _DETOUR.search(path) else path
    if _ABSOLUTE.match(path):
        return path
    return posixpath.normpath(posixpath.join(folder, path)) if folder else posixpath.normpath(path)


def spellings(path: str) -> list[str]:
    """How sessions may write this absolute path: as it is, or from any of the folders above it."""
    pieces = [piece for piece in path.split("/") if piece]
    endings = ["/".join(pieces[start:]) for start in range(len(pieces))]
    return [path, *endings, *(f"./{ending}" for ending in endings)]
