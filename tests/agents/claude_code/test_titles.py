"""Where a title comes from that is not the first prompt: another file (up to 2.0), a command, a teammate."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from support.claude_files import AGENT, SESSION, Log, fold, lines, text
from turnlog.agents.base import SourceKind
from turnlog.model import Message, Origin
from turnlog.store import open_store
from turnlog.store.sqlite.forget import forget_for_good
from turnlog.sync.rebuild import rebuild
from turnlog.sync.syncer import sync

OTHER = "22222222-2222-4222-8222-222222222222"


def logs() -> tuple[bytes, bytes]:
    """A session, and another whose file begins with the first one's title."""
    log = Log("1.0.35")
    records = [log.user("Hello"), log.assistant("msg_1", text("Hi."))]
    later = Log("1.0.35", sessionId=OTHER)
    later.count = 10
    title = {"type": "summary", "summary": "A greeting", "leafUuid": records[-1]["uuid"]}
    return lines(*records), lines(title, later.user("Something else"))


def titles(store: Path) -> dict[str, tuple[str | None, str | None]]:
    with open_store(store) as opened:
        return {found.external_id: (found.title, found.title_source) for found in opened.sessions().items}


def write(home: Path, name: str, data: bytes) -> None:
    folder = home / "projects" / "-home-dev-proj"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.jsonl").write_bytes(data)


def read(folder: Path) -> None:
    sync(folder / "turnlog.db", roots=[folder / "home"], agents=[AGENT])


EXPECTED: dict[str, Any] = {SESSION: ("A greeting", "summary"), OTHER: ("Something else", "prompt")}


def test_a_session_has_the_title_that_is_in_another_file(tmp_path: Path) -> None:
    """R-C6: in whatever order the files are read, and when everything is made anew."""
    files = dict(zip((SESSION, OTHER), logs(), strict=True))
    for number, order in enumerate([*permutations(files), None]):
        folder = tmp_path / str(number)
        for name in order or files:
            write(folder / "home", name, files[name])
            if order is not None:
                read(folder)
        read(folder)
        assert titles(folder / "turnlog.db") == EXPECTED
        rebuild(folder / "turnlog.db")
        assert titles(folder / "turnlog.db") == EXPECTED


def test_the_title_is_of_a_conversation_that_ended_there(tmp_path: Path) -> None:
    """Once it goes on, what it was called is the title of its beginning: as if all had been read at once."""
    one, other = logs()
    log = Log("1.0.35")
    log.count = 2
    write(tmp_path / "home", SESSION, one)
    write(tmp_path / "home", OTHER, other)
    read(tmp_path)
    write(tmp_path / "home", SESSION, one + lines(log.user("More")))
    read(tmp_path)
    assert titles(tmp_path / "turnlog.db")[SESSION] == ("Hello", "prompt")


def test_a_rewritten_file_without_a_title_removes_it(tmp_path: Path) -> None:
    one, other = logs()
    write(tmp_path / "home", SESSION, one)
    write(tmp_path / "home", OTHER, other)
    read(tmp_path)
    write(tmp_path / "home", OTHER, other[other.index(b"\n") + 1 :])
    read(tmp_path)
    assert titles(tmp_path / "turnlog.db")[SESSION] == ("Hello", "prompt")


def test_a_forgotten_leaf_titles_no_other_session(tmp_path: Path) -> None:
    one, other = logs()
    write(tmp_path / "home", SESSION, one)
    write(tmp_path / "home", OTHER, other)
    read(tmp_path)
    forget_for_good(tmp_path / "turnlog.db", f"claude-code:{OTHER}")
    read(tmp_path)
    assert titles(tmp_path / "turnlog.db") == {SESSION: ("Hello", "prompt")}
    assert b"A greeting" not in (tmp_path / "turnlog.db").read_bytes()


