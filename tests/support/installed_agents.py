"""Which installed packages register agents, looked up once: every question for the agents would read what a hundred
packages of the tests' environment say, and the tests ask thousands of times."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from turnlog import agents


@contextmanager
def looked_up_once() -> Generator[None]:
    """Within the `with`, folders on `sys.path` now are not read again; others are, each time."""
    names_group = agents._names_group  # pyright: ignore[reportPrivateUsage]  # it has no way in from outside
    known = {Path(folder): names_group(Path(folder)) for folder in sys.path}

    def remembered(place: Path) -> bool:
        return known[place] if place in known else names_group(place)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(agents, "_names_group", remembered)
        yield
