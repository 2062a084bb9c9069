"""Tables and JSON on a terminal, which obeys no log."""

import json
import re
import sys
from io import BytesIO, StringIO, TextIOWrapper

import click
import pytest

from turnlog.cli import terminal
from turnlog.cli.terminal import Column, progress, write_json, write_table

CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def test_json_escapes_what_a_terminal_would_obey(capsys: pytest.CaptureFixture[str]) -> None:
    value = "\x1b[31m\x9b2J\x7f\x85 é 你"
    write_json({"text": value})
    written = capsys.readouterr().out
    assert CONTROLS.search(written) is None
    assert "é 你" in written
    assert json.loads(written) == {"text": value}


def test_json_escapes_what_nobody_sees(capsys: pytest.CaptureFixture[str]) -> None:
    value = "abc\u202ecba\u2066\u200b\ufeff\u2028 می‌خواهم 👩‍💻"
    write_json({"text": value})
    written = capsys.readouterr().out
    assert r"abc\u202ecba\u2066\u200b\ufeff\u2028 می‌خواهم 👩‍💻" in written
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
    # One long cell does not fill all other lines with spaces.
    assert wide == "你好" + " " * 56 + "      22"
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


@pytest.mark.parametrize(
    ("screen", "shown"),
    [
        (20, ["Id  Why   ", "1   a long", "2   longe…"]),
        (8, ["Id   1", "Why  a long", "", "Id   2", "Why  longer…"]),
    ],
)
def test_further_rows_are_as_wide_as_the_first(
    screen: int, shown: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(terminal, "is_terminal", lambda: True)
    monkeypatch.setenv("COLUMNS", str(screen))
    columns = (Column("Id"), Column("Why", can_shrink=True))
    write_table(columns, [("1", "a long")], rest=iter([("2", "longer than that")]))
    assert click.unstyle(capsys.readouterr().out).splitlines() == shown


TITLED = (
    Column("Id"),
    Column("Title", can_shrink=True),
    Column("Cost", right=True),
    Column("Prompts", right=True, is_optional=True),
    Column("Tools", right=True, is_optional=True),
)


@pytest.mark.parametrize(("width", "titles"), [(80, 5), (70, 4), (60, 3), (30, 3)])
def test_a_narrow_screen_shows_the_title_and_not_the_counts(
    width: int, titles: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(terminal, "is_terminal", lambda: True)
    monkeypatch.setenv("COLUMNS", str(width))
    write_table(TITLED, [("3f2a91c0", "Move the till to Postgres and keep its receipts", "$1.20", "12", "340")])
    head = capsys.readouterr().out.splitlines()[0]
    assert len(head.split()) == titles


class _Terminal(StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_shown_once_patience_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    for patience, expected in ((3600.0, False), (0.0, True)):
        written = _Terminal()
        monkeypatch.setattr(sys, "stderr", written)
        with progress(patience) as update:
            update("read", 1, 2)
        assert ("Reading" in written.getvalue()) is expected


def test_a_terminal_that_cannot_draw_again_gets_a_line_for_each_phase(monkeypatch: pytest.MonkeyPatch) -> None:
    written = _Terminal()
    monkeypatch.setattr(sys, "stderr", written)
    monkeypatch.setenv("TERM", "dumb")
    with progress() as update:
        for phase, done in (("find", 1), ("read", 1), ("read", 2)):
            update(phase, done, 2)
    assert written.getvalue() == "Finding logs…\nReading…\n"
