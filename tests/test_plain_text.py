"""No log can make a terminal obey it, turn a line round, hide text in it, or compute in a spreadsheet."""

import json
import re
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from turnlog.formats.escaping import fence, inline, visible
from turnlog.model.session import title_line
from turnlog.plain_text import csv_cell, one_line, plain, replace_unseen
from turnlog.store.reconcile.titles import choose_title

HIDDEN: dict[str, Any] = json.loads((Path(__file__).parent / "data" / "hidden_characters.json").read_text())
"""What the page shows signs for. `web/tests/shown.test.tsx` reads it too."""


def in_ranges(name: str) -> Iterator[int]:
    for first, last in HIDDEN[name]:
        yield from range(first, last + 1)


CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")

INTRODUCERS = ("\x1b", "\x1b[", "\x9b", "\x1b]0;", "\x9d", "\x90", "\x1bP", "\x1b^")
ENDS = ("31m", "2J", "c", "\x07", "\x1b\\", "\x9c")
OTHERS = ("\x08", "\x7f", "\x85", "\r", "\n", "\t", "\x00", "\ud800", "a", "é", "你", "[", "]", ";")
UNSEEN_AND_KIN = ("\u202e", "\u200d", "\u200b", "\u061c", "ب", "👩", "\ufe0f", "🏴", "\U000e0067")
pieces = st.sampled_from((*INTRODUCERS, *ENDS, *OTHERS, *UNSEEN_AND_KIN))
hostile = st.lists(pieces | st.text(max_size=3), max_size=30).map("".join)


def unseen(text: str) -> list[str]:
    """Characters without a width or that turn a line, but for those of flags and joiners."""
    return [character for character in re.sub("🏴[\U000e0030-\U000e007f]+", "", text) if character in UNSEEN]


@given(hostile)
@example("\x1b\x1b[31m[31m")
@example("\x1b]0;title without an end")
def test_of_all_control_characters_only_newline_and_tab_are_left(text: str) -> None:
    assert CONTROLS.search(plain(text)) is None
    assert unseen(plain(text)) == []


@given(hostile)
def test_what_was_made_plain_stays_as_it_is_and_can_be_written(text: str) -> None:
    once = plain(text)
    assert plain(once) == once
    once.encode()


SEEN = st.characters(
    exclude_categories=("Cc", "Cf", "Cs", "Cn", "Zl", "Zp"), exclude_characters=[*map(chr, in_ranges("unseen"))]
)


@given(st.text(SEEN | st.sampled_from("\n\t")))
def test_text_without_controls_is_not_touched(text: str) -> None:
    assert plain(text) == text


@given(hostile)
def test_one_line_is_one_harmless_line(text: str) -> None:
    line = one_line(text, 20)
    assert len(line) <= 20
    assert not any(unicodedata.category(character) == "Cc" for character in line)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x9b31mred", "red"),
        ("\x1b[?25lhidden cursor", "hidden cursor"),
        ("\x1b]0;new title\x07text", "text"),
        ("\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b]52;c;cm0gLXJmIH4=\x07clipboard", "clipboard"),
        ("\x9d0;title\x9ctext", "text"),
        ("\x1bPq#0;2;0;0;0\x1b\\sixel", "sixel"),
        ("\x1bcreset", "reset"),
        ("\x1b(0lines", "lines"),
        ("over\rwritten", "over\nwritten"),
        ("line\r\nend", "line\nend"),
        ("back\x08space", "backspace"),
        ("nul\x00", "nul"),
    ],
)
def test_sequences_go_and_text_stays(text: str, left: str) -> None:
    assert plain(text) == left


def test_a_sequence_without_an_end_does_not_swallow_the_next_line() -> None:
    assert plain("\x1b]0;no end\nnext").endswith("\nnext")


