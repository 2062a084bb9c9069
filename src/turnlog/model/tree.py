"""The tree of a session: parents, branches, the active path, and the fates that follow from them.

Works on ids only, so that a store can run it over thin rows. Nodes are messages (an agent's module has already
contracted each message with its blocks and results into one node, so parallel calls are not branches).
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from turnlog.model.base import Value
from turnlog.model.message import Fate


class Node(Value, frozen=True, kw_only=True):
    """A message in the tree."""

    id: str
    parent: str | None
    position: int
    sidecar: bool = False
    """Beside the conversation: never on the active path and never rewound (diagnostic chatter, warm-ups)."""


class Compaction(Value, frozen=True, kw_only=True):
    """Where the context was replaced: everything before `position` is compacted, except `kept`."""

    id: str
    position: int
    kept: frozenset[str] = frozenset()
    summary: str | None = None
    """The message that took the place of what was compacted. Off the active path, the compaction is rewound too."""


class Placed(Value, frozen=True, kw_only=True):
    """The fate of a node and the id of what caused it."""

    fate: Fate
    cause: str | None = None


def children_of(nodes: Iterable[Node]) -> dict[str | None, list[Node]]:
    """Nodes by parent, each list in position order. More than one child is a branch point."""
    children: dict[str | None, list[Node]] = defaultdict(list)
    for node in sorted(nodes, key=lambda node: node.position):
        children[node.parent].append(node)
    return dict(children)


def branch_points(nodes: Iterable[Node]) -> list[str]:
    """Ids of nodes where the user went back and another branch began, in position order of the node's children."""
    conversation = [node for node in nodes if not node.sidecar]
    return [parent for parent, found in children_of(conversation).items() if parent is not None and len(found) > 1]


def active_path(nodes: Mapping[str, Node], leaf: str | None) -> set[str]:
    """Ids from `leaf` up to its root. A parent that is not there, or a cycle, ends the path."""
    path: set[str] = set()
    current = leaf
    while current is not None and current in nodes and current not in path:
        path.add(current)
        current = nodes[current].parent
    return path


def default_leaf(nodes: Iterable[Node]) -> str | None:
    """The last node of the conversation by position: where the next prompt would go."""
    last = max((node for node in nodes if not node.sidecar), key=lambda node: node.position, default=None)
    return last.id if last else None


def place(nodes: Sequence[Node], leaf: str | None, compactions: Iterable[Compaction] = ()) -> dict[str, Placed]:
    """The fate of every node, given the active leaf (None: everything was rewound) and the compactions.

    Off the active path is `rewound`, caused by the node that took its place; on it and before the last compaction
    is `compacted` unless kept, caused by the first compaction that left the node out.
    """
    by_id = {node.id: node for node in nodes}
    path = active_path(by_id, leaf)
    causes = _rewound_by(by_id, path)
    standing = sorted(
        (
            found
            for found in compactions
            if found.summary is None or found.summary in path or found.summary not in by_id
        ),
        key=lambda found: (found.position, found.id),
    )
    placed: dict[str, Placed] = {}
    for node in nodes:
        if node.sidecar:
            placed[node.id] = Placed(fate=Fate.SIDECAR)
        elif node.id not in path:
            placed[node.id] = Placed(fate=Fate.REWOUND, cause=causes[node.id])
        else:
            cause = _compacted_by(node, standing)
            placed[node.id] = Placed(fate=Fate.COMPACTED if cause else Fate.ACTIVE, cause=cause)
    return placed


def _compacted_by(node: Node, compactions: Sequence[Compaction]) -> str | None:
    """The first compaction that left the node out; None if the last one kept it or comes before it."""
    if not compactions or node.position >= compactions[-1].position or node.id in compactions[-1].kept:
        return None
    first = bisect_right(compactions, node.position, key=lambda compaction: compaction.position)
    return next(found.id for found in compactions[first:] if node.id not in found.kept)


def _rewound_by(nodes: Mapping[str, Node], path: set[str]) -> dict[str, str | None]:
    """For every node off the path, the active node that hangs where its branch left the path.

    Each branch is climbed once: what is found holds for all that was passed on the way.
    """
    successors = {nodes[node_id].parent: node_id for node_id in path}
    causes: dict[str, str | None] = {}
    for node_id in nodes:
        passed: list[str] = []
        current: str | None = node_id
        while current is not None and current in nodes and current not in path and current not in causes:
            passed.append(current)
            causes[current] = None
            current = nodes[current].parent
        cause = causes[current] if current is not None and current in causes else successors.get(current)
        causes.update(dict.fromkeys(passed, cause))
    return causes
