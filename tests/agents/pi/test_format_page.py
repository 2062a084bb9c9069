"""The page about the format and the code that reads it speak of the same kinds, roles, blocks and fields (R-S23)."""

from __future__ import annotations

import msgspec

from support.format_page import FormatPage, named
from turnlog.agents.pi.contents import BLOCKS
from turnlog.agents.pi.messages import ROLES, STOP_REASONS
from turnlog.agents.pi.records import RECORD_KINDS, PiMessage, PiRecord, PiUsage

PAGE = FormatPage("pi")


def test_every_record_kind_is_on_the_page_with_what_it_becomes() -> None:
    """R-S23, R-C3"""
    described = {named(kind)[0]: outcome for kind, outcome, *_ in PAGE.rows("## Records")}
    assert described == {kind: outcome.value for kind, outcome in RECORD_KINDS.items()}


def test_every_role_and_block_is_on_the_page() -> None:
    """R-K1"""
    assert {name for role, _ in PAGE.rows("### Roles") for name in named(role)} == set(ROLES)
    assert {name for block, _ in PAGE.rows("### Blocks") for name in named(block)} == BLOCKS


def test_every_stop_reason_is_on_the_page() -> None:
    """R-K5"""
    described = {named(word)[0]: named(reason)[0] for word, reason in PAGE.rows("### Stop reasons")}
    assert described == STOP_REASONS


def test_every_field_that_is_read_is_on_the_page() -> None:
    """R-S23"""
    described = {name for fields, _ in PAGE.rows("### Fields") for name in named(fields)}
    read = {field.encode_name for kind in (PiRecord, PiMessage, PiUsage) for field in msgspec.structs.fields(kind)}
    assert described == read
