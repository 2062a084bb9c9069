"""The tree of a session: parents, branches, the active path, and the fates that follow from them.

Works on ids only, so that a store can run it over thin rows. Nodes are messages (an agent's module has already
contracted each message with its blocks and results into one node, so parallel calls are not branches).
"""

from __future__ import annotations

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
    """Where the context was replaced: what stood before `position` is compacted, but for `kept`."""

    id: str
    position: int
    kept: frozenset[str] = frozenset()


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
    is `compacted` unless kept.
    """
    by_id = {node.id: node for node in nodes}
    path = active_path(by_id, leaf)
    last = max(compactions, key=lambda compaction: compaction.position, default=None)
    placed: dict[str, Placed] = {}
    for node in nodes:
        if node.sidecar:
            placed[node.id] = Placed(fate=Fate.SIDECAR)
        elif node.id not in path:
            placed[node.id] = Placed(fate=Fate.REWOUND, cause=_successor(node, by_id, path, nodes))
        elif last is not None and node.position < last.position and node.id not in last.kept:
            placed[node.id] = Placed(fate=Fate.COMPACTED, cause=last.id)
        else:
            placed[node.id] = Placed(fate=Fate.ACTIVE)
    return placed


def _successor(node: Node, by_id: Mapping[str, Node], path: set[str], nodes: Sequence[Node]) -> str | None:
    """The active node that hangs where the rewound branch of `node` left the path."""
    current: Node | None = node
    seen: set[str] = set()
    while current is not None and current.parent is not None and current.parent not in path and current.id not in seen:
        seen.add(current.id)
        current = by_id.get(current.parent)
    parent = current.parent if current else None
    rivals = [other for other in nodes if other.parent == parent and other.id in path]
    return min(rivals, key=lambda other: other.position).id if rivals else None
