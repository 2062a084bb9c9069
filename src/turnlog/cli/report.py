"""`turnlog doctor --report`: what a user can paste into a bug report. Kinds, versions, counts, shapes; never content.

No path, no id, no text of a log is in it: of a record that nobody knows only the names of its fields and the types of
their values, and a name that is no plain word is left out.
"""

from __future__ import annotations

import platform
import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from turnlog import __version__
from turnlog.cli.figures import plural

if TYPE_CHECKING:
    from turnlog.store.base import Store

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,39}")
_PLAIN_KIND = re.compile(r"[A-Za-z_][A-Za-z0-9_./:-]{0,63}")
_MOST_FIELDS = 40
_DEPTH = 2

_TYPES: dict[type, str] = {str: "text", bool: "true or false", int: "number", float: "number", type(None): "null"}


def report(store_path: Path) -> str:
    """The report as Markdown."""
    lines = [f"turnlog {__version__}, Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}"]
    lines.append(f"{platform.system()} {platform.machine()}")
    if not store_path.exists():
        return "\n".join([*lines, "no store"])
    from turnlog.store import open_store

    with open_store(store_path) as store:
        lines += [*_agents(store), *_unknown(store), *_diagnostics(store)]
    from turnlog.redact import Redactor

    # A name may be a key: of a mapping from keys to whatever they open.
    return Redactor().redact("\n".join(lines))


def _agents(store: Store) -> Iterator[str]:
    versions = store.agent_versions()
    for summary in store.agents():
        yield ""
        held = f"{plural(summary.sessions, 'session')}, {plural(summary.subagents, 'subagent')}"
        yield f"## {_kind(summary.agent)}: {held}"
        seen = [f"{_kind(each.version)} ({each.sessions})" for each in versions.get(summary.agent, ())]
        yield f"versions: {', '.join(seen) or 'none told'}"


def _unknown(store: Store) -> Iterator[str]:
    found = store.unknown_kinds()
    if found:
        yield ""
        yield "## Kinds of records that are not known"
    for each in found:
        yield f"- {_kind(each.agent)} `{_kind(each.kind)}`: {each.count}"
        record = store.unknown_record(each.agent, each.kind)
        if record is not None:
            yield f"  {shape_of(record)}"


def _diagnostics(store: Store) -> Iterator[str]:
    found = store.diagnostic_counts()
    if found:
        yield ""
        yield "## What could not be read"
    for each in found:
        place = re.sub(r"\[\d+\]", "[]", each.json_path or "the whole record")
        yield f"- {_kind(each.agent)}, {each.severity}: {each.count} at {place if len(place) < 80 else '…'}"


def shape_of(value: Any, depth: int = _DEPTH) -> str:
    """Names of fields and types of values: `{type: text, items: [number]}`."""
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        if depth == 0:
            return "{…}"
        names = [name for name in fields if _PLAIN_NAME.fullmatch(name)][:_MOST_FIELDS]
        rest = [] if len(names) == len(fields) else [f"… {len(fields) - len(names)} more"]
        return f"{{{', '.join([*(f'{name}: {shape_of(fields[name], depth - 1)}' for name in names), *rest])}}}"
    if isinstance(value, list):
        items = cast("list[Any]", value)
        return f"[{shape_of(items[0], depth)}]" if items else "[]"
    return next((word for kind, word in _TYPES.items() if isinstance(value, kind)), "something")


def _kind(word: str) -> str:
    """A kind, a version, an agent's name: what is no plain word is somebody's text."""
    return word if _PLAIN_KIND.fullmatch(word) or re.fullmatch(r"[0-9][0-9A-Za-z.+-]{0,39}", word) else "(odd)"
