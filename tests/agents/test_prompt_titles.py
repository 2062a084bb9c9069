"""What a prompt gives a session for a title: the same for every agent."""

from __future__ import annotations

import pytest

from support import codex_files
from support.agent_cases import CASES
from turnlog.model.session import title_from

PROMPT = "  Fix\tthis\n\n\x1b[31mfile\x1b[0m:\u202e\n" + "some words\n" * 2000

FOLDS = {case.name: case.prompt for case in CASES.values() if case.prompt is not None}


@pytest.mark.parametrize("agent", FOLDS)
def test_a_prompt_titles_its_session_in_one_short_line(agent: str) -> None:
    """R-C6"""
    (change,) = FOLDS[agent](PROMPT).sessions.values()
    assert change.titles["prompt"] == ("Fix this file: " + "some words " * 2000)[:199].strip() + "…"


@pytest.mark.parametrize("agent", FOLDS)
def test_a_prompt_of_nothing_is_no_title(agent: str) -> None:
    (change,) = FOLDS[agent](" \n\t").sessions.values()
    assert "prompt" not in change.titles


PLAN = "Implement the following plan:\n\n# Plan: Fix the till\n\n## Context\n\nIt is slow.\n"


@pytest.mark.parametrize("agent", FOLDS)
def test_a_plan_titles_its_session_with_its_heading(agent: str) -> None:
    """R-C6"""
    (change,) = FOLDS[agent](PLAN).sessions.values()
    assert change.titles["prompt"] == "Fix the till"


@pytest.mark.parametrize(
    ("text", "title"),
    [
        (" ".join(PLAN.split()), "Fix the till"),
        ("# Fix the till\nIt is slow.", "Fix the till"),
        ("# Implementation plan\n\n## Context\nThe till is slow.", "The till is slow."),
        ("# Plan", "Plan"),
        ("Implement the following plan:", "Implement the following plan:"),
        ("Implement this plan and show me", "Implement this plan and show me"),
        ("Follow the plan: make it fast", "make it fast"),
        ("<pasted_text id='7'>\nCount the files\n</pasted_text>", "Count the files"),
        ("<task>Count</task> the files", "Count the files"),
        ("<objective>\nFind the notes\n</objective>", "Find the notes"),
        ("Look at the code for the following user objective:\n<objective>\nFind it\n</objective>", "Find it"),
        ('<image name=[Image #1] path="/a/b.png">\n</image>\nWhat is on it?', "What is on it?"),
        ("Why is this empty: <div></div>", "Why is this empty: <div></div>"),
        ("a:" * 5_000 + "<task", "a:" * 99 + "a…"),
        ("<div>Hello</div> is too wide", "<div>Hello</div> is too wide"),
        ("#12 is back", "#12 is back"),
        ('"Count the lines"', "Count the lines"),
        ("\u201cCount the lines\u201d\n", "Count the lines"),
        ('"a" is not "b"', '"a" is not "b"'),
        ('"', '"'),
        ("Fix a < b", "Fix a < b"),
        ("# " * 20_000, ""),
        ("<a-b>" * 20_000, ""),
    ],
)
def test_a_title_is_the_first_meaningful_words(text: str, title: str) -> None:
    assert title_from(text) == title
    assert title_from(title) == title


def test_a_title_has_no_marks_of_an_image() -> None:
    """R-C6: Codex puts tags around the image, in texts of their own or in that of the prompt."""
    mark = '<image name=[Image #1] path="/a/b.png">'
    for texts in ([mark, "</image>", "What is on it?"], [f"{mark}\n</image>\nWhat is on it?"]):
        content = [{"type": "input_text", "text": words} for words in texts]
        gathered = codex_files.fold(codex_files.meta(), codex_files.item("message", role="user", content=content))
        (change,) = gathered.sessions.values()
        assert change.titles["prompt"] == "What is on it?"


def test_an_editor_puts_what_is_open_before_the_prompt() -> None:
    text = "# Context from my IDE setup:\n\n## Active file: a.py\n\n## My request for Codex:\nFix the till\n"
    (change,) = FOLDS["codex"](text).sessions.values()
    assert change.titles["prompt"] == "Fix the till"


def test_a_title_is_made_of_the_beginning_of_a_text() -> None:
    assert title_from("word " * 1_000_000) == ("word " * 40).strip()[:199].strip() + "…"
    assert title_from("x" * 200) == "x" * 200
    assert title_from("x" * 201) == "x" * 199 + "…"
    assert title_from("\u200b\n") == ""
