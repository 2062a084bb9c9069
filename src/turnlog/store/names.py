"""Names of agents, projects, models and tools as people write them, compared with those that a store has.

A name that nothing has is an error that names the near ones: an empty list would look like an answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path, PureWindowsPath
from typing import TYPE_CHECKING, Final

from turnlog.errors import NotFoundError
from turnlog.plain_text import one_line
from turnlog.store.worktrees import find_worktree

if TYPE_CHECKING:
    from turnlog.model import Session
    from turnlog.store.base import SessionFilter, Store


def find_agent(store: Store, text: str | None) -> str | None:
    """The agent of this name, or the only one whose name begins so, whether or not anything of it is stored.

    Raises NotFoundError when there is no such agent.
    """
    if text is None:
        return None
    stored = stored_agents(store)
    for names in (stored, all_agents(stored)):
        found = [name for name in names if name.startswith(text)]
        if text in names or (text and len(found) == 1):
            return text if text in names else found[0]
    raise NotFoundError(unknown_name("agent", text, all_agents(stored)))


def find_project(store: Store, text: str | None) -> str | None:
    """The path or name of a project: as it is given, of the folder that it names, or of the only one that begins so.

    For the folder of a git worktree it is the repository's project. A folder's name is that of its project also after
    the project was renamed, or merged into another. The beginning of a name may be in other case.

    Raises NotFoundError when there is no such project.
    """
    if text is None:
        return None
    projects = store.projects()
    if any(text in (project.path, project.name) for project in projects) or _is_of_subagents(store, text):
        return text
    folder = str(Path(text).absolute()) if text else ""
    worktree = find_worktree(folder)
    folders = {folder} if worktree is None else {folder, worktree.repository}
    for project in projects:
        if project.path in folders or {text, *folders} & {*project.merged} or _is_windows_folder(text, project.path):
            return project.path
    named = {project.path for project in projects if text in map(folder_name, (project.path, *project.merged))}
    if len(named) == 1:
        return named.pop()
    names = sorted({project.name for project in projects})
    lower = text.casefold()
    for found in (
        [name for name in names if name.startswith(text)],
        [name for name in names if name.casefold().startswith(lower)],
    ):
        if text and len(found) == 1:
            return found[0]
    raise NotFoundError(unknown_name("project", text, names))


def _is_of_subagents(store: Store, text: str) -> bool:
    """Whether subagents worked in the project of exactly this path or name; the list lacks one of nothing else."""
    from turnlog.store.base import SessionFilter

    return bool(store.sessions(SessionFilter(project=text, subagents=True), limit=1).items)


def folder_name(path: str) -> str:
    """The name of a folder, by which its project is known: of a Windows path, too."""
    return PureWindowsPath(path).name


def _is_windows_folder(text: str, path: str) -> bool:
    """Whether both name one folder on a drive: in any case, with any slashes."""
    named = PureWindowsPath(text)
    return named.drive != "" and named == PureWindowsPath(path)


def find_model(store: Store, text: str | None) -> str | None:
    """The model of this name. Raises NotFoundError when no call was made to it."""
    if text is None or text in (names := model_names(store)):
        return text
    raise NotFoundError(unknown_name("model", text, names))


def check_agent(store: Store, text: str) -> None:
    """Raise NotFoundError when there is no agent of exactly this name."""
    if text not in (names := all_agents(stored_agents(store))):
        raise NotFoundError(unknown_name("agent", text, names))


def check_project(store: Store, text: str) -> None:
    """Raise NotFoundError when no project has exactly this path or name."""
    projects = store.projects()
    if any(text in (project.path, project.name) for project in projects) or _is_of_subagents(store, text):
        return
    target = next((project.path for project in projects if text in project.merged), None)
    if target is not None:
        raise NotFoundError(f"the project {text!r} is merged into {target!r}")
    raise NotFoundError(unknown_name("project", text, sorted(project_names(store))))


def check_model(store: Store, text: str) -> None:
    """Raise NotFoundError when no call was made to the model of exactly this name."""
    find_model(store, text)


def check_tool(store: Store, text: str) -> None:
    """Raise NotFoundError when there is no tool of this name, in any case of its letters."""
    names = list(dict.fromkeys(tool_names(store)))
    if text.lower() not in map(str.lower, names):
        raise NotFoundError(unknown_name("tool", text, names))


def check_session_names(store: Store, wanted: SessionFilter) -> None:
    """Raise NotFoundError when no session at all has the user, machine, branch, tag or task that a filter names."""
    for what in NAMES_OF_SESSIONS:
        text: str | None = getattr(wanted, what)
        if text is not None:
            check_name_of_sessions(store, what, text)


def check_name_of_sessions(store: Store, what: str, text: str) -> None:
    """Raise NotFoundError when no session at all has this name: of one of `NAMES_OF_SESSIONS`."""
    from turnlog.store.base import SessionFilter

    if not store.sessions(SessionFilter(subagents=True)._replace(**{what: text}), limit=1).items:
        raise NotFoundError(unknown_name(what, text, NAMES_OF_SESSIONS[what](store)))


def unknown_name(what: str, text: str, names: Iterable[str]) -> str:
    """The error for a name that does not exist: with the names that are like it, else with some that exist."""
    by_lower = {name.lower(): name for name in names}
    scores = {name: _likeness(text.lower(), lower) for lower, name in by_lower.items()}
    near = sorted((name for name, score in scores.items() if score), key=lambda name: -scores[name])
    near += [name for lower, name in by_lower.items() if text and text.lower() in lower and name not in near]
    if near:
        return f"there is no {what} {text!r}: did you mean {' or '.join(map(one_line, near[:_NEAR]))}?"
    most = _ALL if len(by_lower) <= _ALL else _NEAR
    known = [one_line(name) for name in islice(by_lower.values(), most)]
    if not known:
        return f"there is no {what} {text!r}"
    rest = len(by_lower) - len(known)
    return f"there is no {what} {text!r}; there are {', '.join(known)}{f' and {rest} more' if rest else ''}"


def _likeness(text: str, name: str) -> float:
    """How like the texts are, or the text and a part of the name (`claude` of `claude-code`); 0 if neither is near."""
    from difflib import SequenceMatcher

    whole, *parts = (SequenceMatcher(None, each, text).ratio() for each in (name, *name.split("-")))
    best = max(parts)
    enough = _LIKENESS if len(text) > _SHORT else _LIKENESS_OF_SHORT
    return max(whole if whole >= enough else 0, best if best >= _LIKENESS_OF_PART else 0)


_NEAR, _ALL = 5, 8
"""How many names an error lists; of so few names, all."""

_LIKENESS, _LIKENESS_OF_SHORT, _LIKENESS_OF_PART = 0.6, 0.75, 0.8
_SHORT = 4
"""Two short names share most of their few letters by chance: `foo` is not meant as `omo`."""


def stored_agents(store: Store) -> list[str]:
    """The agents of which there is anything."""
    return [summary.agent for summary in store.agents()]


def all_agents(stored: Iterable[str]) -> list[str]:
    """These agents and all others that turnlog knows, by name."""
    from turnlog.agents import agent_names

    return sorted({*stored, *agent_names()})


def project_names(store: Store) -> list[str]:
    """The names of all projects."""
    return [project.name for project in store.projects()]


def model_names(store: Store) -> list[str]:
    """The models that were called."""
    return [model.name for model in store.models()]


def tool_names(store: Store) -> list[str]:
    """The tools that were called."""
    return [usage.tool_name for usage in store.tool_usage()]


def _pages(store: Store) -> Iterator[tuple[Session, ...]]:
    """All sessions, page by page."""
    from turnlog.store.base import SessionFilter

    page = store.sessions(SessionFilter(subagents=True), limit=200)
    yield page.items
    while page.next_cursor is not None:
        page = store.sessions(SessionFilter(subagents=True), limit=200, cursor=page.next_cursor)
        yield page.items


def _branches(store: Store) -> list[str]:
    return sorted({session.git_branch for page in _pages(store) for session in page if session.git_branch})


def _tags(store: Store) -> list[str]:
    said = (store.annotations([session.id for session in page]) for page in _pages(store))
    return sorted({tag for page in said for annotations in page.values() for tag in annotations.tags})


def _tasks(store: Store) -> list[str]:
    return [task.id for task in store.tasks()]


def _of_owners(what: str, store: Store) -> list[str]:
    """The users, or machines, of the newest thousand sessions."""
    owners = [session.ownership for page in islice(_pages(store), 5) for session in page if session.ownership]
    return sorted({name for owner in owners if (name := getattr(owner, what))})


NAMES_OF_SESSIONS: Final[dict[str, Callable[[Store], list[str]]]] = {
    "user": partial(_of_owners, "user"),
    "machine": partial(_of_owners, "machine"),
    "branch": _branches,
    "tag": _tags,
    "task": _tasks,
}
"""What sessions are selected by -> the names that there are, which only an error looks for."""
