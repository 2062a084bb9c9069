"""The page about the format and the code that reads it speak of the same roles and columns (R-S23)."""

from __future__ import annotations

from support.format_page import FormatPage, named
from turnlog.agents.hermes.fold import COLUMNS, ROLES

PAGE = FormatPage("hermes")


def test_every_role_is_on_the_page() -> None:
    """R-S23, R-C3"""
    assert {named(role)[0] for role, *_ in PAGE.rows("## Rows of `messages`")} == ROLES


def test_every_column_that_is_read_is_on_the_page() -> None:
    """R-S23"""
    described = [name for columns, _ in PAGE.rows("### Columns") for name in named(columns)]
    assert sorted(described) == sorted(COLUMNS)
