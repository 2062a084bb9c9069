"""A git clone, read without changing one byte of it.

Refs, notes, index, configuration and objects stay as they are: no command that is used here writes, and nothing is
fetched. git reads the clone through a folder of ours (`GitFolder`), so nothing in the clone can name a program.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Final, NamedTuple

from turnlog.commits.git_folder import GitFolder, find_clone, is_plain_file
from turnlog.errors import NotFoundError, SourceError
from turnlog.paths import find_program

_TIMEOUT_SECONDS: Final = 60.0

_FORMAT: Final = "%x01%H%x00%P%x00%an%x00%ae%x00%at%x00%ct%x00%s%x00%b%x00"

_HASH = re.compile(r"[0-9a-f]{4,64}")

_BOT = re.compile(r"\[bot\]|(?:^|[\W_])bot(?:$|[\W_])|-bot@|^bot@|actions@github", re.IGNORECASE)

NOT_COMMITTED: Final = "0" * 40
"""The commit of a line that is in the working tree only, as `git blame` names it."""


class Commit(NamedTuple):
    """What git says of a commit."""

    hash: str
    parents: tuple[str, ...]
    author: str
    email: str
    authored_at: datetime
    """To the second. An amended or rebased commit keeps it."""
    committed_at: datetime
    """To the second."""
    subject: str
    body: str

    @property
    def is_by_bot(self) -> bool:
        """Whether its author calls itself a bot."""
        return _BOT.search(self.author) is not None or _BOT.search(self.email) is not None


class Added(NamedTuple):
    """The lines that a commit adds to a file and removes from it, without their line ends."""

    path: str
    """Below the clone's folder, with `/`."""
    added: tuple[str, ...]
    removed: tuple[str, ...]


class BlamedLine(NamedTuple):
    """A line of a file, and the commit that brought it."""

    number: int
    """In the file as it is now, from 1."""
    commit: str
    path: str
    """The file's path in that commit."""
    text: str
    """Without its line end."""


