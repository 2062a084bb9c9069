"""The page about the format and the code that reads it speak of the same kinds and fields (R-S23)."""

from __future__ import annotations

import msgspec

from support.format_page import FormatPage, named
from turnlog.agents.droid.records import RECORD_KINDS, DroidMessage, DroidRecord

PAGE = FormatPage("droid")


def test_every_record_kind_is_on_the_page_with_what_it_becomes() -> None:
    """R-S23, R-C3"""
    described = {named(kind)[0]: outcome for kind, outcome, *_ in PAGE.rows("## Records")}
    assert described == {kind: outcome.value for kind, outcome in RECORD_KINDS.items()}


def test_every_field_that_is_read_is_on_the_page() -> None:
    """R-S23"""
    described = [name for fields, _ in PAGE.rows("### Fields") for name in named(fields)]
    kinds = (DroidRecord, DroidMessage)
    fields = [field.encode_name for kind in kinds for field in msgspec.structs.fields(kind)]
    assert sorted(described) == sorted(name for name in fields if name)
