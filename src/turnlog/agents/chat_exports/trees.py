"""The messages of a conversation as a tree: in the order of time, each behind the one that it follows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from heapq import heappop, heappush
from typing import NamedTuple, TypeVar

T = TypeVar("T")


class ExportNode(NamedTuple):
    """A node of a tree."""

    parent: str | None
    time: float
    """0 if it has none: then it follows its parent at once."""


def in_order(nodes: Mapping[str, ExportNode]) -> Iterator[str]:
    """The nodes in the order of time, none before its parent. One whose parent is missing or in a circle is a root."""
    children: dict[str | None, list[str]] = {}
    for identity, node in nodes.items():
        children.setdefault(node.parent if node.parent in nodes else None, []).append(identity)
    done: set[str] = set()
    waiting: list[tuple[float, int, str]] = []
    places = {identity: place for place, identity in enumerate(nodes)}

    def add(identities: Sequence[str], since: float) -> None:
        for identity in identities:
            heappush(waiting, (max(nodes[identity].time, since), places[identity], identity))

    add(children.get(None, ()), 0)
    while waiting or len(done) < len(nodes):
        if not waiting:
            # A circle has no root.
            add([next(identity for identity in nodes if identity not in done)], 0)
        time, _, identity = heappop(waiting)
        if identity in done:
            continue
        done.add(identity)
        yield identity
        add([child for child in children.get(identity, ()) if child not in done], time)


def nearest(parents: Mapping[str, str | None], known: Mapping[str, T], start: str | None) -> T | None:
    """What is known of the nearest node from `start` upwards."""
    at, seen = start, set[str]()
    while at is not None and at not in seen:
        if at in known:
            return known[at]
        seen.add(at)
        at = parents.get(at)
    return None