class Repository:
    """A clone. Methods raise SourceError if git fails, and NotFoundError for what is not in the clone."""

    def __init__(self, folder: Path) -> None:
        """The clone that this folder is in. Raises NotFoundError if it is in none, or git is not installed."""
        self._clone = find_clone(folder)
        self._git_folder = GitFolder(self._clone)
        self.root = self._clone.root

    @cached_property
    def roots(self) -> frozenset[str]:
        """The folders of the clone and of its worktrees, also as symbolic links name them."""
        found = set(self._clone.work_trees)
        return frozenset(os.path.realpath(each) for each in found) | found | {str(self.root)}

    @cached_property
    def remotes(self) -> frozenset[str]:
        """`host/owner/name` of each remote, in lower case."""
        settings = self._clone.common / "config"
        if not is_plain_file(settings):
            return frozenset()
        try:
            lines = self._git(
                *("config", "--file", str(settings), "--no-includes", "--get-regexp", r"^remote\..*\.url$")
            ).splitlines()
        except SourceError:
            return frozenset()
        found = (remote_name(line.split(" ", 1)[-1]) for line in lines)
        return frozenset(name for name in found if name is not None)

    @cached_property
    def names(self) -> frozenset[str]:
        """What folders with a clone are called: this one, and as `git clone` names one for each remote."""
        return frozenset((self.root.name, *(each.rpartition("/")[2] for each in self.remotes)))

    def commit(self, revision: str) -> Commit:
        """The commit that a revision names."""
        for commit in self._commits("--no-walk", f"{self._resolve(revision)}"):
            return commit
        raise NotFoundError(f"there is no commit {revision} in {self.root}")

    def has(self, revision: str) -> str | None:
        """The whole hash of a commit that is in the clone; None if it is not, or the beginning names several."""
        try:
            return self._resolve(revision)
        except NotFoundError:
            return None

    def with_number(self, number: int) -> list[Commit]:
        """The commits whose subject names this pull request as forges do it: `(#12)`, `Merge pull request #12`."""
        pattern = rf"\(#{number}\)|^Merge pull request #{number} |!{number}$"
        found = self._commits("--all", "-E", f"--grep={pattern}", "--max-count=50")
        names = re.compile(rf"\(#{number}\)$|^Merge pull request #{number}\b|![{number}]$")
        return [commit for commit in found if names.search(commit.subject) or f"!{number}" in commit.body.split()]

    def changes(self, commit: Commit) -> list[Added]:
        """What a commit changes, file by file; nothing for a merge."""
        if len(commit.parents) > 1:
            return []
        text = self._git(
            *("show", "--format=", "--no-ext-diff", "--no-textconv", "--no-color", "-U0", "-M", commit.hash, "--")
        )
        return list(_parse_diff(text))

    def added_earlier(self, commit: Commit, path: str, since: datetime) -> list[tuple[datetime, frozenset[str]]]:
        """When earlier commits on the same branch changed a file, from a time on, and the lines that they added."""
        if not commit.parents:
            return []
        text = self._git(
            *("log", f"--since={int(since.timestamp()) - 1}", f"--format={_FORMAT}", "-p", "-U0", "--no-ext-diff"),
            *("--no-textconv", "--no-color", "--no-renames", commit.parents[0], "--", path),
        )
        found: list[tuple[datetime, frozenset[str]]] = []
        for record in text.split("\x01")[1:]:
            fields = record.split("\x00")
            lines = [line for change in _parse_diff(fields[8]) for line in change.added]
            found.append((_moment(fields[5]), frozenset(lines)))
        return found

    def file_before(self, revision: str, path: str, at: datetime) -> list[str]:
        """The lines of a file as the last commit before a time left it; none if there was no such file."""
        try:
            last = self._git("rev-list", "-1", f"--before={int(at.timestamp())}", revision, "--", path).strip()
            return self._git("cat-file", "blob", f"{last}:{path}").splitlines() if last else []
        except SourceError:
            return []

    def blame(self, path: str, line: int | None = None) -> list[BlamedLine]:
        """The lines of a file in the working tree, or one of them, each with its commit."""
        if not self._is_committed(path):
            return self._uncommitted(path, line)
        only = () if line is None else ("-L", f"{line},{line}")
        text = self._git("blame", "--porcelain", "-w", "--no-textconv", *only, "--", path)
        return list(_parse_blame(text))

    def notes(self, commit: Commit) -> list[str]:
        """The texts of all notes on a commit, in any ref below `refs/notes`."""
        refs = self._git("for-each-ref", "--format=%(refname)", "refs/notes").split()
        found: list[str] = []
        for ref in refs:
            try:
                note = self._git("notes", f"--ref={ref}", "list", commit.hash).strip()
                found.append(self._git("cat-file", "blob", note))
            except SourceError:
                continue
        return found

    def relative(self, path: Path) -> str:
        """The path of a file below the clone's folder. Raises NotFoundError if it is not below it."""
        whole = Path(os.path.realpath(path))
        try:
            return whole.relative_to(os.path.realpath(self.root)).as_posix()
        except ValueError:
            raise NotFoundError(f"{path} is not in the repository {self.root}") from None

    # -- inside

    def _is_committed(self, path: str) -> bool:
        """Whether the newest commit, or one that is being merged, has a file."""
        heads = filter(None, map(self._head, ("HEAD", "MERGE_HEAD")))
        return any(self._git("ls-tree", "--full-tree", "--name-only", head, "--", path) for head in heads)

    def _head(self, name: str) -> str | None:
        """The hash that a head names; None before the first commit, or where nothing is being merged."""
        done = self._run("rev-parse", "--verify", "--quiet", name)
        return None if done.returncode == 1 else _output(done).strip()

    def _uncommitted(self, path: str, line: int | None) -> list[BlamedLine]:
        """The lines of a file that is in the working tree only."""
        file = self.root / path
        if not is_plain_file(file):
            raise NotFoundError(f"there is no file {path} in {self.root}")
        lines = file.read_bytes().decode(errors="replace").removesuffix("\n").split("\n")
        found = (
            BlamedLine(number, NOT_COMMITTED, path, text.removesuffix("\r")) for number, text in enumerate(lines, 1)
        )
        return [each for each in found if line in (None, each.number)]

    def _resolve(self, revision: str) -> str:
        # What begins with a dash would be an option.
        if not revision or revision.startswith("-"):
            raise NotFoundError(f"{revision!r} names no commit")
        try:
            return self._git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}").strip()
        except SourceError:
            raise NotFoundError(f"there is no commit {revision} in {self.root}") from None

    def _commits(self, *arguments: str) -> Iterator[Commit]:
        for record in self._git("log", f"--format={_FORMAT}", *arguments, "--").split("\x01")[1:]:
            fields = record.split("\x00")
            yield Commit(
                fields[0],
                tuple(fields[1].split()),
                fields[2],
                fields[3],
                _moment(fields[4]),
                _moment(fields[5]),
                fields[6],
                fields[7],
            )

    def _git(self, *arguments: str) -> str:
        return _output(self._run(*arguments))

    def _run(self, *arguments: str) -> subprocess.CompletedProcess[bytes]:
        program = find_program("git")
        if program is None:
            raise NotFoundError("git is not installed")
        try:
            return subprocess.run(
                [program, "--no-pager", "--no-replace-objects", "--literal-pathspecs", *arguments],
                cwd=self._git_folder.path,
                env=self._git_folder.environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_TIMEOUT_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise SourceError(f"git {arguments[0]} took more than {_TIMEOUT_SECONDS:.0f} seconds") from error


def _output(done: subprocess.CompletedProcess[bytes]) -> str:
    """What git has written. Raises SourceError if it failed."""
    if done.returncode:
        reason = done.stderr.decode(errors="replace").strip().splitlines()
        raise SourceError(f"git {done.args[4]}: {reason[-1] if reason else f'exit code {done.returncode}'}")
    return done.stdout.decode(errors="replace")


def is_hash(text: str) -> bool:
    """Whether a text can be a commit's hash or its beginning."""
    return _HASH.fullmatch(text) is not None


_REMOTE = re.compile(r"(?:[a-z+]+://(?:[^@/]+@)?|[^@/]+@)(?P<host>[\w.-]+)(?::\d+)?[:/](?P<path>.+?)(?:\.git)?/?")


def remote_name(url: str) -> str | None:
    """`host/owner/name` of a remote's address, in lower case; None if it names no host."""
    found = _REMOTE.fullmatch(url.strip())
    return None if found is None else f"{found['host']}/{found['path']}".lower()


def _moment(seconds: str) -> datetime:
    return datetime.fromtimestamp(int(seconds), UTC)


def _parse_diff(text: str) -> Iterator[Added]:
    """The files of a diff without context lines."""
    path, added, removed = "", list[str](), list[str]()
    is_header = False
    for line in text.split("\n"):
        if line.startswith("diff --git "):
            yield from _file_of(path, added, removed)
            path, added, removed, is_header = "", [], [], True
        elif is_header and line.startswith("+++ "):
            path = line[4:].split("\t")[0].strip('"').removeprefix("b/")
        elif line.startswith("@@"):
            is_header = False
        elif not is_header and line.startswith("+"):
            added.append(line[1:].removesuffix("\r"))
        elif not is_header and line.startswith("-"):
            removed.append(line[1:].removesuffix("\r"))
    yield from _file_of(path, added, removed)


def _file_of(path: str, added: Iterable[str], removed: Iterable[str]) -> Iterator[Added]:
    if path and path != "/dev/null":
        yield Added(path, tuple(added), tuple(removed))


def _parse_blame(text: str) -> Iterator[BlamedLine]:
    """The lines of `git blame --porcelain`, which names a commit's file once."""
    paths: dict[str, str] = {}
    commit, number = "", 0
    for line in text.split("\n"):
        if line.startswith("\t"):
            yield BlamedLine(number, commit, paths.get(commit, ""), line[1:].removesuffix("\r"))
        elif line.startswith("filename "):
            paths[commit] = line.removeprefix("filename ")
        else:
            words = line.split(" ")
            if len(words) >= 3 and len(words[0]) >= 40 and is_hash(words[0]):
                commit, number = words[0], int(words[2])
