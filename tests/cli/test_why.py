"""`turnlog why`: a line, a commit and a pull request, and what is said where nothing is found."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from support.cli_runner import Command, call
from support.made_repository import REMOTE, MadeRepository, Session


@pytest.fixture
def run() -> Command:
    return call


@pytest.fixture
def made(home: Path, monkeypatch: pytest.MonkeyPatch) -> MadeRepository:
    """A clone with a commit of a person and one of a session, and the session in the user's store."""
    repository = MadeRepository(home / "shop", home / ".claude")
    repository.write("till.py", ["total = 0", "rate_of_the_till = 3"])
    repository.commit_by_hand("Begin")
    session = Session(repository, "Say what the tax is")
    session.edit("till.py", [], ["tax_of_the_till = rate_of_the_till * 7"])
    session.commit("Add the tax")
    session.open_pull_request(12)
    session.save()
    monkeypatch.chdir(repository.folder)
    return repository


def reported(run: Command, *arguments: str) -> dict[str, Any]:
    result = run("why", "--json", *arguments)
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def test_a_line_leads_to_its_session_and_prompt(run: Command, made: MadeRepository) -> None:
    shown = run("why", "till.py:3")
    assert shown.exit_code == 0, shown.stderr
    lines = shown.stdout.splitlines()
    assert lines[0] == f"{made.head()[:10]} Add the tax"
    assert "claude-code:" in lines[3]
    assert "turn 1" in lines[3]
    assert lines[4].strip() == "exact: its git commit printed the hash"
    assert lines[5].strip() == "prompt: Say what the tax is"


def test_a_file_says_where_each_line_came_from(run: Command, made: MadeRepository) -> None:
    found = reported(run, "till.py")
    assert [(each["first"], each["last"], each["link"] and each["link"]["prompt"]) for each in found["lines"]] == [
        (1, 2, None),
        (3, 3, "Say what the tax is"),
    ]
    assert "1-2" in run("why", "till.py").stdout


def test_a_commit_and_a_pull_request_lead_to_the_session(run: Command, made: MadeRepository) -> None:
    for subject in ("HEAD", made.head()[:8], "#12", f"{REMOTE}/pull/12"):
        [link] = reported(run, subject)["links"]
        assert (link["confidence"], link["turn"]) == ("exact", 1)
    assert reported(run, "HEAD")["commit"]["hash"] == made.head()


def test_a_path_may_begin_in_the_clone_that_is_named(
    run: Command, made: MadeRepository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = reported(run, "till.py:1")
    monkeypatch.chdir(tmp_path)
    assert reported(run, "till.py:1", "--repository", str(made.folder)) == here


def test_a_file_of_no_session_says_how_to_look_for_possible_ones(run: Command, made: MadeRepository) -> None:
    made.write("hand.py", ["by_hand = 1"])
    made.commit_by_hand("Add")
    assert run("why", "hand.py").stderr.rstrip().endswith("One line may still have a possible session: hand.py:1.")


def test_silence_says_what_it_is(run: Command, made: MadeRepository) -> None:
    silent = run("why", "HEAD~1")
    assert (silent.exit_code, "No session that was read" in silent.stderr) == (0, True)
    assert "One line" not in silent.stderr
    for folder, year in (("-later", 2027), ("-earlier", 2025)):
        shutil.copytree(next((made.home / "projects").iterdir()), made.home / "projects" / folder)
        [log] = (made.home / "projects" / folder).iterdir()
        other = "a" * 8 + log.stem[8:-4] + str(year)
        log.with_stem(other).write_text(log.read_text().replace(log.stem, other).replace('"2026-11-', f'"{year}-11-'))
        log.unlink()
    assert "The oldest session is of 2025-11-" in run("why", "HEAD~1").stderr
    made.write("till.py", ["total = 1"])
    made.commit_by_hand("Bump", author="renovate[bot]", email="renovate@example.org")
    assert "calls itself a bot" in run("why", "HEAD").stderr


def test_what_is_not_there_is_an_error(run: Command, made: MadeRepository, tmp_path: Path) -> None:
    for subject, reason in (
        ("README.md", "there is no file or commit README.md in "),
        ("--output=/tmp/x", "No such option"),
        ("till.py:99", "there is no line 99 in till.py: it has 3 lines"),
        ("till.py:0", "there is no line 0 in till.py"),
    ):
        refused = run("why", subject)
        assert refused.exit_code != 0
        assert reason in refused.stderr
    (tmp_path / "nowhere").mkdir()
    refused = run("why", "HEAD", "--repository", str(tmp_path / "nowhere"))
    assert (refused.exit_code, "is in no git repository" in refused.stderr) == (3, True)


def test_a_program_that_the_clone_names_is_not_run(run: Command, made: MadeRepository) -> None:
    """A clone from elsewhere may carry settings that run programs."""
    marker = made.folder.parent / "was-run"
    script = made.folder.parent / "program"
    script.write_text(f"#!/bin/sh\ntouch {marker}\n")
    script.chmod(0o755)
    for name in ("core.fsmonitor", "diff.external", "core.pager", "diff.x.textconv", "filter.x.clean", "gpg.program"):
        made.git("config", name, str(script))
    made.git("config", "log.showSignature", "true")
    (made.folder / ".git/info").mkdir(exist_ok=True)
    (made.folder / ".git/info/attributes").write_text("*.py diff=x filter=x\n")
    reported(run, "till.py")
    reported(run, "HEAD")
    assert not marker.exists()
