"""The repository that a folder belongs to: by its path, and by the disk."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from turnlog.store.worktrees import find_worktree, worktree_in


@pytest.mark.parametrize(
    ("path", "repository", "name"),
    [
        ("/w/shop/.worktrees/fix", "/w/shop", "fix"),
        ("/w/shop/.worktrees/fix/src/app", "/w/shop", "fix"),
        ("/w/shop/.claude/worktrees/till", "/w/shop", "till"),
        ("/w/shop/.claude/worktrees/till/.worktrees/deep", "/w/shop", "till"),
        (r"C:\w\shop\.claude\worktrees\till\src", r"C:\w\shop", "till"),
    ],
)
def test_a_path_in_a_folder_of_worktrees_names_its_repository(path: str, repository: str, name: str) -> None:
    assert worktree_in(path) == (repository, name)


@pytest.mark.parametrize(
    "path", ["", "/w/shop", "/.worktrees/fix", "/w/shop/.worktrees", "/w/shop/.worktrees/", "/w/shop/worktrees/fix"]
)
def test_other_paths_name_none(path: str) -> None:
    assert worktree_in(path) is None


def git(folder: Path, *words: str) -> None:
    user = ("-c", "user.name=Dev", "-c", "user.email=dev@example.org")
    subprocess.run(("git", *user, *words), cwd=folder, check=True, capture_output=True)


def test_the_disk_names_the_repository_of_a_worktree_anywhere(tmp_path: Path) -> None:
    shop, elsewhere = tmp_path / "shop", tmp_path / "away" / "shop-fix"
    shop.mkdir()
    git(shop, "init", "-q")
    git(shop, "commit", "-q", "--allow-empty", "-m", "Begin")
    git(shop, "worktree", "add", "-q", str(elsewhere))
    (elsewhere / "src").mkdir()
    for folder in (elsewhere, elsewhere / "src"):
        assert find_worktree(str(folder)) == (str(shop), "shop-fix")
    for folder in (shop, tmp_path, tmp_path / "gone"):
        assert find_worktree(str(folder)) is None


def test_a_worktree_of_a_bare_repository_belongs_to_the_folder_around_it(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "--bare", "shop/.bare")
    folder = tmp_path / "shop" / "main"
    folder.mkdir()
    (folder / ".git").write_text("gitdir: ../.bare/worktrees/main\n")
    assert find_worktree(str(folder)) == (str(tmp_path / "shop"), "main")


@pytest.mark.parametrize("pointer", ["", "gitdir: ../.git/modules/lib", "x" * 100_000])
def test_a_pointer_to_something_else_is_no_worktree(tmp_path: Path, pointer: str) -> None:
    (tmp_path / ".git").write_text(pointer)
    assert find_worktree(str(tmp_path)) is None
