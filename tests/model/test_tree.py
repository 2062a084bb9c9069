"""Branches, rewinds and compactions: the fate of every message follows from parents, leaf and compactions."""

from __future__ import annotations

import time

from hypothesis import given
from hypothesis import strategies as st

from turnlog.model import Fate
from turnlog.model.tree import Compaction, Node, active_path, branch_points, children_of, default_leaf, place


def chain(*ids: str, parent: str | None = None, start: int = 0) -> list[Node]:
    """Nodes that hang under each other, ten positions apart."""
    parents = (parent, *ids)
    return [Node(id=each, parent=parents[index], position=start + 10 * index) for index, each in enumerate(ids)]


def fates(nodes: list[Node], leaf: str | None, *compactions: Compaction) -> dict[str, str]:
    """`fate` or `fate < cause` of every node."""
    placed = place(nodes, leaf, compactions)
    return {each: f"{at.fate} < {at.cause}" if at.cause else str(at.fate) for each, at in placed.items()}


def test_a_straight_session_is_active() -> None:
    nodes = chain("a", "b", "c")
    assert default_leaf(nodes) == "c"
    assert fates(nodes, "c") == {"a": "active", "b": "active", "c": "active"}
    assert branch_points(nodes) == []


def test_a_rewind_leaves_the_old_branch_and_names_what_took_its_place() -> None:
    nodes = [*chain("a", "b", "c", "d"), *chain("x", "y", parent="b", start=100)]
    assert branch_points(nodes) == ["b"]
    assert fates(nodes, default_leaf(nodes)) == {
        "a": "active",
        "b": "active",
        "c": "rewound < x",
        "d": "rewound < x",
        "x": "active",
        "y": "active",
    }


def test_nested_rewinds_name_what_replaced_the_outermost() -> None:
    nodes = [
        *chain("a", "b", "c"),
        *chain("x", "y", parent="b", start=100),
        *chain("z", parent="x", start=200),
        *chain("p", "q", parent="a", start=300),
    ]
    assert branch_points(nodes) == ["a", "b", "x"]
    assert fates(nodes, "q") == {
        "a": "active",
        **dict.fromkeys("bcxyz", "rewound < p"),
        "p": "active",
        "q": "active",
    }
    assert fates(nodes, "z")["y"] == "rewound < z"
    assert fates(nodes, "z")["c"] == "rewound < x"
    assert fates(nodes, "z")["p"] == "rewound < b"


def test_a_rewind_to_the_very_start() -> None:
    nodes = [*chain("a", "b"), *chain("x", start=100)]
    assert fates(nodes, "x") == {"a": "rewound < x", "b": "rewound < x", "x": "active"}
    assert fates(nodes, None) == {"a": "rewound", "b": "rewound", "x": "rewound"}


def test_a_leaf_in_the_middle_rewinds_what_follows_it() -> None:
    assert fates(chain("a", "b", "c"), "b") == {"a": "active", "b": "active", "c": "rewound"}


def test_a_compaction_compacts_all_before_it_but_what_it_kept() -> None:
    nodes = chain("a", "b", "c", "d")
    assert fates(nodes, "d", Compaction(id="k", position=25, kept=frozenset("b"))) == {
        "a": "compacted < k",
        "b": "active",
        "c": "compacted < k",
        "d": "active",
    }


def test_the_first_compaction_that_left_a_message_out_is_the_cause() -> None:
    nodes = chain("a", "b", "c", "d", "e")
    first = Compaction(id="k1", position=15, kept=frozenset("b"))
    second = Compaction(id="k2", position=35, kept=frozenset("d"))
    for order in ((first, second), (second, first)):
        assert fates(nodes, "e", *order) == {
            "a": "compacted < k1",
            "b": "compacted < k2",
            "c": "compacted < k2",
            "d": "active",
            "e": "active",
        }


def test_a_message_on_a_rewound_branch_is_rewound_and_not_compacted() -> None:
    nodes = [*chain("a", "b"), *chain("x", "s", "y", parent="a", start=100)]
    assert fates(nodes, "y", Compaction(id="k", position=105)) == {
        "a": "compacted < k",
        "b": "rewound < x",
        "x": "compacted < k",
        "s": "active",
        "y": "active",
    }