UNSEEN = [
    *map(chr, (0x061C, 0x180E, 0x200B, 0x200E, 0x200F, 0xFEFF, 0xE0001, 0xE0041)),
    *map(chr, (*range(0x202A, 0x202F), *range(0x2060, 0x2070))),
]
PLACES = {"a terminal": plain, "a title": one_line, "a cell": csv_cell}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("character", UNSEEN, ids=lambda character: f"U+{ord(character):04X}")
def test_nothing_turns_a_line_or_hides_in_it(character: str, place: str) -> None:
    show = PLACES[place]
    assert show(f"pay {character}lla{character} of it") == "pay lla of it"
    assert show(f"{character}pay") == "pay"
    assert choose_title({"custom": character, "prompt": f"a {character}title\n here"}) == ("a title here", "prompt")


@pytest.mark.parametrize("character", UNSEEN, ids=lambda character: f"U+{ord(character):04X}")
def test_a_document_shows_a_sign_for_what_nobody_sees(character: str) -> None:
    for made in (visible(f"a{character}b"), inline(f"a{character}b"), fence(f"a{character}b")):
        assert character not in made
        assert "a\ufffdb" in made


def sign(character: str) -> str:
    return f"⟨U+{ord(character):04X}⟩"


def test_between_letters_the_same_characters_are_hidden_as_in_the_page() -> None:
    controls, hidden = {*in_ranges("controls")}, {*in_ranges("unseen")}
    codes = [
        code for code in (*range(0xD800), *range(0xE000, 0x20000), *range(0xE0000, 0xE2000)) if code not in controls
    ]
    shown = "".join(f"a{sign(chr(code)) if code in hidden else chr(code)}b" for code in codes)
    assert replace_unseen("".join(f"a{chr(code)}b" for code in codes), sign) == shown
    assert plain("".join(map(chr, in_ranges("controls")))).strip() == ""  # U+0085 ends a line


@pytest.mark.parametrize(("what", "text", "shown"), HIDDEN["shown"], ids=lambda value: value[:30])
def test_what_needs_a_neighbour_is_hidden_without_one(what: str, text: str, shown: str) -> None:
    assert replace_unseen(text, sign) == shown
    assert plain(text) == re.sub("⟨U[+][0-9A-F]+⟩", "", shown)
    assert "\ufffd" in visible(text)


@pytest.mark.parametrize("text", HIDDEN["kept"], ids=ascii)
def test_what_has_its_neighbour_stays(text: str) -> None:
    assert replace_unseen(text, sign) == plain(text) == visible(text) == text
    flat = " ".join(text.split())
    assert one_line(text) == csv_cell(text) == flat


@pytest.mark.parametrize("end", ["\v", "\f", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029", "\r\n", "\r"])
def test_whatever_ends_a_line_separates_words(end: str) -> None:
    assert plain(f"fix{end}it") == "fix\nit"
    assert one_line(f"fix{end}it") == title_line(f"fix{end}it") == "fix it"


@pytest.mark.parametrize("first", ["=", "+", "-", "@", "\u2212", "\uff1d", "\uff0b", "\uff0d", "\uff20", "\ufe66"])
@pytest.mark.parametrize("before", ["", "\n", "\t", "\r", "\r\n", " ", "\u200b", "\x1b[0m", "\x00", "\u2028"])
def test_no_cell_is_a_formula(before: str, first: str) -> None:
    assert csv_cell(f"{before}{first}1+1") == f"'{first}1+1"


def test_a_cell_that_is_no_formula_stays() -> None:
    assert [csv_cell(text) for text in ("", "a=1", "claude-opus", "2026-11-02")] == [
        "",
        "a=1",
        "claude-opus",
        "2026-11-02",
    ]


@pytest.mark.parametrize("character", "\xad\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0")
def test_fillers_are_not_shown(character: str) -> None:
    assert plain(f"pay{character}pal") == "paypal"


@pytest.mark.parametrize("text", ["✔\ufe0f done, ⚠\ufe0f left", "a plain … text", "☎\ufe0e"])
def test_a_text_of_which_all_stays_is_not_built_again(text: str) -> None:
    """Forms of emoji are frequent in logs: each costs no look of its own."""
    assert replace_unseen(text, lambda character: "?") is text
