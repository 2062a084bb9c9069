"""The page about the format and the code that reads it speak of the same kinds, origins and fields (R-S23)."""

from __future__ import annotations

import msgspec

from support.format_page import FormatPage, named
from turnlog.agents.qwen_code.records import INPUT_ORIGINS, RECORD_KINDS, QwenRecord

PAGE = FormatPage("qwen-code")


def test_every_record_kind_is_on_the_page_with_what_it_becomes() -> None:
    """R-S23, R-C3"""
    described = {named(kind)[0]: outcome for kind, outcome, *_ in PAGE.rows("## Records")}
    assert described == {kind: outcome.value for kind, outcome in RECORD_KINDS.items()}


def test_every_kind_of_input_is_on_the_page_with_its_origin() -> None:
    described = {named(kind)[0]: named(origin)[0] for kind, origin in PAGE.rows("### Input")}
    assert described == {kind: origin.value for kind, origin in INPUT_ORIGINS.items()}


def test_every_field_that_is_read_is_on_the_page() -> None:
    """R-S23"""
    described = [name for fields, _ in PAGE.rows("### Fields") for name in named(fields)]
    fields = [field.encode_name for field in msgspec.structs.fields(QwenRecord)]
    assert sorted(described) == sorted(name for name in fields if name)