def test_a_compaction_that_was_rewound_compacts_nothing() -> None:
    nodes = [*chain("a", "b", "s"), *chain("x", parent="b", start=100)]
    compaction = Compaction(id="k", position=15, summary="s")
    assert fates(nodes, "x", compaction) == {"a": "active", "b": "active", "s": "rewound < x", "x": "active"}
    assert fates(nodes, "s", compaction) == {
        "a": "compacted < k",
        "b": "compacted < k",
        "s": "active",
        "x": "rewound < s",
    }
    assert fates(nodes, "x", Compaction(id="k", position=15, summary="nowhere"))["a"] == "compacted < k"


def test_what_is_beside_the_conversation_stays_there() -> None:
    side = Node(id="w", parent="a", position=500, sidecar=True)
    nodes = [*chain("a", "b"), side]
    assert default_leaf(nodes) == "b"
    assert branch_points(nodes) == []
    assert fates(nodes, "b", Compaction(id="k", position=600)) == {
        "a": "compacted < k",
        "b": "compacted < k",
        "w": "sidecar",
    }
    assert default_leaf([side]) is None
    assert default_leaf([]) is None


def test_a_parent_that_is_not_there_ends_the_path() -> None:
    nodes = [*chain("a", "b"), *chain("x", "y", parent="gone", start=100)]
    assert active_path({node.id: node for node in nodes}, "y") == {"x", "y"}
    assert fates(nodes, "y") == {"a": "rewound", "b": "rewound", "x": "active", "y": "active"}
    assert fates(nodes, "gone") == dict.fromkeys("abxy", "rewound")


def test_a_cycle_ends_the_path() -> None:
    nodes = [
        Node(id="a", parent="c", position=0),
        Node(id="b", parent="a", position=10),
        Node(id="c", parent="b", position=20),
        Node(id="self", parent="self", position=30),
        Node(id="tail", parent="b", position=40),
    ]
    assert fates(nodes, "c") == {"a": "active", "b": "active", "c": "active", "self": "rewound", "tail": "rewound < c"}
    assert fates(nodes, "self") == {**dict.fromkeys(("a", "b", "c", "tail"), "rewound"), "self": "active"}


def test_children_are_in_the_order_of_their_positions() -> None:
    nodes = [Node(id=each, parent="r", position=position) for each, position in (("b", 2), ("a", 3), ("c", 1))]
    assert [node.id for node in children_of(nodes)["r"]] == ["c", "b", "a"]


@st.composite
def forests(draw: st.DrawFn) -> tuple[list[Node], str | None, list[Compaction]]:
    """Any graph of parents at all: trees, cycles, parents that are not there."""
    size = draw(st.integers(0, 12))
    ids = [f"n{number}" for number in range(size)]
    parents = st.sampled_from([None, "gone", *ids])
    nodes = [
        Node(id=each, parent=draw(parents), position=position, sidecar=draw(st.integers(0, 9)) == 0)
        for position, each in enumerate(ids)
    ]
    leaf = draw(st.sampled_from([None, "gone", *ids]))
    compactions = [
        Compaction(id=f"k{number}", position=draw(st.integers(0, 12)), kept=draw(st.frozensets(st.sampled_from(ids))))
        for number in range(draw(st.integers(0, 2)) if ids else 0)
    ]
    return draw(st.permutations(nodes)), leaf, compactions


@given(forests())
def test_every_node_has_one_fate_and_the_order_of_rows_does_not_show(
    forest: tuple[list[Node], str | None, list[Compaction]],
) -> None:
    nodes, leaf, compactions = forest
    placed = place(nodes, leaf, compactions)
    assert placed == place(nodes[::-1], leaf, compactions[::-1])
    path = active_path({node.id: node for node in nodes}, leaf)
    for node in nodes:
        fate = placed[node.id].fate
        assert (fate is Fate.SIDECAR) == node.sidecar
        if not node.sidecar:
            assert (fate is Fate.REWOUND) == (node.id not in path)
            assert (fate is Fate.COMPACTED) == (placed[node.id].cause is not None and node.id in path)


def test_a_long_rewound_branch_costs_no_more_than_its_length() -> None:
    size = 20_000
    old = chain(*(f"o{number}" for number in range(size)), parent="root", start=10)
    new = chain(*(f"n{number}" for number in range(size)), parent="root", start=10 * size + 10)
    nodes = [Node(id="root", parent=None, position=0), *old, *new]
    started = time.process_time()
    placed = place(nodes, f"n{size - 1}")
    assert time.process_time() - started < 5
    assert placed["o19999"].cause == "n0"
