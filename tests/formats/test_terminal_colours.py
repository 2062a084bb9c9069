"""What programs print for a terminal, on pages: the text without its colours."""

from __future__ import annotations

import msgspec
import pytest

from turnlog.formats.escaping import escape, fence, inline, visible
from turnlog.formats.labels import pretty


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
