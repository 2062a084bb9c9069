"""The page about the format and the code that reads it speak of the same kinds, fields and blocks (R-S23)."""

from __future__ import annotations

import re

import msgspec

from support.format_page import FormatPage, named
from turnlog.agents.claude_code import contents
from turnlog.agents.claude_code.record_kinds import KEPT_FIELDS, RECORD_KINDS, STREAM_KINDS
from turnlog.agents.claude_code.records import ClaudeRecord
from turnlog.agents.claude_code.user_messages import INTERRUPTS, PHRASES, TAGGED

PAGE = FormatPage("claude-code")


def names_of(kind: type[msgspec.Struct]) -> list[str]:
    return [field.encode_name for field in msgspec.structs.fields(kind) if field.encode_name]


def test_every_record_kind_is_on_the_page_with_what_it_becomes() -> None:
    """R-S23, R-C3"""
    described = {named(kind)[0]: becomes for kind, becomes, *_ in PAGE.rows("## Records")}
    assert described == {kind: becomes.value for kind, becomes in RECORD_KINDS.items()}


def test_every_kind_of_a_stream_is_on_the_page_with_what_it_becomes() -> None:
    """R-S23"""
    section = PAGE.text.split("## The stream of a headless run\n", 1)[1].split("\n## ", 1)[0]
    table = [line.strip("|").split(" | ") for line in section.split("| kind |", 1)[1].splitlines()[2:] if line]
    described = {named(kind)[0]: becomes for kind, becomes, *_ in table}
    assert described == {kind: becomes.value for kind, becomes in STREAM_KINDS.items()}
    assert [row for row in table if not re.search(r"\*(seen|named)\*", row[2])] == []


def test_every_row_of_kinds_gives_its_evidence() -> None:
    assert [kind for kind, _, how in PAGE.rows("## Records") if not re.search(r"\*(seen|named)\*", how)] == []


def test_every_field_that_is_read_is_on_the_page() -> None:
    """R-S23"""
    described = [name for fields, _ in PAGE.rows("### Fields") for name in named(fields)]
    assert sorted(described) == sorted(names_of(ClaudeRecord))


def test_every_content_block_is_on_the_page() -> None:
    described = {name for block, _ in PAGE.rows("### Content blocks") for name in named(block)}
    others = {"text", "tool_result", "*_tool_result", "web_search_result", "image", "document"}
    assert described == others | contents.CALL_BLOCKS | contents.REASONING_BLOCKS | contents.DATA_BLOCKS


def test_every_tag_that_decides_an_origin_is_on_the_page() -> None:
    described = {name: origin for rule, origin in PAGE.rows("### Texts of `user` records") for name in named(rule)}
    for beginning, origin in (*TAGGED, *PHRASES):
        assert named(described[beginning.strip()])[0] == origin.value
    assert set(INTERRUPTS) <= set(described)


def test_fields_are_kept_only_of_known_kinds() -> None:
    assert set(KEPT_FIELDS) <= set(RECORD_KINDS)
