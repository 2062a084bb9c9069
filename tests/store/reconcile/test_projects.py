"""Which project a session belongs to: that of the folder in its log, or that of its parent."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.toy_agent import line
from support.toy_store import ToyStore, in_any_order
from turnlog.errors import ConflictError, NotFoundError
from turnlog.store import open_store
from turnlog.store.base import UsageFilter
from turnlog.store.search.base import SearchFilter, search_path
from turnlog.store.search.indexer import Indexer
from turnlog.store.search.searcher import Searcher
from turnlog.sync.rebuild import rebuild

PROMPT = line(kind="prompt", id="r1", message="m1", text="please", at=1)
FILES = {
    "p.log": line(kind="prompt", id="r0", message="m0", text="begin", at=0, cwd="/w/shop")
    + line(kind="spawn", id="r2", call="c1", session="toy:child", at=2),
    "child.log": line(kind="prompt", id="c1", message="mc", text="look", at=3)
    + line(kind="text", id="c2", message="mt", text="marmalade", at=4, model="opus", tokens=[10, 5])
    + line(kind="spawn", id="c3", call="c9", session="toy:grandchild", at=4),
    "grandchild.log": line(kind="prompt", id="g1", message="mg", text="deeper", at=5),
}
ELSEWHERE = {
    "p.log": FILES["p.log"],
    "child.log": line(kind="prompt", id="c1", message="mc", text="look", at=3, cwd="/w/till"),
}


def projects(store: ToyStore) -> dict[str, str | None]:
    return dict(
        store.rows("SELECT s.external_id, p.path FROM sessions s LEFT JOIN projects p ON p.key = s.project_key")
    )


def test_a_subagent_without_a_folder_belongs_to_the_project_of_its_parent(tmp_path: Path) -> None:
    """In whatever order their files are read, and at any depth."""

    def look(store: ToyStore) -> None:
        assert projects(store) == dict.fromkeys(("p", "child", "grandchild"), "/w/shop")

    in_any_order(tmp_path, FILES, look)


def test_a_subagent_with_a_folder_belongs_there(tmp_path: Path) -> None:
    def look(store: ToyStore) -> None:
        assert projects(store) == {"p": "/w/shop", "child": "/w/till"}

    in_any_order(tmp_path, ELSEWHERE, look)


def test_a_folder_that_the_parent_names_later_is_that_of_its_subagents(tmp_path: Path) -> None:
    """Also in usage and in search, which had them under no project."""
    with ToyStore(tmp_path) as store:
        for name in ("child.log", "grandchild.log"):
            store.add(name, FILES[name])
        assert projects(store) == {"child": None, "grandchild": None}
        with Indexer(store.path, search_path(store.path)) as indexer:
            indexer.catch_up()
            store.add("p.log", FILES["p.log"])
            indexer.catch_up()
        with open_store(store.path) as opened:
            assert [row.name for row in opened.usage("project").rows] == ["/w/shop"]
            assert opened.usage("project", UsageFilter(project="shop")).totals.calls == 1
        with Searcher(store.path, search_path(store.path)) as searcher:
            found = searcher.search("marmalade", SearchFilter(project="shop"))
            assert [hit.message_id for hit in found.hits] == ["mt"]


def test_a_rebuild_keeps_the_projects(tmp_path: Path) -> None:
    with ToyStore(tmp_path) as store:
        for name, data in FILES.items():
            store.add(name, data)
        rebuild(store.path, agents=[store.agent])
        assert projects(store) == dict.fromkeys(("p", "child", "grandchild"), "/w/shop")


def worktree(path: str) -> bytes:
    return line(kind="prompt", id="w1", message="mw", text="begin", at=0, cwd=path)


def test_a_worktree_belongs_to_the_project_of_its_repository(tmp_path: Path) -> None:
    """Whether or not a session ran in the repository itself; the session says which worktree it was."""
    with ToyStore(tmp_path) as store:
        store.add("w.log", worktree("/w/shop/.claude/worktrees/till"))
        store.add("p.log", FILES["p.log"])
        assert projects(store) == {"w": "/w/shop", "p": "/w/shop"}
        with open_store(store.path) as opened:
            assert [(found.name, found.sessions) for found in opened.projects()] == [("shop", 2)]
            assert opened.session("toy:w").worktree == "till"
            assert opened.session("toy:p").worktree is None
            opened.forget("toy:p")
            assert projects(store) == {"w": "/w/shop"}
        rebuild(store.path, agents=[store.agent])
        assert projects(store) == {"w": "/w/shop"}


def test_a_worktree_that_is_gone_from_the_disk_keeps_its_repository(tmp_path: Path) -> None:
    shop, folder = tmp_path / "shop", tmp_path / "away"
    folder.mkdir()
    (folder / ".git").write_text(f"gitdir: {shop}/.git/worktrees/away\n")
    with ToyStore(tmp_path) as store:
        store.add("w.log", worktree(str(folder)))
        (folder / ".git").unlink()
        folder.rmdir()
        rebuild(store.path, agents=[store.agent])
        assert projects(store) == {"w": str(shop)}


def test_folders_of_an_older_store_are_looked_at_with_the_next_transaction(tmp_path: Path) -> None:
    with ToyStore(tmp_path) as store:
        store.add("w.log", worktree("/w/shop/.worktrees/fix"))
        store.connection.execute("UPDATE sessions SET project_key = folder_key")
        store.connection.execute("UPDATE projects SET repository_key = NULL, worktree = NULL")
        store.add("p.log", FILES["p.log"])
        assert projects(store) == {"w": "/w/shop", "p": "/w/shop"}


@pytest.fixture
def two(tmp_path: Path) -> Iterator[ToyStore]:
    """A store with a session in `/w/shop`, whose subagent has no folder, and one in a worktree of `/old/shop`."""
    with ToyStore(tmp_path) as store:
        for name, data in FILES.items():
            store.add(name, data)
        store.add("w.log", worktree("/old/shop/.worktrees/fix"))
        yield store


def test_a_project_is_named_as_the_user_says(two: ToyStore) -> None:
    """Until they take the name back; a rebuild and later sessions keep it."""
    with open_store(two.path) as store:
        assert store.rename_project("/w/shop", " Web\nshop ").name == "Web shop"
        rebuild(two.path, agents=[two.agent])
        two.add("later.log", line(kind="prompt", id="x1", message="mx", text="again", at=9, cwd="/w/shop"))
        found = store.session("toy:later").project
        assert found is not None
        assert found.name == "Web shop"
        assert store.rename_project("Web shop", None).name == "shop"


def test_a_merged_project_counts_to_the_other_one(two: ToyStore, tmp_path: Path) -> None:
    """Its worktrees, subagents and later sessions too; in lists, usage and search, and after a rebuild."""
    with Indexer(two.path, search_path(two.path)) as indexer:
        indexer.catch_up()
        with open_store(two.path) as store:
            assert store.merge_projects("/w/shop", "/old/shop").merged == ("/w/shop",)
            assert {found.path: found.sessions for found in store.projects()} == {"/old/shop": 2}
            assert store.usage("project").rows[0].name == "/old/shop"
            rebuild(two.path, agents=[two.agent])
            two.add("later.log", line(kind="prompt", id="x1", message="mx", text="again", at=9, cwd="/w/shop"))
            assert set(projects(two).values()) == {"/old/shop"}
        indexer.catch_up()
    with Searcher(two.path, search_path(two.path)) as searcher:
        found = searcher.search("marmalade", SearchFilter(project="/old/shop"))
        assert [hit.message_id for hit in found.hits] == ["mt"]


def test_what_was_merged_can_be_split_again(two: ToyStore) -> None:
    before = projects(two)
    with open_store(two.path) as store:
        store.merge_projects("/w/shop", "/old/shop")
        assert store.split_project("/w/shop").merged == ()
        assert projects(two) == before
        with pytest.raises(NotFoundError, match="no project /w/shop is merged"):
            store.split_project("/w/shop")


def test_merged_projects_go_along_when_theirs_is_merged(two: ToyStore) -> None:
    two.add("third.log", line(kind="prompt", id="t1", message="m3", text="third", at=9, cwd="/w/third"))
    with open_store(two.path) as store:
        store.merge_projects("/w/shop", "/old/shop")
        assert store.merge_projects("/old/shop", "/w/third").merged == ("/old/shop", "/w/shop")
        with pytest.raises(NotFoundError, match="/w/shop is merged into /w/third"):
            store.merge_projects("/w/third", "/w/shop")


def test_a_project_that_is_not_there_or_ambiguous_is_an_error(two: ToyStore) -> None:
    with open_store(two.path) as store:
        with pytest.raises(ConflictError, match="2 projects are named shop"):
            store.rename_project("shop", "x")
        with pytest.raises(ConflictError, match="itself"):
            store.merge_projects("/w/shop", "/w/shop")
        with pytest.raises(NotFoundError):
            store.rename_project("/w/nothing", "x")


def test_changed_projects_are_announced(two: ToyStore) -> None:
    with open_store(two.path) as store:
        before = store.last_change()
        store.merge_projects("/w/shop", "/old/shop")
        assert {change.session_id for change in store.changes(before)} == {"toy:p", "toy:child", "toy:grandchild"}
