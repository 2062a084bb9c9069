"""No module needs itself: imports form no circle, those for types and those inside of functions included.

`make layers` keeps rooms apart; a circle within one is found here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from graphlib import CycleError, TopologicalSorter

import grimp
import pytest


@pytest.fixture(scope="module")
def imports() -> dict[str, set[str]]:
    """What each module of turnlog imports.

    A package's own module imports what is in it on first use (an agent's description its fold), and has been imported
    before all of that: such an import closes no circle.
    """
    graph = grimp.build_graph("turnlog", cache_dir=None)
    return {
        module: {each for each in graph.find_modules_directly_imported_by(module) if not each.startswith(f"{module}.")}
        for module in graph.modules
    }


def circles(imports: Mapping[str, Set[str]]) -> Iterator[str]:
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        yield " imports ".join(reversed(error.args[1]))


def test_imports_form_no_circle(imports: dict[str, set[str]]) -> None:
    assert len(imports) > 200
    assert list(circles(imports)) == []


def test_a_circle_is_found(imports: dict[str, set[str]]) -> None:
    """Of an import for types, too: `store.base` imports the report that `store.choices` would name."""
    changed = {**imports, "turnlog.store.choices": {"turnlog.store.base"}}
    (found,) = circles(changed)
    assert "turnlog.store.choices imports turnlog.store.base" in found
