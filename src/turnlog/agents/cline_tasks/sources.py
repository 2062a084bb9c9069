"""Where the tasks of an extension are, and whether a file is one of theirs.

A task is a folder with its messages as the model got them, and as the user saw them. Both together are a source of
rows, named `<file of messages>#<task>`; what is known about the task is another one.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from turnlog.agents.base import Detection, Fold, Source, SourceKind
from turnlog.agents.cline_tasks import EXTENSIONS, TASKS
from turnlog.agents.cline_tasks.task_files import MESSAGES, OTHERS, SHOWN, folder_version
from turnlog.agents.databases import FACTS
from turnlog.agents.files import folders, holds_log

_LIST = re.compile(rb'\A\s*(?:\{\s*"version"\s*:\s*2\s*,\s*"messages"\s*:\s*)?\[\s*\{\s*"(?:role|content|ts|id)"\s*:')
_MARKS: Final = (b"<task>", b"<environment_details>", b"<user_message>")
"""What these extensions put around a prompt, or behind it."""


def session_id(agent: str, external: str) -> str:
    """The id of a session in the model. A `/` of the external id, which would separate parts of a path, becomes `_`."""
    return f"{agent}:{external.replace('/', '_')}"


def find_sources(agent: str, root: Path) -> Iterator[Source]:
    """Every task below the folder of an extension, but none below that of another one."""
    if _owner_of(root) not in (agent, None):
        return
    for task in folders(os.fspath(root / TASKS)):
        yield from _sources_in(agent, Path(task.path), root)


def _owner_of(folder: Path) -> str | None:
    """The agent in whose folder a folder is, or that a folder is named after."""
    owners = EXTENSIONS | {name: name for name in EXTENSIONS.values()}
    return next((owners[each.name] for each in (folder, *folder.parents) if each.name in owners), None)


def _sources_in(agent: str, task: Path, root: Path) -> Iterator[Source]:
    if not holds_log(task, MESSAGES) or "#" in task.name:
        return
    for is_about in (False, True):
        yield Source(
            agent=agent,
            path=f"{task / MESSAGES}#{task.name}{FACTS if is_about else ''}",
            root=os.fspath(root),
            kind=SourceKind.SIDECAR if is_about else SourceKind.SESSION,
            session_id=session_id(agent, task.name),
            appendable=not is_about,
            version=folder_version(task, is_about=is_about),
        )


def sources_at(agent: str, path: Path, root: Path) -> Iterator[Source]:
    """See `RowAgent.sources_at`."""
    if path.name in (MESSAGES, SHOWN, *OTHERS) and path.parent.parent.name == TASKS:
        yield from _sources_in(agent, path.parent, root)


def make_fold(source: Source, state: bytes | None) -> Fold:
    """The fold of a source."""
    if source.kind is SourceKind.SIDECAR:
        from turnlog.agents.cline_tasks.facts import TaskFactsFold

        return TaskFactsFold(source)
    from turnlog.agents.cline_tasks.fold import TaskFold

    return TaskFold(source, state)


def detect_file(agent: str, path: Path, head: bytes) -> Detection:
    """Judge a file by its beginning `head`, and by the extension whose folder it is in."""
    absolute = path.absolute()
    owner = _owner_of(absolute.parent)
    if not _LIST.match(head) or not any(mark in head for mark in _MARKS):
        return Detection(reason="no list of messages that begins with a task")
    # Nothing in the messages names the extension: elsewhere they count as Cline's.
    if agent != (owner or next(iter(EXTENSIONS.values()))):
        return Detection(reason="it is in the folder of another extension")
    if absolute.name != MESSAGES:
        return Detection(reason=f"a task is read by its file {MESSAGES}")
    root = absolute.parents[2] if absolute.parents[1].name == TASKS and len(absolute.parents) > 2 else absolute.parent
    found = next(_sources_in(agent, absolute.parent, root), None)
    return Detection(agent=agent, version="1", source=found, sources=() if found is None else (found,))
