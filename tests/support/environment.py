"""Variables of the environment that tests never see."""

from __future__ import annotations

import os
import re

import pytest

_PLACE = re.compile(r"TURNLOG_(?!TESTS$)\w+|\w+_(HOME|DIR|DB|OVERRIDE|USER_PATH)")


def names_place(variable: str) -> bool:
    """Whether a variable may say where an agent or turnlog keeps its files."""
    return _PLACE.fullmatch(variable) is not None


def hide_places(patch: pytest.MonkeyPatch) -> None:
    """Take away the variables that name places of whoever runs the tests."""
    for variable in filter(names_place, list(os.environ)):
        patch.delenv(variable)
