"""Commits, pull requests and lines of a made repository are linked to the sessions that they truly came from."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from support.made_repository import REMOTE, MadeRepository, Session, make_repository
from turnlog.commits.links import LinkFinder, OriginLink
from turnlog.commits.printed import pull_request
from turnlog.commits.repository import Repository
from turnlog.commits.work import session_work
from turnlog.store import open_store
from turnlog.store.base import Store
from turnlog.store.search.base import search_path
from turnlog.store.search.indexer import Indexer
from turnlog.store.search.searcher import Searcher
from turnlog.sync.syncer import sync


class Made(NamedTuple):
    repository: MadeRepository
    store: Store
    searcher: Searcher

    @property
    def finder(self) -> LinkFinder:
        return LinkFinder(self.store, self.searcher, Repository(self.repository.folder))

    def links(self, revision: str) -> list[OriginLink]:
        return self.finder.of_commit(Repository(self.repository.folder).commit(revision))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Made]:
    folder = tmp_path_factory.mktemp("made")
    repository = make_repository(folder / "shop", folder / "claude")
    path = folder / "store.db"
    sync(path, roots=[folder / "claude"])
    with Indexer(path, search_path(path)) as indexer:
        indexer.catch_up()
    with open_store(path) as store, Searcher(path, search_path(path)) as searcher:
        yield Made(repository, store, searcher)


def bytes_below(folder: Path) -> dict[str, str]:
    """Every file, with its hash and the time of its last change."""
    return {
        str(file.relative_to(folder)): f"{hashlib.sha256(file.read_bytes()).hexdigest()} {file.stat().st_mtime_ns}"
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    }


def test_commits_lead_to_their_sessions_and_those_of_bots_to_none(made: Made) -> None:
    """40 commits by sessions, 20 by bots, 5 by a person: a wrong link would be worse than a missing one."""
    commits = made.repository.git("rev-list", "main").split()
    kinds = [made.repository.kinds[commit] for commit in commits]
    assert (kinds.count("by a bot"), kinds.count("by a person"), len(kinds)) == (20, 5, 65)
    before = bytes_below(made.repository.folder)
    wrong: list[str] = []
    for commit in commits:
        certain = {link.session_id for link in made.links(commit) if link.confidence != "possible"}
        if certain != made.repository.truth[commit]:
            wrong.append(f"{made.repository.kinds[commit]}: {made.repository.git('show', '-s', commit)}")
    assert not wrong, "\n".join(wrong)
    assert bytes_below(made.repository.folder) == before


@pytest.mark.parametrize(
    ("subject", "confidence", "reason"),
    [
        ("Add discount 1", "exact", "committed"),
        ("Add discount 3", "exact", "committed"),  # quietly: the next command printed the hash
        ("Add tax 1 and its docs", "exact", "amended"),
        ("Add tax 2", "exact", "rewritten"),  # amended by hand
        ("Count shelf 2, step 1", "exact", "rewritten"),  # rebased
        ("Receipts of till 0 (#10)", "exact", "opened"),
        ("Receipts of till 1", "content", "lines"),
        ("Squashed commit of the following:", "exact", "squashed"),
        ("Labels 1", "content", "lines"),  # by hand, from a whole file
        ("Labels 2", "content", "lines"),  # by hand, from an edit
    ],
)
def test_a_link_says_how_it_is_known(made: Made, subject: str, confidence: str, reason: str) -> None:
    lines = made.repository.git("log", "main", "--format=%H %s").splitlines()
    commit = next(line.split(" ", 1)[0] for line in lines if line.split(" ", 1)[1] == subject)
    [link] = made.links(commit)
    assert (link.confidence, link.reason) == (confidence, reason)


def test_a_link_names_the_turn_and_its_prompt(made: Made) -> None:
    lines = made.repository.git("log", "main", "--format=%H %s").splitlines()
    commit = next(line.split(" ", 1)[0] for line in lines if line.endswith("Add tax 3 and its docs"))
    [link] = made.links(commit)
    assert (link.turn, link.prompt) == (2, "Say it in the docs too")


def test_what_a_person_wrote_into_a_file_of_sessions_is_at_most_possible(made: Made) -> None:
    links = made.links("main")
    assert links
    assert {link.confidence for link in links} == {"possible"}


def test_lines_of_a_file_lead_to_the_edits_that_wrote_them(made: Made) -> None:
    ranges = made.finder.of_file("src/till.py")
    text = made.repository.lines("src/till.py")
    covered = [number for each in ranges for number in range(each.first, each.last + 1)]
    assert covered == list(range(1, len(text) + 1))
    found = {number: each.link for each in ranges for number in range(each.first, each.last + 1)}
    for number, line in enumerate(text, 1):
        # A bot took discount_11 back and brought it again: its lines are of the bot's commit.
        if ("def discount_" in line and "_11(" not in line) or "def label_" in line:
            link = found[number]
            assert link is not None
            name = line.split("_")[1].split("(")[0]
            assert link.prompt is not None
            assert link.prompt.endswith(f" {name}")
        if "def person_" in line or "_11(" in line or line == "def total(items):":
            assert found[number] is None


def test_a_line_that_is_not_committed_leads_to_the_edit_that_wrote_it(made: Made) -> None:
    path = made.repository.folder / "src/label_1.py"
    before = path.read_text()
    try:
        path.write_text(before + "something_that_nobody_logged = 1\n")
        number = len(before.splitlines())
        [old, new] = [
            *made.finder.of_file("src/label_1.py", number),
            *made.finder.of_file("src/label_1.py", number + 1),
        ]
    finally:
        path.write_text(before)
    assert old.link is not None
    assert (new.commit, new.link) == (None, None)


def test_a_pull_request_leads_to_who_opened_it(made: Made) -> None:
    wanted = pull_request(f"{REMOTE}/pull/13")
    assert wanted is not None
    [link] = made.finder.of_pull_request(wanted)
    assert (link.reason, link.prompt) == ("opened", "Print the receipt of till 3")
    assert made.finder.of_pull_request(wanted._replace(number=99)) == []
    assert made.finder.of_pull_request(wanted._replace(repository="forge.example/acme/other")) == []


def test_a_session_has_its_commits_and_pull_requests(made: Made) -> None:
    wanted = pull_request(f"{REMOTE}/pull/10")
    assert wanted is not None
    [link] = made.finder.of_pull_request(wanted)
    work = session_work(made.store, made.searcher, link.session_id)
    assert [commit.subject for commit in work.commits] == [f"Print receipt 0, part {step}" for step in range(3)]
    assert all(made.repository.git("cat-file", "-t", commit.hash) == "commit\n" for commit in work.commits)
    assert [(request.url, request.turn) for request in work.pull_requests] == [(f"{REMOTE}/pull/10", 1)]
    assert work.unindexed == 0


def test_a_note_and_a_trailer_that_name_a_session_are_exact(tmp_path: Path) -> None:
    made = MadeRepository(tmp_path / "shop", tmp_path / "claude")
    session = Session(made, "Think about names")
    session.save()
    made.write("a.txt", ["a line of a person"])
    made.commit_by_hand(f"By hand\n\nClaude-Session: https://example.org/code/{session.name}")
    made.write("a.txt", ["another line of a person"])
    made.commit_by_hand("By hand again")
    made.git("notes", "--ref=ai", "add", "-m", f"session {session.name}", "HEAD")
    path = tmp_path / "store.db"
    sync(path, roots=[tmp_path / "claude"])
    with open_store(path) as store, Searcher(path, search_path(path)) as searcher:
        repository = Repository(tmp_path / "shop")
        finder = LinkFinder(store, searcher, repository)
        for revision, reason in (("HEAD~1", "trailer"), ("HEAD", "note")):
            [link] = finder.of_commit(repository.commit(revision))
            assert (link.session_id, link.confidence, link.reason) == (f"claude-code:{session.name}", "exact", reason)
