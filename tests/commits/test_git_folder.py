"""No program that a clone names runs while its commits and lines are read; and what is read is what git says."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from turnlog.commits.repository import NOT_COMMITTED, Repository
from turnlog.errors import NotFoundError, SourceError
from turnlog.paths import find_program

_PLAIN = {
    "PATH": os.environ["PATH"],
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
    **{f"GIT_{who}_{what}": "a@example.com" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
}


def git(folder: Path, *arguments: str, **variables: str) -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=folder, env=_PLAIN | variables, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def made_clone(folder: Path, *options: str) -> Path:
    """A clone with two commits of `a.txt`, a note, a tag, and a third line that is not committed."""
    folder.mkdir(parents=True)
    git(folder, "init", "-q", "-b", "main", *options)
    for number, text in enumerate(("one\n", "one\ntwo\n"), 1):
        (folder / "a.txt").write_text(text)
        git(folder, "add", "a.txt")
        git(folder, "commit", "-qm", f"Add line {number} (#{number})")
    git(folder, "notes", "add", "-m", "a note")
    git(folder, "tag", "v1")
    (folder / "a.txt").write_text("one\ntwo\nthree\n")
    return folder


def read_all(folder: Path, file: str = "a.txt") -> None:
    """Ask everything that can be asked."""
    repository = Repository(folder)
    for line in repository.blame(file):
        commit = repository.commit("HEAD" if line.commit == NOT_COMMITTED else line.commit)
        repository.changes(commit)
        repository.added_earlier(commit, file, commit.authored_at)
        repository.file_before(commit.hash, file, commit.authored_at)
        repository.notes(commit)
    repository.with_number(1)
    assert repository.has("0" * 40) is None
    assert repository.roots
    assert not repository.remotes - {"example.com/a/b"}


@pytest.fixture
def marker(tmp_path: Path) -> Iterator[Path]:
    """A file that only the program `mark` next to it makes."""
    marker, program = tmp_path / "MARKER", tmp_path / "mark"
    program.write_text(f"#!/bin/sh\ntouch '{marker}'\ncat\n")
    program.chmod(0o755)
    yield marker
    assert not marker.exists()


ATTRIBUTES = "*.txt filter=x diff=y merge=y\n"

CONFIGURATIONS = {
    "clean": '[filter "x"]\n\tclean = {program}\n\trequired = true\n',
    "process": '[filter "x"]\n\tprocess = {program}\n',
    "smudge": '[filter "x"]\n\tsmudge = {program}\n',
    "text converter": '[diff "y"]\n\ttextconv = {program}\n',
    "diff of a driver": '[diff "y"]\n\tcommand = {program}\n',
    "external diff": "[diff]\n\texternal = {program}\n",
    "monitor": "[core]\n\tfsmonitor = {program}\n",
    "hooks": "[core]\n\thooksPath = {folder}\n",
    "pager": "[core]\n\tpager = {program}\n[pager]\n\tlog = {program}\n\tblame = {program}\n\tshow = {program}\n",
    "editor": "[core]\n\teditor = {program}\n",
    "signatures": "[log]\n\tshowSignature = true\n[gpg]\n\tprogram = {program}\n",
    "alias": "[alias]\n\tblame = !{program}\n\tlog = !{program}\n",
    "credentials": "[credential]\n\thelper = {program}\n",
    "missing objects": (
        "[core]\n\trepositoryFormatVersion = 1\n\tsshCommand = {program}\n\tgitProxy = {program}\n"
        '[extensions]\n\tpartialClone = origin\n[remote "origin"]\n\tpromisor = true\n'
        "\turl = ssh://example.com/a/b\n\tuploadpack = {program}\n"
        '[protocol]\n\tallow = always\n[protocol "ext"]\n\tallow = always\n'
    ),
}


@pytest.mark.parametrize(
    ("place", "configuration"),
    [
        *(("config", text) for text in CONFIGURATIONS.values()),
        *((place, "".join(CONFIGURATIONS.values())) for place in ("included", "of the work tree", "of a worktree")),
    ],
    ids=[*CONFIGURATIONS, "included", "of the work tree", "of a worktree"],
)
def test_no_program_of_a_configuration_runs(tmp_path: Path, marker: Path, place: str, configuration: str) -> None:
    clone = made_clone(tmp_path / "clone")
    text = configuration.format(program=tmp_path / "mark", folder=tmp_path)
    folder, common = clone, clone / ".git"
    if place == "of a worktree":
        git(clone, "worktree", "add", "-q", "-b", "side", "../side")
        folder = tmp_path / "side"
    (folder / ".gitattributes").write_text(ATTRIBUTES)
    (common / "info").mkdir(exist_ok=True)
    (common / "info" / "attributes").write_text(ATTRIBUTES)
    (folder / "a.txt").write_text("one\ntwo\nthree\nfour\n")
    with (common / "config").open("a") as config:
        if place == "included":
            (clone / "more").write_text(text)
            config.write("[include]\n\tpath = ../more\n")
        elif place == "of the work tree":
            (common / "config.worktree").write_text(text)
            config.write("[core]\n\trepositoryFormatVersion = 1\n[extensions]\n\tworktreeConfig = true\n")
        else:
            config.write(text)
    for name in ("post-index-change", "fsmonitor-watchman", "reference-transaction"):
        hook = common / "hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.symlink_to(tmp_path / "mark")
    read_all(folder)


@pytest.mark.parametrize("driver", ["x", "x=y", "x.y", "x y", "ä", '\\"', "x\\\\y"])
@pytest.mark.parametrize("git_folder", [None, ".git"])
def test_a_folder_that_looks_like_a_repository_is_only_a_folder(
    tmp_path: Path, marker: Path, driver: str, git_folder: str | None
) -> None:
    clone = made_clone(tmp_path / "clone")
    inner = clone / "sub"
    inner.mkdir()
    git(inner, "init", "-q", "--bare", ".")
    (inner / "f.txt").write_text("one\n")
    git(inner, "add", "-f", "f.txt", GIT_DIR=str(inner), GIT_WORK_TREE=str(inner))
    git(inner, "commit", "-qm", "Inner", GIT_DIR=str(inner), GIT_WORK_TREE=str(inner))
    (inner / "config").write_text(
        f"[core]\n\tbare = false\n\tworktree = .\n\tfsmonitor = {tmp_path / 'mark'}\n"
        f'[filter "{driver}"]\n\tclean = {tmp_path / "mark"}\n'
    )
    (inner / ".gitattributes").write_text(f"f.txt filter={driver}\n")
    (inner / "f.txt").write_text("one\ntwo\n")
    if git_folder:
        (inner / git_folder).write_text("gitdir: .\n")
    repository = Repository(inner)
    assert repository.root == (inner if git_folder else clone)
    file = repository.relative(inner / "f.txt")
    assert [line.text for line in repository.blame(file)] == ["one", "two"]
    read_all(inner, file)


@pytest.mark.parametrize("entry", [".", "", "bin", "./bin"])
def test_a_program_in_the_folder_is_not_taken_for_git(
    tmp_path: Path, marker: Path, monkeypatch: pytest.MonkeyPatch, entry: str
) -> None:
    clone = made_clone(tmp_path / "clone")
    (clone / "bin").mkdir()
    for folder in (clone, clone / "bin"):
        (folder / "git").symlink_to(tmp_path / "mark")
    monkeypatch.setenv("PATH", os.pathsep.join([entry, os.environ["PATH"]]))
    monkeypatch.chdir(clone)
    read_all(clone)


def test_a_program_is_found_by_fixed_folders_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "bin" / "agent"
    program.parent.mkdir()
    program.symlink_to(sys.executable)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", os.pathsep.join([".", "bin", ""]))
    assert find_program("agent") is None
    assert find_program("agent", {"PATH": f"bin:{program.parent}"}) == str(program)
    assert find_program(str(program)) == str(program)


def test_variables_of_the_caller_name_no_program(tmp_path: Path, marker: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clone, program = made_clone(tmp_path / "clone"), str(tmp_path / "mark")
    (clone / ".gitattributes").write_text(ATTRIBUTES)
    (tmp_path / ".gitconfig").write_text(CONFIGURATIONS["clean"].format(program=program))
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("GIT_EXTERNAL_DIFF", "GIT_PAGER", "PAGER", "GIT_SSH_COMMAND", "GIT_ASKPASS", "GIT_EDITOR"):
        monkeypatch.setenv(name, program)
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "filter.x.clean")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", program)
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    read_all(clone)


@pytest.mark.parametrize("options", [(), ("--object-format=sha256",)])
@pytest.mark.parametrize("form", ["plain", "packed", "detached", "shallow", "worktree", "submodule", "alternates"])
def test_every_form_of_a_clone_is_read(tmp_path: Path, options: tuple[str, ...], form: str) -> None:
    """Lines, commits, names and notes are those that git itself says."""
    folder = made_clone(tmp_path / "clone", *options)
    if form == "packed":
        git(folder, "gc", "-q", "--aggressive")
    elif form == "detached":
        git(folder, "checkout", "-q", "--detach", "main")
    elif form == "worktree":
        git(folder, "worktree", "add", "-q", "-b", "side", "../side")
        folder = tmp_path / "side"
    elif form == "submodule":
        outer = made_clone(tmp_path / "outer", *options)
        git(outer, "-c", "protocol.file.allow=always", "submodule", "add", "-q", "../clone", "sub")
        folder = outer / "sub"
    elif form in ("shallow", "alternates"):
        how = ("--depth=1", f"file://{folder}") if form == "shallow" else ("--shared", str(folder))
        git(tmp_path, "-c", "protocol.file.allow=always", "clone", "-q", *how, "copy")
        folder = tmp_path / "copy"
    (folder / "a.txt").write_text("one\ntwo\nthree\n")
    repository = Repository(folder / ".")
    assert repository.root == Path(git(folder, "rev-parse", "--show-toplevel"))
    expected = [line.split(" ", 1)[0] for line in git(folder, "blame", "-l", "--root", "a.txt").split("\n")]
    assert [line.commit for line in repository.blame("a.txt")] == expected
    assert expected[2] == "0" * len(expected[2])
    for revision in ("HEAD", "HEAD~1", "v1", "main", "origin/main"):
        done = subprocess.run(
            ["git", "rev-parse", "--verify", "-q", f"{revision}^{{commit}}"],
            cwd=folder,
            env=_PLAIN,
            capture_output=True,
        )
        assert repository.has(revision) == (done.stdout.decode().strip() or None)
    listed = git(folder, "worktree", "list", "--porcelain").split("\n")
    assert {line.split(" ", 1)[1] for line in listed if line.startswith("worktree ") and ".git/" not in line} <= (
        repository.roots
    )
    notes = ["a note\n"] if form in ("plain", "packed", "detached", "worktree") else []
    assert repository.notes(repository.commit("HEAD")) == notes
    changes = repository.changes(repository.commit("HEAD"))
    assert [each.added for each in changes if each.path == "a.txt"] == [
        ("one", "two") if form == "shallow" else ("two",)
    ]


def test_a_line_of_a_branch_that_is_being_merged_has_its_commit(tmp_path: Path) -> None:
    clone = made_clone(tmp_path / "clone")
    git(clone, "checkout", "-q", "--", "a.txt")
    git(clone, "checkout", "-q", "-b", "side")
    (clone / "b.txt").write_text("side\n")
    git(clone, "add", "b.txt")
    git(clone, "commit", "-qm", "Side")
    side = git(clone, "rev-parse", "HEAD")
    git(clone, "checkout", "-q", "main")
    git(clone, "merge", "-q", "--no-ff", "--no-commit", "side")
    assert [line.commit for line in Repository(clone).blame("b.txt")] == [side]


@pytest.mark.parametrize("has_commits", [True, False])
def test_a_file_that_no_commit_has_is_read_from_the_working_tree(tmp_path: Path, *, has_commits: bool) -> None:
    clone = tmp_path / "clone"
    if has_commits:
        made_clone(clone)
    else:
        clone.mkdir()
        git(clone, "init", "-q")
    (clone / "new.txt").write_text("a\n\nb")
    found = Repository(clone).blame("new.txt")
    assert [(line.number, line.commit, line.text) for line in found] == [
        (1, NOT_COMMITTED, "a"),
        (2, NOT_COMMITTED, ""),
        (3, NOT_COMMITTED, "b"),
    ]
    assert [line.text for line in Repository(clone).blame("new.txt", 3)] == ["b"]
    with pytest.raises(NotFoundError):
        Repository(clone).blame("missing.txt")


@pytest.mark.parametrize("name", ["HEAD", "packed-refs", "refs/heads/pipe", "shallow", "config", "commondir"])
def test_a_pipe_in_a_git_folder_is_not_waited_for(tmp_path: Path, name: str) -> None:
    clone = made_clone(tmp_path / "clone")
    place = clone / ".git" / name
    place.unlink(missing_ok=True)
    os.mkfifo(place)
    if name == "HEAD":
        with pytest.raises(NotFoundError):
            Repository(clone)
    else:
        read_all(clone)


def test_the_temporary_folder_goes_with_the_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clone, temporary = made_clone(tmp_path / "clone"), tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    repository = Repository(clone)
    assert len(list(temporary.iterdir())) == 1
    del repository
    assert not list(temporary.iterdir())


def test_a_branch_that_is_another_name_of_one_is_read(tmp_path: Path) -> None:
    clone = made_clone(tmp_path / "clone")
    git(clone, "symbolic-ref", "refs/heads/alias", "refs/heads/main")
    git(clone, "symbolic-ref", "refs/remotes/origin/HEAD", "refs/heads/alias")
    git(clone, "symbolic-ref", "refs/heads/circle", "refs/heads/circle")
    git(clone, "symbolic-ref", "HEAD", "refs/heads/alias")
    repository = Repository(clone)
    newest = git(clone, "rev-parse", "main")
    assert {repository.has(name) for name in ("HEAD", "alias", "origin/HEAD")} == {newest}
    assert repository.has("circle") is None
    assert [line.commit for line in repository.blame("a.txt", 1)] == [
        git(clone, "blame", "-l", "-s", "--root", "-L1,1", "a.txt")[:40]
    ]


@pytest.mark.parametrize("lost", ["main", "main^{tree}"])
def test_lines_of_an_unreadable_clone_are_not_shown_as_uncommitted(tmp_path: Path, lost: str) -> None:
    clone = made_clone(tmp_path / "clone")
    name = git(clone, "rev-parse", lost)
    (clone / ".git" / "objects" / name[:2] / name[2:]).unlink()
    with pytest.raises(SourceError):
        Repository(clone).blame("a.txt")


@pytest.mark.parametrize("settings", [{"core.autocrlf": "true"}, {}])
def test_line_ends_of_windows_are_no_part_of_a_line(tmp_path: Path, settings: dict[str, str]) -> None:
    clone = made_clone(tmp_path / "clone")
    for setting in settings.items():
        git(clone, "config", *setting)
    for name in ("w.txt", "new.txt"):
        (clone / name).write_bytes(b"one\r\ntwo\r\n")
    git(clone, "add", "w.txt")
    git(clone, "commit", "-qm", "Windows")
    newest = git(clone, "rev-parse", "HEAD")
    repository = Repository(clone)
    assert [(line.commit, line.text) for line in repository.blame("w.txt")] == [(newest, "one"), (newest, "two")]
    assert [line.text for line in repository.blame("new.txt")] == ["one", "two"]


@pytest.mark.parametrize("line", ["//host/share/objects", "\\\\host\\share", '"//host/share"', '"\\057/host/share"'])
def test_objects_on_another_machine_are_not_looked_for(tmp_path: Path, line: str) -> None:
    """To look at them would sign in there; also where another folder of objects names them."""
    clone, other = made_clone(tmp_path / "clone"), made_clone(tmp_path / "other")
    objects = [folder / ".git" / "objects" for folder in (clone, other)]
    for folder, text in zip(objects, (f"# mine\n{objects[1]}\n{objects[0]}\n", f"{line}\n"), strict=True):
        (folder / "info").mkdir(exist_ok=True)
        (folder / "info" / "alternates").write_text(text)
    with pytest.raises(NotFoundError, match="another machine"):
        Repository(clone)
    (objects[1] / "info" / "alternates").write_text(f'"{objects[0]}"\n../../nowhere\n')
    read_all(clone)


def test_folders_of_objects_that_name_one_another_have_an_end(tmp_path: Path) -> None:
    clone = made_clone(tmp_path / "clone")
    folders = [clone / ".git" / "objects", *(tmp_path / f"{number}" / "objects" for number in range(1500))]
    for folder, following in itertools.pairwise(folders):
        (folder / "info").mkdir(exist_ok=True, parents=True)
        (folder / "info" / "alternates").write_text(f"{following}\n")
    with pytest.raises(NotFoundError, match="too many"):
        Repository(clone)


def test_a_pipe_in_place_of_the_names_of_other_objects_is_not_waited_for(tmp_path: Path) -> None:
    clone = made_clone(tmp_path / "clone")
    (clone / ".git" / "objects" / "info").mkdir(exist_ok=True)
    os.mkfifo(clone / ".git" / "objects" / "info" / "alternates")
    with pytest.raises(NotFoundError, match="no file"):
        Repository(clone)
