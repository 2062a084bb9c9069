"""What a prompt gives a session for a title: the same for every agent."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from support import claude_files, codex_files, gemini_files, klaude_files
from support.claude_files import Gathered
from turnlog.model.session import title_from

PROMPT = "  Fix\tthis\n\n\x1b[31mfile\x1b[0m:\u202e\n" + "some words\n" * 2000

FOLDS: dict[str, Callable[[str], Gathered]] = {
    "claude-code": lambda text: claude_files.fold(claude_files.Log().user(text)),
    "codex": lambda text: codex_files.fold(codex_files.meta(), codex_files.prompt(text)),
    "gemini-cli": lambda text: gemini_files.fold(gemini_files.header(), gemini_files.user("u", text)),
    "klaude": lambda text: klaude_files.fold(klaude_files.user("u", text)),
}


@pytest.mark.parametrize("agent", FOLDS)
def test_a_prompt_titles_its_session_in_one_short_line(agent: str) -> None:
    """R-C6"""
    (change,) = FOLDS[agent](PROMPT).sessions.values()
    assert change.titles["prompt"] == ("Fix this file: " + "some words " * 2000)[:200].strip()


@pytest.mark.parametrize("agent", FOLDS)
def test_a_prompt_of_nothing_is_no_title(agent: str) -> None:
    (change,) = FOLDS[agent](" \n\t").sessions.values()
    assert "prompt" not in change.titles


def test_a_title_is_made_of_the_beginning_of_a_text() -> None:
    assert title_from("word " * 1_000_000) == ("word " * 40).strip()
    assert title_from("\u200b\n") == ""