def test_a_file_of_nothing_but_titles_is_no_session_in_the_list(tmp_path: Path) -> None:
    """Each start that comes to nothing leaves one."""
    one, other = logs()
    write(tmp_path / "home", SESSION, one)
    write(tmp_path / "home", OTHER, other[: other.index(b"\n") + 1])
    read(tmp_path)
    assert titles(tmp_path / "turnlog.db") == {SESSION: ("A greeting", "summary")}
    with open_store(tmp_path / "turnlog.db") as opened:
        assert opened.session(f"claude-code:{OTHER}").counts.events == 1


# -- sessions that nobody prompted


def command(log: Log, name: str, arguments: str = "") -> dict[str, Any]:
    words = f"<command-message>{name[1:]} is running…</command-message>\n<command-name>{name}</command-name>"
    return log.user(f"{words}\n<command-args>{arguments}</command-args>" if arguments else words)


def title_in_store(folder: Path, *records: dict[str, Any]) -> tuple[str | None, str | None]:
    """The title of a session that is read record by record, which must be the one it has when it is read at once."""
    found: set[tuple[str | None, str | None]] = set()
    for place, steps in ((folder / "once", [len(records)]), (folder / "slowly", range(1, len(records) + 1))):
        for count in steps:
            write(place / "home", SESSION, lines(*records[:count]))
            read(place)
        found.add(titles(place / "turnlog.db")[SESSION])
    (title,) = found
    return title


def test_an_answered_command_titles_a_session_without_prompts(tmp_path: Path) -> None:
    """R-C6: `/clear` and its kin, which the model never saw, say nothing of the session."""
    log = Log("1.0.128")
    records = [
        command(log, "/clear"),
        command(log, "/review", "the  parser,\nplease"),
        log.user("You are an expert reviewer…", isMeta=True),
        log.assistant("msg_1", text("It is fine.")),
        command(log, "/compact"),
    ]
    assert title_in_store(tmp_path, *records) == ("/review the parser, please", "opening")


def test_a_prompt_titles_a_session_that_a_command_began(tmp_path: Path) -> None:
    log = Log("1.0.128")
    records = [command(log, "/init"), log.assistant("msg_1", text("Done.")), log.user("Fix the parser")]
    assert title_in_store(tmp_path, *records) == ("Fix the parser", "prompt")


ENDED = (
    "<bash-notification>\n<shell-id>b1</shell-id>\n<output-file>/tmp/b1.output</output-file>\n<status>completed</status>\n"
    '<summary>Background command "make" completed</summary>\nRead the output file.\n</bash-notification>'
)


@pytest.mark.parametrize(
    ("opening", "title"),
    [
        ("<bash-input>git  status</bash-input>", "! git status"),
        (ENDED, 'Background command "make" completed'),
        (ENDED.replace("bash-n", "task-n"), 'Background command "make" completed'),
    ],
)
def test_a_session_without_prompts_is_titled_by_its_first_tags(opening: str, title: str, tmp_path: Path) -> None:
    """R-C6"""
    log = Log("2.0.64")
    records = [log.user(opening), log.assistant("msg_1", text("Seen."))]
    assert title_in_store(tmp_path / "one", *records) == (title, "opening")
    assert title_in_store(tmp_path / "two", *records, log.user("Go on")) == ("Go on", "prompt")


def test_a_notification_of_a_command_begins_no_turn() -> None:
    log = Log("2.0.64")
    gathered = fold(log.user("Build it"), log.assistant("msg_1", text("Built.")), log.user(ENDED))
    assert len(of_origin(gathered.messages, Origin.NOTIFICATION)) == 1
    assert {place.turn for place in gathered.placements.values()} == {1}


def test_a_command_alone_is_no_title(tmp_path: Path) -> None:
    log = Log("1.0.128")
    assert title_in_store(tmp_path, command(log, "/model")) == (None, None)


TEAMMATE = (
    '<teammate-message teammate_id="team-lead" color="blue" summary="review">\nReview the parser.\n</teammate-message>'
)


def of_origin(messages: Any, origin: Origin) -> list[Message]:
    return [message for message in messages.values() if message.origin is origin]


