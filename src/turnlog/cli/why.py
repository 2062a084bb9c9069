"""`turnlog why`: which session, turn and prompt a line, a commit or a pull request came from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from turnlog.cli import formatting
from turnlog.cli.fresh_store import fresh_store_option, open_fresh, open_searcher
from turnlog.cli.options import examples, iter_sessions, json_option
from turnlog.cli.terminal import Column, dim, write_json, write_note, write_table
from turnlog.plain_text import one_line, plain

if TYPE_CHECKING:
    from turnlog.cli.documents import WhyDocument
    from turnlog.commits.links import LineRange, OriginLink
    from turnlog.commits.origin import CommitOrigin
    from turnlog.commits.repository import Commit
    from turnlog.store.base import Store

_SHORT_HASH = 10


@click.command(
    epilog=examples(
        "turnlog why src/shop.py:42       # the session that wrote this line",
        "turnlog why src/shop.py          # where each line of a file came from",
        "turnlog why 3f2a91c              # the session that made this commit",
        "turnlog why '#12'                # the session that opened this pull request",
        "turnlog why --hub '#12'          # also a colleague's, as far as it is shown to you",
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
@click.option("--hub", "on_hub", is_flag=True, help="Look among the sessions that you see on this machine's hub.")
@json_option
@fresh_store_option
def why(subject: str, folder: Path | None, on_hub: bool, as_json: bool, store_path: Path) -> None:
    """Show which session, turn and prompt a line, a commit or a pull request came from.

    Links come from the logs alone. They are exact (the session's own command printed the hash or opened the pull
    request), by content (the commit added lines that the session wrote), or only possible. The clone is read and never
    changed. With --hub, the hub is asked for hashes, times and paths of files; what is in the clone stays here.
    """
    origin, silence = (_on_hub if on_hub else _here)(subject, folder, store_path)
    if as_json:
        write_json(_document(origin))
    else:
        _write(origin, silence)


def _here(subject: str, folder: Path | None, store_path: Path) -> tuple[CommitOrigin, str]:
    """The origin among this machine's sessions, and what to say if there is none."""
    from turnlog.commits.origin import find_origin

    with open_fresh(store_path) as store:
        with open_searcher(store_path) as searcher:
            origin = find_origin(subject, store, searcher, base=Path.cwd(), clone=folder)
        oldest = _oldest(store) if origin.is_empty else None
    since = "" if oldest is None else f" The oldest session is of {oldest}."
    return origin, f"No session that was read made or wrote it.{since}"


def _on_hub(subject: str, folder: Path | None, store_path: Path) -> tuple[CommitOrigin, str]:
    """The origin among the sessions that the hub shows, and what to say if there is none."""
    from turnlog.commits.origin import find_origin
    from turnlog.hub.machine.asking import HubHistory
    from turnlog.hub.machine.client import HubClient
    from turnlog.hub.machine.state import MachineState

    with MachineState(store_path) as state:
        connection = state.connection()
    with HubClient(connection.url, connection.token, announce=lambda text: write_note(f"turnlog: {text}")) as client:
        history = HubHistory(client)
        origin = find_origin(subject, history, history, base=Path.cwd(), clone=folder)
    return origin, f"No session that {connection.url} shows to you made or wrote it."


def _oldest(store: Store) -> str | None:
    """When the store's history begins."""
    begun = [session.created_at for session in iter_sessions(store, subagents=False) if session.created_at is not None]
    return formatting.moment(min(begun)) if begun else None


def _document(origin: CommitOrigin) -> WhyDocument:
    """As JSON."""
    commit = origin.commit
    return {
        "subject": origin.subject,
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
        "links": list(origin.links),
        "lines": list(origin.ranges),
    }


def _write(origin: CommitOrigin, silence: str) -> None:
    """For people; `silence` is said where no session is named."""
    if origin.commit is not None:
        _write_commit(origin.commit)
    elif origin.is_line:
        click.echo(dim("not committed yet"))
    if origin.ranges and not origin.is_line:
        _write_ranges(origin.ranges)
    for link in origin.links:
        _write_link(link)
    if origin.is_empty:
        hint = f" One line may still have a possible session: {origin.subject}:1." if origin.ranges else ""
        click.echo(plain(_bot(origin.commit) or f"{silence}{hint}"), err=True)


def _bot(commit: Commit | None) -> str | None:
    if commit is None or not commit.is_by_bot:
        return None
    return f"No session made it: {one_line(commit.author)} calls itself a bot."


def _write_commit(commit: Commit) -> None:
    moment = formatting.moment(commit.authored_at)
    click.echo(f"{click.style(commit.hash[:_SHORT_HASH], fg='yellow')} {one_line(commit.subject)}")
    click.echo(dim(f"{one_line(commit.author)} · {moment}"))


def _write_link(link: OriginLink) -> None:
    for line in _link_lines(link):
        click.echo(line)


def _link_lines(link: OriginLink) -> Iterator[str]:
    turn = "" if link.turn is None else f" turn {link.turn}"
    moment = "" if link.at is None else f"  {formatting.moment(link.at)}"
    yield ""
    yield f"{click.style(plain(link.session_id), fg='cyan')}{turn}{moment}  {one_line(link.title or '', 80)}".rstrip()
    yield f"  {_how(link)}"
    if link.prompt:
        yield f"  {dim('prompt:')} {one_line(link.prompt)}"


def _how(link: OriginLink) -> str:
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
        Column("Prompt", can_shrink=True),
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
