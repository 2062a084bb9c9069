"""The page about the format and the code that reads it speak of the same kinds, origins and fields (R-S23)."""

from __future__ import annotations

import msgspec

from support.format_page import FormatPage, named
from turnlog.agents.kimi.messages import LOOP_EVENTS
from turnlog.agents.kimi.records import INPUT_ORIGINS, RECORD_KINDS, ContextMessage, KimiRecord, LoopEvent

PAGE = FormatPage("kimi-code")


def test_every_record_kind_is_on_the_page_with_what_it_becomes() -> None:
    """R-S23, R-C3"""
    described = {named(kind)[0]: outcome for kind, outcome, *_ in PAGE.rows("## Records")}
    assert described == {kind: outcome.value for kind, outcome in RECORD_KINDS.items()}


def test_every_kind_of_input_is_on_the_page_with_its_origin() -> None:
    described = {named(kind)[0]: named(origin)[0] for kind, origin in PAGE.rows("### Input")}
    assert described == {kind: origin.value for kind, origin in INPUT_ORIGINS.items()}


def test_every_loop_event_is_on_the_page() -> None:
    assert [named(event)[0] for event, *_ in PAGE.rows("### Loop events")] == list(LOOP_EVENTS)


def test_every_field_that_is_read_is_on_the_page() -> None:
    """R-S23"""
    described = [named(fields) for fields, _ in PAGE.rows("### Fields")]
    shapes = (KimiRecord, ContextMessage, LoopEvent)
    assert described == [
        [field.encode_name for field in msgspec.structs.fields(shape) if field.encode_name] for shape in shapes
    ]
