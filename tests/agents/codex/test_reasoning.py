"""Reasoning: one part an item, whichever stream has it first, and however the file was split."""

from __future__ import annotations

import pytest

from support.claude_files import Gathered
from support.codex_files import (
    THREAD,
    answer,
    call,
    counts,
    event,
    fold,
    fold_in_pieces,
    line,
    meta,
    output,
    prompt,
    reasoning,
    token_count,
)
from turnlog.model import ReasoningPart, TextPart, ToolCallPart

SESSION = f"codex:{THREAD}"
TEXTS = ("**Looking for the failing test**", "**Reading the fixture**", "**Planning**")
TOKENS = token_count(counts(100, 0, 20, 8), counts(100, 0, 20, 8))

# As 0.63.0 logs a response: the events of all of its texts, its tokens, then its items without ids.
HEAD = (meta(cli_version="0.63.0"), prompt("Go on"), line("turn_context", {"model": "gpt-5.1-codex-max"}))
EVENTS = tuple(event("agent_reasoning", text=text) for text in TEXTS)
SEVERAL = (
    *HEAD,
    *EVENTS,
    event("agent_message", message="Found it."),
    TOKENS,
    reasoning(TEXTS[0], sealed="one"),
    call("c1"),
    reasoning(TEXTS[1], sealed="two"),
    reasoning(TEXTS[2], sealed="three"),
    answer("Found it."),
    output("c1", "ok"),
)


def shown(gathered: Gathered) -> list[str]:
    """Texts and calls of the session, in order."""
    return [
        part.text if isinstance(part, TextPart | ReasoningPart) else part.tool_call_id
        for message in gathered.in_order(SESSION)
        for part in message.parts
        if isinstance(part, TextPart | ReasoningPart | ToolCallPart)
    ]


def sealed(gathered: Gathered) -> list[str | None]:
    """The encrypted originals of the session's reasoning, in order."""
    parts = [part for message in gathered.in_order(SESSION) for part in message.parts]
    thoughts = [part for part in parts if isinstance(part, ReasoningPart)]
    return [part.provider.opaque["encrypted_content"] if part.provider else None for part in thoughts]


def test_several_reasoning_items_in_a_row_are_a_part_each() -> None:
    """R-S22, R-C3"""
    gathered = fold(*SEVERAL)
    assert shown(gathered) == ["Go on", TEXTS[0], "c1", TEXTS[1], TEXTS[2], "Found it."]
    assert sealed(gathered) == ["one", "two", "three"]
    [message] = [message for message in gathered.in_order(SESSION) if message.role == "assistant"]
    assert len({part.id for part in message.parts}) == len(message.parts)


@pytest.mark.parametrize("cut", range(1, len(SEVERAL)))
def test_several_reasoning_items_are_the_same_wherever_the_file_is_split(cut: int) -> None:
    pieces = fold_in_pieces(b"".join(SEVERAL[:cut]), b"".join(SEVERAL[cut:]))
    assert pieces.in_order(SESSION) == fold(*SEVERAL).in_order(SESSION)


def test_items_with_the_same_words_in_a_row_are_a_part_each() -> None:
    again = event("agent_reasoning", text=TEXTS[0])
    items = (reasoning(TEXTS[0], sealed="one"), reasoning(TEXTS[0], sealed="two"))
    lines = (*HEAD, again, again, TOKENS, *items, answer("Done."))
    assert sealed(fold(*lines)) == ["one", "two"]
    assert fold_in_pieces(*lines).in_order(SESSION) == fold(*lines).in_order(SESSION)


@pytest.mark.parametrize("version", ["0.63.0", "0.98.0"])
def test_several_sections_of_one_item_stay_one_part(version: str) -> None:
    lines = (meta(cli_version=version), prompt("Go on"), *EVENTS, reasoning(*TEXTS, sealed="all"), answer("Done."))
    whole = fold(*lines)
    assert shown(whole) == ["Go on", "\n\n".join(TEXTS), "Done."]
    assert sealed(whole) == ["all"]
    assert fold_in_pieces(*lines).in_order(SESSION) == whole.in_order(SESSION)


def test_items_of_several_sections_in_a_row_keep_their_own() -> None:
    lines = (
        *HEAD,
        *EVENTS,
        TOKENS,
        reasoning(*TEXTS[:2], sealed="one"),
        reasoning(TEXTS[2], sealed="two"),
        answer("x"),
    )
    assert shown(fold(*lines)) == ["Go on", "\n\n".join(TEXTS[:2]), TEXTS[2], "x"]
    assert fold_in_pieces(*lines).in_order(SESSION) == fold(*lines).in_order(SESSION)


@pytest.mark.parametrize(
    ("version", "expected"), [("0.63.0", ("c1", *TEXTS)), ("0.98.0", (*TEXTS, "c1"))], ids=["0.63.0", "0.98.0"]
)
def test_sections_without_an_item_are_shown_when_the_response_ends(version: str, expected: tuple[str, ...]) -> None:
    """R-C3: a damaged line, or a killed process, may leave nothing but the events.

    In the older layout only items say where texts stand among the calls.
    """
    lines = (meta(cli_version=version), prompt("Go on"), *EVENTS, call("c1"), prompt("Again"))
    assert shown(fold(*lines)) == ["Go on", *expected, "Again"]
    assert fold_in_pieces(*lines).in_order(SESSION) == fold(*lines).in_order(SESSION)
