"""Variables of the environment that tests never see."""

from __future__ import annotations

import os
import re

import pytest

from turnlog.agents.built_in import BUILT_IN, BuiltIn

_PLACE = re.compile(r"TURNLOG_(?!TESTS$)\w+|\w+_(HOME|DIR|DB|OVERRIDE|USER_PATH)")


def names_place(variable: str) -> bool:
    """Whether a variable may say where an agent or turnlog keeps its files."""
    return _PLACE.fullmatch(variable) is not None or variable in _VARIABLES


def variables_of(built_in: BuiltIn) -> set[str]:
    """The variables that may say where an agent keeps its files."""
    rules = (built_in.homes, *built_in.others)
    named = {variable for rule in rules for variable in (rule.variable, rule.home_variable) if variable is not None}
    return named | set(built_in.variables)


_VARIABLES = {variable for built_in in BUILT_IN.values() for variable in variables_of(built_in)}


def hide_places(patch: pytest.MonkeyPatch) -> None:
    """Take away the variables that name places of whoever runs the tests."""
    for variable in filter(names_place, list(os.environ)):
        patch.delenv(variable)
