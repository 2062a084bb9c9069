"""Short ids of sessions for lists on a terminal: each names one session of the whole store, and `show` takes it.

An id is cut to its beginning. Where many begin alike, as ids do that begin with a time, the agent's name goes before
it, or its end follows a `…`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from turnlog.cli.terminal import is_terminal
from turnlog.plain_text import columns_of

if TYPE_CHECKING:
    from turnlog.store.base import Store

SHORTEST = 8
"""Characters of a beginning in a list; more if another id of the store begins with the same ones."""

HANDY = 16
"""Columns up to which a longer beginning is taken before an end."""

_HEAD, _TAIL = 4, 3
"""The fewest characters before and after a `…`."""

CUT = "…"


def abbreviates(text: str, external_id: str) -> bool:
    """Whether the text is the beginning of an id, or of what is between its dots; `a…z` also says how that ends."""
    beginnings, segments = text.split("."), external_id.split(".")
    return len(beginnings) <= len(segments) and all(map(_fits, beginnings, segments))


def _fits(text: str, segment: str) -> bool:
    beginning, cut, end = text.partition(CUT)
    if not cut:
        return segment.startswith(beginning)
    return len(segment) > len(beginning) + len(end) and segment.startswith(beginning) and segment.endswith(end)


def shown_ids(store: Store, session_ids: Iterable[str]) -> dict[str, str]:
    """Session id -> what a list shows of it: on a terminal the short id, in a pipe the whole one."""
    wanted = list(dict.fromkeys(session_ids))
    return short_ids(store, wanted) if is_terminal() else {id: id for id in wanted}


def short_ids(store: Store, session_ids: Iterable[str]) -> dict[str, str]:
    """Session id -> its short id, by which `find_session` finds it alone in this store."""
    wanted = [id for id in session_ids if ":" in id]
    namesakes = _Namesakes(store.ids_beginning({_split(id)[1].partition(".")[0][:_HEAD] for id in wanted}))
    return {id: _short(id, namesakes) for id in wanted}


def _split(session_id: str) -> tuple[str, str]:
    agent, _, external_id = session_id.partition(":")
    return agent, external_id


class _Namesakes:
    """The sessions whose ids begin or end like others, by what every short id has of them."""

    def __init__(self, ids: Iterable[tuple[str, bool]]) -> None:
        self._is_subagent = dict(ids)
        self._alike: defaultdict[str, list[str]] = defaultdict(list)
        for id in self._is_subagent:
            first = _split(id)[1].partition(".")[0]
            for form in {_beginning(first, SHORTEST), _end(first, _TAIL)}:
                self._alike[form].append(id)

    def alike(self, session_id: str, form: Callable[[str, int], str], least: int) -> list[str]:
        """Those that a text of this form may mean, the session included."""
        first = _split(session_id)[1].partition(".")[0]
        # A piece that is too short to be cut is the beginning of longer ones.
        return self._alike[form(first, least)] if len(first) > SHORTEST else list(self._is_subagent)

    def are_told_apart(self, found: list[str], session_id: str) -> bool:
        """Whether `find_session`, which takes a session before subagents, finds this one among them."""
        if self._is_subagent.get(session_id):
            return found == [session_id]
        return [id for id in found if not self._is_subagent[id]] == [session_id]


def _beginning(segment: str, length: int) -> str:
    return segment[:length]


def _end(segment: str, length: int) -> str:
    return segment if len(segment) <= _HEAD + length else f"{segment[:_HEAD]}{CUT}{segment[-length:]}"


def _short(session_id: str, namesakes: _Namesakes) -> str:
    texts: list[str] = []
    for text in _unambiguous(session_id, namesakes):
        if columns_of(text) <= HANDY:
            return text
        texts.append(text)
    return min([*texts, session_id], key=columns_of)


def _unambiguous(session_id: str, namesakes: _Namesakes) -> Iterator[str]:
    """The shortest text of each form that means only this session, the easiest form first."""
    agent, external_id = _split(session_id)
    longest = max(map(len, external_id.split(".")))
    for form, least in ((_beginning, SHORTEST), (_end, _TAIL)):
        alike = namesakes.alike(session_id, form, least)
        for head, found in (("", alike), (f"{agent}:", [id for id in alike if _split(id)[0] == agent])):
            for length in range(least, longest + 1):
                text = ".".join(form(segment, length) for segment in external_id.split("."))
                # A longer text means fewer of them.
                found = [id for id in found if abbreviates(text, _split(id)[1])]
                if namesakes.are_told_apart(found, session_id):
                    yield head + text
                    break
