"""What programs print for a terminal, on pages: the text without its colours."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from turnlog.formats.escaping import escape, fence, inline, visible
from turnlog.formats.labels import pretty
from turnlog.plain_text import without_escapes


@pytest.mark.parametrize(
    ("printed", "shown"),
    [
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b[38;2;1;2;3mtrue colour\x1b[m", "true colour"),
        ("\x1b[2K\x1b[1Gprogress", "progress"),
        ("\x1b]8;;https://e.invalid\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b(Bplain", "plain"),
        ("cut off \x1b[3", "cut off "),
        ("\x1b]no end", "no end"),
        ("bell\x07", "bell\u2407"),
        ("[31m of a text", "[31m of a text"),
        ("\x1b\x1b[31m[31mnested", "nested"),
    ],
)
def test_colours_of_a_terminal_are_gone(printed: str, shown: str) -> None:
    assert "\x1b" not in visible(printed)
    if "nested" not in printed:
        assert visible(printed) == shown
    assert shown.strip().split()[-1] in fence(printed)
    assert "\x1b" not in escape(printed) + inline(printed)


def test_colours_in_json_are_gone_and_the_rest_is_exact() -> None:
    value = {"command": "printf '\x1b[31mred\x1b[0m'", "path": "C:\\\\u001b[31m", "bell": "\x07"}
    shown = pretty(msgspec.Raw(msgspec.json.encode(value)))
    assert msgspec.json.decode(shown) == {**value, "command": "printf 'red'"}


@given(st.lists(st.text(st.sampled_from('\x1b\x07[]\\"8;m1u0:,{} b\n\x9c'), max_size=12), min_size=1, max_size=4))
@example(["echo \x1b[", "next"])
@example(['say "\x1b["', "\x1b[\n"])
@example(["\x1b]8;;https://e.invalid\x1b\\link\x1b]8;;\x07", "\x1b(B\x1b7"])
def test_strings_in_json_lose_sequences_and_nothing_else(texts: list[str]) -> None:
    """A sequence that a text is cut within ends with the text, whatever comes after it."""
    value = {f"{number}": text for number, text in enumerate(texts)}
    shown = pretty(msgspec.Raw(msgspec.json.encode(value)))
    assert msgspec.json.decode(shown) == {name: without_escapes(text) for name, text in value.items()}


@pytest.mark.parametrize(
    "json",
    [r'{"a": "\ud800\u001b[31m"}', r'{"a": "\q\u001b[31m"}', r'{"a": "\u001b[31mcut', '{"a": "\\u001b[31m\u2028"}'],
)
def test_json_that_no_encoder_writes_is_shown(json: str) -> None:
    pretty(msgspec.Raw(json.encode())).encode()
