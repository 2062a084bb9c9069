"""Which store, and which session: an id may be shortened as long as it stays the only one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

from turnlog import paths
from turnlog.errors import NotFoundError, TurnlogError

if TYPE_CHECKING:
    from turnlog.model import Session
    from turnlog.store.base import Store

CANDIDATES = 5
"""How many sessions an ambiguous abbreviation is answered with."""

COMPLETIONS = 50

SHORTEST = 8
"""Characters of an id in a list for people; more where another id of the list has these too."""


def open_existing(store_path: Path) -> Store:
    """The store; NotFoundError when there is none yet, since reading should not make one."""
    from turnlog.store import open_store

    if not store_path.exists():
        raise NotFoundError(f"there is no store at {store_path} yet: `turnlog sync` makes it")
    return open_store(store_path)


def find_session(store: Store, text: str) -> Session:
    """The session of this id, or the only one that the text abbreviates, with or without its agent's name.

    An id is abbreviated to its beginning, or, where it has dots, to the beginnings of what is between them. A session
    goes before its subagents, whose ids begin with its own. Raises NotFoundError for none and for several.
    """
    try:
        return store.session(text)
    except NotFoundError:
        for subagents in (False, True):
            found = list(islice(_abbreviated(store, text, subagents=subagents), CANDIDATES + 1))
            if len(found) == 1:
                return found[0]
            if found:
                raise NotFoundError(_ambiguous(text, found)) from None
        raise


def find_agent(store: Store, text: str | None) -> str | None:
    """The agent in the store of this name, or the only one whose name begins so; else the text, which nothing is of."""
    if text is None:
        return None
    names = [summary.agent for summary in store.agents()]
    found = [name for name in names if name.startswith(text)]
    return found[0] if text and text not in names and len(found) == 1 else text


def _ambiguous(text: str, found: list[Session]) -> str:
    more = ["…"] if len(found) > CANDIDATES else []
    lines = [f"  {session.id}  {session.title or ''}".rstrip() for session in found[:CANDIDATES]]
    return "\n".join([f"{text} could be any of these sessions:", *lines, *more])


def _abbreviated(store: Store, text: str, *, subagents: bool) -> Iterator[Session]:
    agent, colon, rest = text.rpartition(":")
    for session in iter_sessions(store, subagents=subagents) if text else ():
        if (not colon or session.agent == agent) and _abbreviates(rest, session.external_id):
            yield session


def _abbreviates(text: str, external_id: str) -> bool:
    beginnings, pieces = text.split("."), external_id.split(".")
    return len(beginnings) <= len(pieces) and all(
        piece.startswith(beginning) for piece, beginning in zip(pieces, beginnings, strict=False)
    )


def external_id(session_id: str) -> str:
    """The id without its agent's name."""
    return session_id.partition(":")[2] or session_id


def abbreviations(external_ids: Iterable[str]) -> dict[str, str]:
    """The shortest abbreviation of each id that no other of these has."""
    left = set(external_ids)
    found: dict[str, str] = {}
    length = SHORTEST
    while left:
        short = {id: ".".join(piece[:length] for piece in id.split(".")) for id in left}
        times = Counter(short.values())
        found |= {id: text for id, text in short.items() if times[text] == 1}
        left -= found.keys()
        length += 1
    return found


def iter_sessions(store: Store, *, subagents: bool) -> Iterator[Session]:
    """All sessions, or all subagent sessions, page by page, newest first."""
    from turnlog.store.base import SessionFilter

    wanted = SessionFilter(relationship="subagent") if subagents else SessionFilter()
    cursor: str | None = None
    while True:
        page = store.sessions(wanted, limit=200, cursor=cursor)
        yield from page.items
        cursor = page.next_cursor
        if cursor is None:
            return


def complete_session(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Ids of sessions for the shell, newest first, with the agent's name where it was typed.

    Bash breaks words at its colon, and so gives only what stands behind it.
    """
    try:
        with open_existing(ctx.params.get("store_path") or paths.database_path()) as store:
            found = islice(_abbreviated(store, incomplete, subagents=False), COMPLETIONS)
            whole = ":" in incomplete
            return [CompletionItem(each.id if whole else each.external_id, help=each.title) for each in found]
    except TurnlogError:
        return []
