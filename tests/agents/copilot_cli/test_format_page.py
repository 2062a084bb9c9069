"""The page about the format and the code that reads it speak of the same kinds, sources and fields (R-S23)."""

from __future__ import annotations

import msgspec

from support.copilot_files import AGENT, lines, log_source
from support.format_page import FormatPage, named
from turnlog.agents import fold_bytes
from turnlog.agents.changes import LineCounts
from turnlog.agents.copilot_cli.messages import ORIGINS
from turnlog.agents.copilot_cli.record_kinds import EPHEMERAL, PERSISTED, READ, RECORD_KINDS
from turnlog.agents.copilot_cli.records import CopilotData

PAGE = FormatPage("copilot-cli")


def test_every_record_kind_is_on_the_page_with_its_result() -> None:
    """R-S23, R-C3"""
    described = {named(kind)[0]: outcome for kind, outcome, *_ in PAGE.rows("## Records")}
    assert described == {kind: outcome.value for kind, outcome in READ.items()}


def test_the_lists_of_kinds_are_disjoint_and_as_long_as_on_the_page() -> None:
    assert not PERSISTED & EPHEMERAL
    assert not (PERSISTED | EPHEMERAL) & READ.keys()
    told = [kind for kind in PERSISTED if f"`{kind}`" in PAGE.text and not kind.startswith("permission")]
    assert len(told) == 1 + 7
    assert (len(PERSISTED) - len(told), len(EPHEMERAL)) == (54, 85)


def test_every_source_of_a_user_message_is_on_the_page() -> None:
    described = {name: named(origin)[0] for source, origin in PAGE.rows("### User messages") for name in named(source)}
    assert described == {name: origin.value for name, origin in ORIGINS.items()}


def test_every_field_that_is_read_is_on_the_page() -> None:
    """R-S23"""
    described = [name for fields, _ in PAGE.rows("### Fields") for name in named(fields)]
    assert sorted(described) == sorted(field.encode_name for field in msgspec.structs.fields(CopilotData))


def test_every_kind_is_read_without_a_word_in_it() -> None:
    """R-K7: whatever a record lacks, it is a message, a result, or an event."""
    for kind in RECORD_KINDS:
        counts = fold_bytes(AGENT, log_source(), lines({"type": kind, "data": {}})).counts
        assert sum(getattr(counts, name) for name in LineCounts.__struct_fields__) == 1, kind
        assert counts.unreadable == 0, kind
