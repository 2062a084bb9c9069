"""`turnlog why`: which session, turn and prompt a line, a commit or a pull request came from."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from turnlog.cli import formatting
from turnlog.cli.fresh_store import fresh_store_option, open_fresh, open_searcher
from turnlog.cli.options import examples, iter_sessions, json_option
from turnlog.cli.terminal import Column, dim, write_json, write_table
from turnlog.errors import NotFoundError
from turnlog.plain_text import one_line, plain

if TYPE_CHECKING:
    from turnlog.cli.documents import WhyDocument
    from turnlog.commits.links import LineRange, Link, LinkFinder
    from turnlog.commits.printed import PullRequest
    from turnlog.commits.repository import Commit, Repository
    from turnlog.store.base import Store

_SHORT_HASH = 10

_NUMBER = re.compile(r"[#!](?P<number>\d+)")
_LINE = re.compile(r"(?P<path>.+):(?P<line>\d+)")


@click.command(
    epilog=examples(
        "turnlog why src/shop.py:42       # the session that wrote this line",
        "turnlog why src/shop.py          # where each line of a file came from",
        "turnlog why 3f2a91c              # the session that made this commit",
        "turnlog why '#12'                # the session that opened this pull request",
    )
)
@click.argument("subject", metavar="PATH[:LINE]|COMMIT|PULL-REQUEST")
@click.option(
    "--repository",
    "folder",
    metavar="DIR",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="The clone to look in; by default the one that the file, or this folder, is in.",
)
@json_option
@fresh_store_option
def why(subject: str, folder: Path | None, as_json: bool, store_path: Path) -> None:
    """Show which session, turn and prompt a line, a commit or a pull request came from.

    Links come from the logs alone. They are exact (the session's own command printed the hash or opened the pull
    request), by content (the commit added lines that the session wrote), or only possible. The clone is read and never
    changed.
    """
    from turnlog.commits.links import LinkFinder
    from turnlog.commits.repository import Repository

    file = _file_and_line(subject)
    repository = Repository(folder or (file[0].parent if file is not None else Path.cwd()))
    with open_fresh(store_path) as store:
        with open_searcher(store_path) as searcher:
            finder = LinkFinder(store, searcher, repository)
            if file is not None:
                answer = _why_file(finder, repository, *file)
            elif (wanted := _pull_request(subject, repository)) is not None:
                answer = _Answer(subject, links=finder.of_pull_request(wanted))
            else:
                commit = _commit(repository, subject)
                answer = _Answer(commit.hash, commit, links=finder.of_commit(commit))
        oldest = _oldest(store) if answer.is_empty else None
    if as_json:
        write_json(answer.document())
    else:
        answer.write(oldest)


def _file_and_line(subject: str) -> tuple[Path, int | None] | None:
    """The file that is there, and the line after it."""
    if Path(subject).is_file():
        return Path(subject).absolute(), None
    found = _LINE.fullmatch(subject)
    if found is None or not Path(found["path"]).is_file():
        return None
    return Path(found["path"]).absolute(), int(found["line"])


def _pull_request(subject: str, repository: Repository) -> PullRequest | None:
    """The pull request of an address, or of `#12` at the clone's only forge."""
    from turnlog.commits.printed import PullRequest, pull_request

    number = _NUMBER.fullmatch(subject)
    if number is None:
        return pull_request(subject)
    if len(repository.remotes) != 1:
        raise NotFoundError(f"which repository has {subject}? The clone has {len(repository.remotes)} remotes: name it")
    return PullRequest(next(iter(repository.remotes)), int(number["number"]))


def _commit(repository: Repository, subject: str) -> Commit:
    """The commit that was named. Raises NotFoundError for what could be a file too, and is neither."""
    if repository.has(subject) is None and not subject.startswith("-"):
        raise NotFoundError(f"there is no file or commit {subject} in {repository.root}")
    return repository.commit(subject)


def _why_file(finder: LinkFinder, repository: Repository, file: Path, line: int | None) -> _Answer:
    path = repository.relative(file)
    ranges = finder.of_file(path, line)
    if line is None or not ranges:
        return _Answer(path, ranges=ranges)
    [only] = ranges
    commit = None if only.commit is None else repository.commit(only.commit)
    links = [] if commit is None else finder.of_commit(commit)
    others = [link for link in links if only.link is None or link.session_id != only.link.session_id]
    return _Answer(f"{path}:{line}", commit, [*([only.link] if only.link else []), *others], ranges, is_line=True)


