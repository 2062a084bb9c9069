"""The page about the format and the code that reads it speak of the same rows, parts, events and tools (R-S23)."""

from __future__ import annotations

import re

from support.format_page import FormatPage, named
from turnlog.agents.opencode.rows import EVENTS, PARTS, RUN_KINDS, TABLES, outcome_of
from turnlog.agents.opencode.tools import TOOL_KINDS

PAGE = FormatPage("opencode")


def test_every_table_is_on_the_page_with_what_it_becomes() -> None:
    """R-S23, R-C3"""
    assert {named(table)[0]: result for table, result, _ in PAGE.rows("## Rows")} == TABLES


def test_every_kind_of_part_is_on_the_page_with_what_it_becomes() -> None:
    """R-S23, R-C3"""
    assert {named(kind)[0]: result for kind, result, _ in PAGE.rows("### Parts")} == PARTS


def test_every_event_is_on_the_page_with_what_it_becomes() -> None:
    """R-S23"""
    described = {name: result.rstrip(" |") for kinds, result in PAGE.rows("### Events") for name in named(kinds)}
    families = {name for name in described if name.endswith(".*")}
    assert {name: described[name] for name in described.keys() - families} == EVENTS
    assert {outcome_of(name.replace("*", "anything")) for name in families} == {"record"}


def test_every_tool_is_on_the_page_with_its_kind() -> None:
    """R-S23"""
    described = {name: kind.rstrip(" |") for tools, kind in PAGE.rows("### Tool calls", 1) for name in named(tools)}
    assert described == {name: kind.value for name, kind in TOOL_KINDS.items()}


def test_every_line_of_a_run_is_on_the_page_with_what_it_becomes() -> None:
    """R-S23"""
    described = {
        name: result.rstrip(" |")
        for names, result in PAGE.rows("## What it prints while it runs")
        for name in named(names)
    }
    assert described == RUN_KINDS


def test_rows_give_their_evidence() -> None:
    described = [*PAGE.rows("## Rows"), *PAGE.rows("### Parts")]
    assert [name for name, _, how in described if not re.search(r"\*(seen|named)\*", how)] == []
