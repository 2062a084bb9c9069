"""What a person typed is told from what the CLI and its hooks say in the person's place."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.gemini_files import DATA, fold, header, message, response, user
from turnlog.agents.gemini_cli.messages import BEGINNINGS
from turnlog.logs import read_session
from turnlog.model import FilePart, Origin, ReasoningPart, TextPart, ToolCallPart
from turnlog.model.message import command_line

PAGE = (Path(__file__).parents[3] / "docs" / "formats" / "gemini-cli.md").read_text()
HOOKED = "<hook_context>hook says BeforeAgent</hook_context>"


def test_messages_of_a_recorded_session_have_their_origins() -> None:
    """0.61 in a terminal and without one: hooks at the start and at each prompt, a shell escape, plan mode, sound."""
    (path,) = (DATA / "versions" / "0.61.0-said").rglob("*.jsonl")
    history = read_session(path)
    said = [
        (message.role, message.origin and str(message.origin), place.turn)
        for message, place in zip(history.messages, history.memberships, strict=True)
        if message.role != "assistant"
    ]
    assert said == [
        ("developer", "harness", None),
        ("developer", "harness", None),
        ("user", "prompt", 1),
        ("user", "shell", 2),
        ("user", "prompt", 3),
        ("developer", "harness", 3),
        ("user", "prompt", 4),
        ("developer", "harness", 4),
        ("developer", "harness", 4),
        ("user", "prompt", 5),
        ("user", "prompt", 6),
        ("user", "prompt", 7),
        ("user", "prompt", 8),
        ("developer", "harness", 8),
        ("developer", "harness", 8),
    ]
    assert (history.session.title, history.session.usage.calls, history.session.usage.unknown_calls) == ("First", 10, 0)
    shell = next(message for message in history.messages if message.origin is Origin.SHELL)
    assert command_line(shell) == "! echo from-bang; ls nosuch"
    files = [message for message in history.messages if isinstance(message.parts[0], FilePart)]
    assert [part.media_type for message in files for part in message.parts if isinstance(part, FilePart)] == [
        "audio/wav",
        "audio/wav",
    ]
    assert [message.parts[0].type for message in history.messages if message.role == "developer"].count(
        "reasoning"
    ) == 0
    texts = [part for message in history.messages for part in message.parts if isinstance(part, TextPart)]
    assert {part.text.strip() for part in texts if part.is_synthetic} == {
        "<hook_context>hook says SessionStart</hook_context>",
        HOOKED,
    }
    last = [message for message in history.messages if message.origin is Origin.PROMPT][-1]
    assert [part.text for part in last.parts if isinstance(part, TextPart) and not part.is_synthetic] == ["Headless"]
    kinds = {type(part) for message in history.messages for part in message.parts}
    assert kinds == {TextPart, ReasoningPart, ToolCallPart, FilePart}


@pytest.mark.parametrize(("beginning", "origin"), BEGINNINGS.items())
def test_a_text_is_known_by_how_it_begins(beginning: str, origin: Origin) -> None:
    for words in (beginning + " more", [{"text": beginning + " more"}, {"text": HOOKED}]):
        assert message(fold(header(), user("u", words)), "user:u").origin is origin
    assert message(fold(header(), user("u", "So: " + beginning)), "user:u").origin is Origin.PROMPT
    first = beginning.partition("\n")[0]
    assert f"`{first}" in PAGE


def test_a_shell_command_is_as_it_was_typed() -> None:
    ran = (
        "I ran the following shell command:\n```sh\necho \\`date\\` \\\\n\n```\n\nThis produced the following result:\n"
    )
    assert command_line(message(fold(header(), user("u", ran + "```\nx\n```")), "user:u")) == "! echo `date` \\n"
    cut = message(fold(header(), user("u", "I ran the following shell command:\n```sh\nls")), "user:u")
    assert (cut.origin, command_line(cut)) == (Origin.SHELL, None)


def test_results_with_a_text_are_the_harness() -> None:
    beside = message(fold(header(), user("u", [response("c", "x"), {"text": "words"}])), "user:u")
    assert beside.origin is Origin.HARNESS