def _oldest(store: Store) -> str | None:
    """When the store's history begins."""
    begun = [session.created_at for session in iter_sessions(store, subagents=False) if session.created_at is not None]
    return formatting.moment(min(begun)) if begun else None


class _Answer:
    """What was found."""

    def __init__(
        self,
        subject: str,
        commit: Commit | None = None,
        links: Sequence[Link] = (),
        ranges: Sequence[LineRange] = (),
        *,
        is_line: bool = False,
    ) -> None:
        self._subject, self._commit, self._links, self._ranges = subject, commit, links, ranges
        self._is_line = is_line

    @property
    def is_empty(self) -> bool:
        """Whether no session is named."""
        return not self._links and all(each.link is None for each in self._ranges)

    def document(self) -> WhyDocument:
        """As JSON."""
        commit = self._commit
        return {
            "subject": self._subject,
            "commit": None
            if commit is None
            else {
                "hash": commit.hash,
                "subject": commit.subject,
                "author": commit.author,
                "email": commit.email,
                "authored_at": formatting.iso(commit.authored_at),
                "committed_at": formatting.iso(commit.committed_at),
                "is_by_bot": commit.is_by_bot,
            },
            "links": list(self._links),
            "lines": list(self._ranges),
        }

    def write(self, oldest: str | None) -> None:
        """For people."""
        if self._commit is not None:
            _write_commit(self._commit)
        elif self._is_line:
            click.echo(dim("not committed yet"))
        if self._ranges and not self._is_line:
            _write_ranges(self._ranges)
        for link in self._links:
            _write_link(link)
        if self.is_empty:
            click.echo(self._silence(oldest), err=True)

    def _silence(self, oldest: str | None) -> str:
        """Why no session is named."""
        commit = self._commit
        if commit is not None and commit.is_by_bot:
            return f"No session made it: {one_line(commit.author)} calls itself a bot."
        since = "" if oldest is None else f" The oldest session is of {oldest}."
        return f"No session that was read made or wrote it.{since}"


def _write_commit(commit: Commit) -> None:
    moment = formatting.moment(commit.authored_at)
    click.echo(f"{click.style(commit.hash[:_SHORT_HASH], fg='yellow')} {one_line(commit.subject)}")
    click.echo(dim(f"{one_line(commit.author)} · {moment}"))


def _write_link(link: Link) -> None:
    for line in _link_lines(link):
        click.echo(line)


def _link_lines(link: Link) -> Iterator[str]:
    turn = "" if link.turn is None else f" turn {link.turn}"
    moment = "" if link.at is None else f"  {formatting.moment(link.at)}"
    yield ""
    yield f"{click.style(plain(link.session_id), fg='cyan')}{turn}{moment}  {one_line(link.title or '', 80)}".rstrip()
    yield f"  {_how(link)}"
    if link.prompt:
        yield f"  {dim('asked:')} {one_line(link.prompt)}"


def _how(link: Link) -> str:
    from turnlog.commits.links import REASONS

    colour = {"exact": "green", "content": "blue", "possible": "yellow"}[link.confidence]
    count = f" ({link.lines} of {link.of_lines})" if link.of_lines is not None and link.of_lines > 1 else ""
    return f"{click.style(link.confidence, fg=colour)}: {REASONS[link.reason]}{count}"


def _write_ranges(ranges: Iterable[LineRange]) -> None:
    columns = (
        Column("Lines", right=True),
        Column("Commit"),
        Column("Session", style="cyan"),
        Column("Turn", right=True),
        Column("How"),
        Column("Asked", can_shrink=True),
    )
    rows: list[tuple[str, ...]] = []
    for each in ranges:
        lines = str(each.first) if each.first == each.last else f"{each.first}-{each.last}"
        commit = "not committed" if each.commit is None else each.commit[:_SHORT_HASH]
        link = each.link
        if link is None:
            rows.append((lines, commit, "", "", "", ""))
        else:
            turn = "" if link.turn is None else str(link.turn)
            rows.append((lines, commit, link.session_id, turn, link.confidence, link.prompt or ""))
    write_table(columns, rows)
