"""The page about the format and the code that reads it speak of the same kinds, fields and states (R-S23)."""

from __future__ import annotations

import re

import msgspec

from support.format_page import FormatPage, named
from turnlog.agents.gemini_cli.records import MESSAGE_TYPES, RECORD_KINDS, GeminiRecord, WirePart
from turnlog.agents.gemini_cli.stream import STREAM_FIELDS, STREAM_KINDS
from turnlog.agents.gemini_cli.tools import OPEN_STATES

PAGE = FormatPage("gemini-cli")


def test_every_record_kind_is_on_the_page_with_what_it_becomes() -> None:
    """R-S23, R-C3"""
    described = {named(kind)[0]: becomes for kind, becomes, *_ in PAGE.rows("## Records")}
    assert described == {kind: becomes.value for kind, becomes in RECORD_KINDS.items()}
    assert set(RECORD_KINDS) >= MESSAGE_TYPES


def test_every_kind_of_a_stream_is_on_the_page_with_what_it_becomes() -> None:
    """R-S23"""
    section = PAGE.text.split("## The stream of a headless run\n", 1)[1].split("\n## ", 1)[0]
    table = [line.strip("|").split(" | ") for line in section.split("| kind |", 1)[1].splitlines()[2:] if "|" in line]
    described = {named(kind)[0]: becomes for kind, becomes, *_ in table}
    assert described == {kind: becomes.value for kind, becomes in STREAM_KINDS.items()}
    assert [row for row in table if not re.search(r"\*(seen|named)\*", row[2])] == []
    assert set(STREAM_FIELDS) <= set(STREAM_KINDS)


def test_every_row_of_kinds_gives_its_evidence() -> None:
    assert [kind for kind, _, how in PAGE.rows("## Records") if not re.search(r"\*(seen|named)\*", how)] == []


def test_every_field_that_is_read_is_on_the_page() -> None:
    """R-S23"""
    described = [name for fields, _ in PAGE.rows("### Fields") for name in named(fields)]
    assert sorted(described) == sorted(field.encode_name for field in msgspec.structs.fields(GeminiRecord))


def test_every_content_part_is_on_the_page() -> None:
    described = {name for part, _ in PAGE.rows("### Content parts") for name in named(part)}
    assert described == {field.encode_name for field in msgspec.structs.fields(WirePart)} - {"thought"}


def test_every_status_of_a_call_is_on_the_page_with_its_state() -> None:
    described = {name: named(state)[0] for status, state in PAGE.rows("### States of calls") for name in named(status)}
    assert described == {status: state.value for status, state in OPEN_STATES.items()}
