"""The origin of what somebody names: a file, a line of it, a commit or a pull request."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from turnlog.commits.history import History, HistorySearch
from turnlog.commits.links import LineRange, LinkFinder, OriginLink
from turnlog.commits.printed import PullRequest, pull_request
from turnlog.commits.repository import Commit, Repository
from turnlog.errors import NotFoundError

_NUMBER = re.compile(r"[#!](?P<number>\d+)")
_LINE = re.compile(r"(?P<path>.+):(?P<line>\d+)")


class CommitOrigin(NamedTuple):
    """The sessions that something came from."""

    subject: str
    """What was named: a path below the clone, with its line if there is one, a full hash, or a pull request."""
    commit: Commit | None = None
    """The commit, or that of the line; None for a whole file, a pull request, and a line that is not committed."""
    links: Sequence[OriginLink] = ()
    """The best first."""
    ranges: Sequence[LineRange] = ()
    """For a file: where each line came from."""
    is_line: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether no session is named."""
        return not self.links and all(each.link is None for each in self.ranges)


def find_origin(
    subject: str, store: History, searcher: HistorySearch, *, base: Path, clone: Path | None = None
) -> CommitOrigin:
    """The origin of `PATH`, `PATH:LINE`, a commit, `#12` or the address of a pull request.

    `base` is the folder that a path begins in; `clone` is a folder of the clone, by default the file's, or `base`. A
    path that is not in `base` may also begin in `clone`.
    Raises NotFoundError for what the clone does not have, and where there is no clone.
    """
    file = _file_and_line(subject, base)
    if file is None and clone is not None:
        file = _file_and_line(subject, clone)
    repository = Repository(clone or (file[0].parent if file is not None else base))
    finder = LinkFinder(store, searcher, repository)
    if file is not None:
        return _of_file(finder, repository, *file)
    wanted = _pull_request(subject, repository)
    if wanted is not None:
        return CommitOrigin(subject, links=finder.of_pull_request(wanted))
    commit = _commit(repository, subject)
    return CommitOrigin(commit.hash, commit, links=finder.of_commit(commit))


def _file_and_line(subject: str, base: Path) -> tuple[Path, int | None] | None:
    """The file that is there, and the line after it. Raises NotFoundError for a line that the file does not have."""
    if (base / subject).is_file():
        return base / subject, None
    found = _LINE.fullmatch(subject)
    if found is None or not (base / found["path"]).is_file():
        return None
    line = int(found["line"])
    if line == 0:
        raise NotFoundError(f"there is no line 0 in {found['path']}: the first is 1")
    with (base / found["path"]).open("rb") as file:
        lines = sum(1 for _ in file)
    if line > lines:
        count = f"{lines} line{'' if lines == 1 else 's'}" if lines else "no lines"
        raise NotFoundError(f"there is no line {line} in {found['path']}: it has {count}")
    return base / found["path"], line


def _pull_request(subject: str, repository: Repository) -> PullRequest | None:
    """The pull request of an address, or of `#12` at the clone's only forge."""
    number = _NUMBER.fullmatch(subject)
    if number is None:
        return pull_request(subject)
    if len(repository.remotes) != 1:
        remotes = len(repository.remotes) or "no"
        raise NotFoundError(
            f"which repository has {subject}? The clone has {remotes} remotes: give the address of the pull request,"
            f" as https://github.com/OWNER/NAME/pull/{number['number']}"
        )
    return PullRequest(next(iter(repository.remotes)), int(number["number"]))


def _commit(repository: Repository, subject: str) -> Commit:
    """The commit that was named. Raises NotFoundError for what could be a file too, and is neither."""
    if repository.has(subject) is None and not subject.startswith("-"):
        raise NotFoundError(f"there is no file or commit {subject} in {repository.root}")
    return repository.commit(subject)


def _of_file(finder: LinkFinder, repository: Repository, file: Path, line: int | None) -> CommitOrigin:
    path = repository.relative(file)
    ranges = finder.of_file(path, line)
    if line is None or not ranges:
        return CommitOrigin(path, ranges=ranges)
    [only] = ranges
    commit = None if only.commit is None else repository.commit(only.commit)
    links = [] if commit is None else finder.of_commit(commit)
    others = [link for link in links if only.link is None or link.session_id != only.link.session_id]
    return CommitOrigin(f"{path}:{line}", commit, [*([only.link] if only.link else []), *others], ranges, is_line=True)
