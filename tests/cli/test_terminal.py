"""No log can make a terminal obey it."""

import json
import re
import unicodedata
from io import BytesIO, TextIOWrapper

import click
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from turnlog.cli import terminal
from turnlog.cli.terminal import Column, one_line, plain, write_json, write_table

CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")

INTRODUCERS = ("\x1b", "\x1b[", "\x9b", "\x1b]0;", "\x9d", "\x90", "\x1bP", "\x1b^")
ENDS = ("31m", "2J", "c", "\x07", "\x1b\\", "\x9c")
OTHERS = ("\x08", "\x7f", "\x85", "\r", "\n", "\t", "\x00", "\ud800", "a", "é", "你", "[", "]", ";")
pieces = st.sampled_from((*INTRODUCERS, *ENDS, *OTHERS))
hostile = st.lists(pieces | st.text(max_size=3), max_size=30).map("".join)


@given(hostile)
@example("\x1b\x1b[31m[31m")
@example("\x1b]0;title without an end")
def test_of_all_control_characters_only_newline_and_tab_are_left(text: str) -> None:
    assert CONTROLS.search(plain(text)) is None


@given(hostile)
def test_what_was_made_plain_stays_as_it_is_and_can_be_written(text: str) -> None:
    once = plain(text)
    assert plain(once) == once
    once.encode()


@given(st.text(st.characters(exclude_categories=("Cc", "Cs")) | st.sampled_from("\n\t")))
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


def test_json_escapes_what_a_terminal_would_obey(capsys: pytest.CaptureFixture[str]) -> None:
    value = "\x1b[31m\x9b2J\x7f\x85 é 你"
    write_json({"text": value})
    written = capsys.readouterr().out
    assert CONTROLS.search(written) is None
    assert "é 你" in written
    assert json.loads(written) == {"text": value}


def test_json_holds_everything_whatever_the_output_can_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Latin-1 terminal, or half a surrogate pair: replaced, it would be lost."""
    value = {"text": "é 你 😀 \ud800 \x9b"}
    for encoding in ("ascii", "latin-1", "utf-8"):
        written = BytesIO()
        monkeypatch.setattr("sys.stdout", TextIOWrapper(written, encoding, errors="replace"))
        write_json(value)
        assert json.loads(written.getvalue().decode(encoding)) == value


COLUMNS = (Column("Name"), Column("Number", right=True))


def test_a_table_in_a_pipe_is_aligned_whole_and_without_colour(capsys: pytest.CaptureFixture[str]) -> None:
    write_table(COLUMNS, [("a" * 300, "1"), ("你好", "22")], ("Total", "23"))
    head, long, wide, total = capsys.readouterr().out.splitlines()
    assert long == "a" * 300 + "       1"
    assert head.endswith("Number")
    assert wide == "你好" + " " * 296 + "      22"
    assert total.startswith("Total ")


def test_a_table_without_rows_is_a_remark(capsys: pytest.CaptureFixture[str]) -> None:
    write_table((Column("Name"), Column("Calls", right=True)), [])
    assert capsys.readouterr() == ("", "Nothing found.\n")
    write_table((Column("Name"), Column("Calls", right=True)), [], footer=("Total", "0"))
    assert capsys.readouterr() == ("Name   Calls\nTotal      0\n", "")


def test_a_table_takes_no_control_from_its_cells(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for looked_at in (False, True):
        monkeypatch.setattr(terminal, "is_terminal", lambda looked_at=looked_at: looked_at)
        write_table(COLUMNS, [("\x1b[31mred\nnext [bold]x[/bold] :smile:", "\x9b2J1")])
        written = capsys.readouterr().out
        assert "red next [bold]x[/bold] :smile:" in written
        assert "\x1b[31m" not in written
        assert "\x9b" not in written


def test_a_narrow_screen_cuts_only_what_may_be_cut(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a path its end stays, and a number is never cut."""
    monkeypatch.setattr(terminal, "is_terminal", lambda: True)
    columns = (Column("Id"), Column("File", can_shrink=True, is_path=True), Column("Tokens", right=True))
    for screen, path in (
        (80, "/home/me/work/你/shop.py"),
        (38, "…e/work/你/shop.py"),
        (30, "…/shop.py"),
    ):
        for term in ("xterm", "dumb"):
            monkeypatch.setenv("COLUMNS", str(screen))
            monkeypatch.setenv("TERM", term)
            write_table(columns, [("3f2a91c0", "/home/me/work/你/shop.py", "12,345")])
            line = capsys.readouterr().out.splitlines()[-1]
            assert line.split() == ["3f2a91c0", path, "12,345"]


@pytest.mark.parametrize(("screen", "path", "why"), [(27, "…/你/shop.py", "a long story"), (9, "…shop.py", "a long…")])
def test_a_screen_that_is_too_narrow_for_a_row_has_a_line_a_column(
    screen: int, path: str, why: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No line is wrapped in its middle, and no number is ever cut."""
    monkeypatch.setattr(terminal, "is_terminal", lambda: True)
    monkeypatch.setenv("COLUMNS", str(screen))
    columns = (
        Column("Id"),
        Column("File", can_shrink=True, is_path=True),
        Column("Why", can_shrink=True),
        Column("Cached tokens", right=True),
    )
    write_table(columns, [("3f2a91c0", "/home/me/work/你/shop.py", "a long story", "12,345")], ("Total", "", "", "1"))
    lines = click.unstyle(capsys.readouterr().out).splitlines()
    assert lines == [
        "Id             3f2a91c0",
        f"File           {path}",
        f"Why            {why}",
        "Cached tokens  12,345",
        "",
        "Id             Total",
        "Cached tokens  1",
    ]
