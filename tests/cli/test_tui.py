"""`turnlog tui`, and `turnlog` alone on a terminal."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from support.cli_runner import Command, call, on_terminal
from turnlog.cli.main import _without_arguments  # pyright: ignore[reportPrivateUsage]  # a process without the extra would need another environment


@pytest.fixture
def run() -> Command:
    return call


@pytest.mark.usefixtures("store")
def test_alone_on_a_terminal_it_shows_the_sessions() -> None:
    """The key is typed before the program behind the first picture is there: it counts."""
    code, written = on_terminal(answer="q", LINES="24", type_after="sessions")
    assert code == 0, written
    assert "any time" in written
    assert written.rstrip().endswith("\x1b[?1049l"), "the terminal's own screen is back"


def test_without_the_extra_it_shows_the_help(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def find_nothing(name: str) -> None:
        del name

    monkeypatch.setattr(importlib.util, "find_spec", find_nothing)
    assert _without_arguments() == []
    assert "turnlog[tui]" in capsys.readouterr().err


def test_in_a_pipe_it_is_wrong_use(run: Command, store: Path) -> None:
    refused = run("tui")
    assert (refused.exit_code, "needs a terminal" in refused.stderr) == (2, True)