@pytest.mark.parametrize("content", [TEAMMATE, [text(TEAMMATE)], "\n" + TEAMMATE + "\n\n" + TEAMMATE])
def test_what_a_teammate_says_is_no_prompt(content: Any, tmp_path: Path) -> None:
    """R-C6: 2.1.39 to 2.1.42 write it as a user's record."""
    log = Log("2.1.41")
    records = [
        log.user("Build it with a team"),
        log.assistant("msg_1", text("They work.")),
        log.user(content),
        log.assistant("msg_2", text("The parser is reviewed.")),
    ]
    gathered = fold(*records)
    (said,) = of_origin(gathered.messages, Origin.NOTIFICATION)
    assert said.role == "developer"
    assert {place.turn for place in gathered.placements.values()} == {1}
    assert title_in_store(tmp_path, *records) == ("Build it with a team", "prompt")


def test_a_session_that_a_teammate_began_is_called_after_what_it_said(tmp_path: Path) -> None:
    """Not after the tag around it; a prompt comes before it."""
    log = Log("2.1.41")
    records = [log.user(TEAMMATE), log.assistant("msg_1", text("Reviewed."))]
    assert title_in_store(tmp_path / "one", *records) == ("Review the parser.", "opening")
    more = [*records, log.user("And the lexer?")]
    assert title_in_store(tmp_path / "two", *more) == ("And the lexer?", "prompt")


def test_a_teammate_prompts_a_subagent_once() -> None:
    log = Log("2.1.41", isSidechain=True, agentId="a1")
    records = [
        log.user(TEAMMATE),
        log.assistant("msg_1", text("Reviewed.")),
        log.user(TEAMMATE),
        log.assistant("msg_2", text("Again.")),
    ]
    gathered = fold(*records, kind=SourceKind.SUBAGENT)
    assert len(of_origin(gathered.messages, Origin.SUBAGENT_PROMPT)) == 1
    assert len(of_origin(gathered.messages, Origin.NOTIFICATION)) == 1
    assert gathered.sessions[f"claude-code:{SESSION}.a1"].titles["prompt"] == "Review the parser."


# -- one line


def test_a_title_is_one_line_of_bounded_length(tmp_path: Path) -> None:
    """R-C6: whatever source it is from."""
    log = Log()
    prompt = log.user("Fix\n\x1b[31mthis\u202e   file:\n" + "words and\n" * 3000)
    title, source = title_in_store(tmp_path / "prompt", prompt)
    assert (source, title) == ("prompt", ("Fix this file: " + "words and " * 3000)[:199].strip() + "…")
    given = {"type": "custom-title", "customTitle": "My\ttitle\n" * 100, "sessionId": SESSION}
    title, source = title_in_store(tmp_path / "custom", prompt, given)
    assert (source, title) == ("custom", ("My title " * 100)[:199].strip() + "…")


@pytest.mark.parametrize(
    ("said", "title"),
    [
        ('{"type": "task_assignment", "taskId": "7", "subject": "Add a red button"}', "Add a red button"),
        ('{"type": "message", "message": {"text": "Look at the tests"}}', "Look at the tests"),
        ('{"type": "shutdown_request", "requestId": "1"}', "shutdown request"),
        ('[{"type": "text", "text": "Fix the build"}]', "Fix the build"),
        ('{"content": [{"type": "image"}, {"type": "text", "text": "Fix the build"}]}', "Fix the build"),
        ('{"message": "{\\"subject\\": \\"Fix the build\\"}"}', "Fix the build"),
        ('{"message": "{not json", "reason": "Stop now"}', "Stop now"),
        ('{"a": [1, 2]}', '{"a": [1, 2]}'),
        ("[1, 2]", "[1, 2]"),
        ("{not json} at all", "{not json} at all"),
    ],
)
def test_a_task_that_is_json_gives_its_subject_as_the_title(said: str, title: str) -> None:
    log = Log("2.1.36")
    prompt = f'<teammate-message teammate_id="team-lead">\n{said}\n</teammate-message>'
    gathered = fold(log.user(prompt, isSidechain=True), kind=SourceKind.SUBAGENT)
    (change,) = gathered.sessions.values()
    assert change.titles["prompt"] == title
