"""The page about the format and the code that reads it speak of the same kinds, parts and fields (R-S23)."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from turnlog.agents.klaude.contents import PARTS
from turnlog.agents.klaude.kinds import KINDS
from turnlog.agents.klaude.messages import SOURCES
from turnlog.agents.klaude.records import Data

PAGE = (Path(__file__).parents[3] / "docs" / "formats" / "klaude.md").read_text()


def rows(heading: str) -> list[tuple[str, ...]]:
    """The rows of the table below a heading, cell by cell, without its head."""
    section = PAGE.split(f"{heading}\n", 1)[1].split("\n#", 1)[0]
    table = [line for line in section.splitlines() if line.startswith("|")]
    return [tuple(cell.strip() for cell in line.strip("|").split(" | ")) for line in table[2:]]


def named(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def test_every_record_kind_is_on_the_page_with_what_it_becomes() -> None:
    """R-S23, R-C3"""
    described = {named(kind)[0]: becomes for kind, becomes, *_ in rows("## Records")}
    assert described == {kind: becomes.value for kind, becomes in KINDS.items()}


def test_every_part_is_on_the_page() -> None:
    """R-K1"""
    assert {name for part, _ in rows("### Parts") for name in named(part)} == PARTS


def test_every_source_of_a_user_message_is_on_the_page() -> None:
    described = {name: named(origin)[0] for source, origin in rows("### User messages") for name in named(source)}
    assert described.items() >= {name: origin.value for name, origin in SOURCES.items()}.items()


def test_every_field_that_is_read_is_on_the_page() -> None:
    """R-S23"""
    described = [name for fields, _ in rows("### Fields") for name in named(fields)]
    assert sorted(described) == sorted(field.encode_name for field in msgspec.structs.fields(Data))
