"""The page about the format and the code that reads it speak of the same kinds, fields and pieces (R-S23)."""

from __future__ import annotations

import re

import msgspec

from support.format_page import FormatPage, named
from turnlog.agents.codex import records, responses_api
from turnlog.agents.codex.record_kinds import KEPT_FIELDS, RECORD_KINDS
from turnlog.agents.codex.stream_records import EVENT_KINDS, EXEC_KINDS
from turnlog.agents.codex.user_messages import TAGGED

PAGE = FormatPage("codex")

READ = (
    records.CodexLine,
    records.Item,
    records.TurnItem,
    records.CodexEvent,
    records.UsageRecord,
    records.Meta,
    records.TurnContext,
    records.Compacted,
    records.Communication,
)


def test_every_record_kind_is_on_the_page_with_what_it_becomes() -> None:
    """R-S23, R-C3"""
    described = {named(kind)[0]: becomes for kind, becomes, *_ in PAGE.rows("## Records")}
    assert described == {kind: becomes.value for kind, becomes in RECORD_KINDS.items()}


def test_every_kind_of_a_stream_is_on_the_page_with_what_it_becomes() -> None:
    """R-S23"""
    section = PAGE.text.split("## The stream of a headless run\n", 1)[1].split("\n## ", 1)[0]
    for head, kinds in (("| kind |", EXEC_KINDS), ("| what was printed |", EVENT_KINDS)):
        lines = section.split(head, 1)[1].split("\n\n", 1)[0].splitlines()[2:]
        table = [line.strip("|").split(" | ") for line in lines]
        described = {named(kind)[0]: becomes for kind, becomes, *_ in table}
        assert described == {kind: becomes.value for kind, becomes in kinds.items()}
        assert [row for row in table if not re.search(r"\*(seen|named)\*", row[2])] == []


def test_every_row_of_kinds_gives_its_evidence() -> None:
    assert [kind for kind, _, how in PAGE.rows("## Records") if not re.search(r"\*(seen|named)\*", how)] == []


def test_every_field_that_is_read_is_on_the_page() -> None:
    """R-S23, R-C4"""
    described = {name for fields, _ in PAGE.rows("### Fields") for name in named(fields)}
    read = {field.encode_name for struct in READ for field in msgspec.structs.fields(struct)}
    assert described == {name for name in read if name}


def test_every_type_of_content_is_on_the_page() -> None:
    described = {name for piece, _ in PAGE.rows("### Pieces of content") for name in named(piece)}
    assert described == responses_api.TEXT_TYPES | responses_api.IMAGE_TYPES | responses_api.DATA_TYPES


def test_every_text_that_decides_an_origin_is_on_the_page() -> None:
    table = PAGE.rows("### Texts of `message` items of the user's role")
    assert [(named(text)[0], named(origin)[0]) for text, origin in table] == [
        (start, origin.value) for start, origin in TAGGED
    ]


def test_fields_are_kept_only_of_known_kinds() -> None:
    assert set(KEPT_FIELDS) <= set(RECORD_KINDS)
