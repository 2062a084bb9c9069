"""The page about the format and the code that reads it speak of the same kinds, parts and fields (R-S23)."""

from __future__ import annotations

import msgspec

from support.format_page import FormatPage, named
from turnlog.agents.klaude.contents import PARTS
from turnlog.agents.klaude.messages import SOURCE_ORIGINS
from turnlog.agents.klaude.records import RECORD_KINDS, KlaudeData

PAGE = FormatPage("klaude")


def test_every_record_kind_is_on_the_page_with_what_it_becomes() -> None:
    """R-S23, R-C3"""
    described = {named(kind)[0]: outcome for kind, outcome, *_ in PAGE.rows("## Records")}
    assert described == {kind: outcome.value for kind, outcome in RECORD_KINDS.items()}


def test_every_part_is_on_the_page() -> None:
    """R-K1"""
    assert {name for part, _ in PAGE.rows("### Parts") for name in named(part)} == PARTS


def test_every_source_of_a_user_message_is_on_the_page() -> None:
    described = {name: named(origin)[0] for source, origin in PAGE.rows("### User messages") for name in named(source)}
    assert described.items() >= {name: origin.value for name, origin in SOURCE_ORIGINS.items()}.items()


def test_every_field_that_is_read_is_on_the_page() -> None:
    """R-S23"""
    described = [name for fields, _ in PAGE.rows("### Fields") for name in named(fields)]
    assert sorted(described) == sorted(field.encode_name for field in msgspec.structs.fields(KlaudeData))
