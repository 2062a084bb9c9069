"""`turnlog search`: find words in prompts, answers, reasoning, tool calls and file names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from turnlog.cli import formatting
from turnlog.cli.filters import agent_option, project_option, tool_option
from turnlog.cli.fresh_store import fresh_store_option, open_fresh, open_searcher
from turnlog.cli.options import (
    complete_session,
    examples,
    find_session,
    json_option,
    limit_option,
    period_options,
)
from turnlog.cli.short_ids import shown_ids
from turnlog.cli.terminal import dim, is_terminal, write_json
from turnlog.plain_text import one_line, plain
from turnlog.store.names import check_tool, find_agent, find_project
from turnlog.store.search.base import (
    FIELDS,
    Hit,
    SearchFilter,
    SearchPage,
    SearchSort,
    SessionHits,
    SessionSearchPage,
)

if TYPE_CHECKING:
    from turnlog.cli.documents import HitDocument, SearchDocument, SessionSearchDocument
    from turnlog.store.base import Store


class _SearchCommand(click.Command):
    """Explains how to exclude a word: an argument that begins with a dash is read as an option."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """The remaining words; a usage error for an unknown option."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            if error.option_name.startswith("--"):
                raise
            hint = "To exclude a word, quote it with the others or put it after --."
            raise click.UsageError(f"{error.message} {hint}", ctx) from error


@click.command(
    cls=_SearchCommand,
    epilog=examples(
        "turnlog search connection reset                   # sessions with both words, in any messages",
        "turnlog search '\"connection reset\" -timeout'      # next to each other, and not that word",
        "turnlog search -- reset -timeout                  # likewise",
        "turnlog search 'ECONN* OR EPIPE' --field output --since 7d",
        "turnlog search reset title:flaky after:2026-11     # fields of the session and of the message",
        "turnlog search --failed --tool Bash               # no words: whatever fits",
    ),
)
@click.argument("words", metavar="[QUERY]", nargs=-1)
@agent_option
@project_option
@click.option("--session", metavar="SESSION", shell_complete=complete_session, help="Only this session.")
@click.option("--role", type=click.Choice(["user", "assistant", "system", "developer"]), help="Only this role.")
@click.option("--field", type=click.Choice(FIELDS), help="Only this field of a message.")
@tool_option
@click.option("--failed", is_flag=True, default=None, help="Only tool calls that failed.")
@click.option("--image", "has_image", is_flag=True, default=None, help="Only parts with an image.")
@period_options()
@click.option(
    "--sort",
    type=click.Choice(get_args(SearchSort)),
    default="relevance",
    show_default=True,
    help="List sessions, the best match first; or every hit, the newest first.",
)
@click.option("--flat", is_flag=True, help="List every hit by relevance, instead of one for each session.")
@limit_option(20)
@click.option("--cursor", help="Continue a list: the `next_cursor` of its last page.")
@json_option
@fresh_store_option
def search(
    *,
    words: tuple[str, ...],
    session: str | None,
    sort: SearchSort,
    flat: bool,
    limit: int,
    cursor: str | None,
    as_json: bool,
    store_path: Path,
    **filters: Any,
) -> None:
    """Find sessions by their titles, projects, tags and files, and by the texts in their messages.

    These are what was said and thought, the inputs and outputs of tools, errors, and the names of files.

    Sessions come with the best match first. Each shows its best hit, and how many more there are.

    QUERY is words that must all occur in a session (with --flat or --sort newest: in one text), quoted "phrases",
    beginnings with a star*, OR between alternatives, and -words that a message must not have. Fields narrow it down:
    title: project: file: tag: branch: model: agent: role: tool: after: before:, as in title:"flaky test" or -tag:later.
    """
    query = " ".join(words).strip()
    if not query and session is None and all(value is None for value in filters.values()):
        raise click.UsageError("Give words to search for, or a filter.")
    with open_fresh(store_path) as store:
        filters["agent"] = find_agent(store, filters["agent"])
        filters["project"] = find_project(store, filters["project"])
        wanted = SearchFilter(**filters, session=None if session is None else find_session(store, session).id)
        with open_searcher(store_path) as searcher:
            try:
                if flat or sort == "newest":
                    hits = searcher.search(query, wanted, sort=sort, limit=limit, cursor=cursor)
                    _explain_nothing(store, wanted.tool, len(hits.hits))
                    _write(store, hits, as_json=as_json)
                else:
                    sessions = searcher.sessions(query, wanted, limit=limit, cursor=cursor)
                    _explain_nothing(store, wanted.tool, len(sessions.sessions))
                    _write_sessions(store, sessions, as_json=as_json)
            except ValueError as error:
                raise click.UsageError(str(error)) from error


def _explain_nothing(store: Store, tool: str | None, found: int) -> None:
    """Raise NotFoundError if nothing was found of a tool that does not exist."""
    if tool is not None and not found:
        check_tool(store, tool)


def _write(store: Store, page: SearchPage, *, as_json: bool) -> None:
    if as_json:
        write_json(_document(page))
    else:
        _write_hits(store, page)


def _document(page: SearchPage) -> SearchDocument:
    return {
        "hits": [_hit_document(hit) for hit in page.hits],
        "next_cursor": page.next_cursor,
        "total": page.total,
        "total_is_exact": page.total_is_exact,
        "unindexed": page.unindexed,
        "suggestion": page.suggestion,
        "note": page.note,
    }


def _hit_document(hit: Hit) -> HitDocument:
    return {
        "message_id": hit.message_id,
        "agent": hit.agent,
        "role": hit.role,
        "part": hit.part,
        "field": hit.field,
        "tool_name": hit.tool_name,
        "created_at": formatting.iso(hit.created_at),
        "snippet": hit.snippet,
        "marks": [list(mark) for mark in hit.marks],
        "places": [
            {
                "session_id": place.session_id,
                "position": place.position,
                "title": place.title,
                "project": place.project,
                "project_name": place.project_name,
            }
            for place in hit.places
        ],
    }


def _write_sessions(store: Store, page: SessionSearchPage, *, as_json: bool) -> None:
    if as_json:
        write_json(_sessions_document(page))
        return
    short = shown_ids(store, (session.session_id for session in page.sessions))
    for session in page.sessions:
        click.echo("  ".join([click.style(one_line(short[session.session_id]), fg="cyan"), *_session_facts(session)]))
        for name in session.names:
            if name.field != "title":
                click.echo(f"  {click.style(f'{name.field}:', dim=True)} {_marked(name.text, name.marks)}")
        if session.hit is not None:
            kind = click.style(f"{_kind(session.hit)} {one_line(session.hit.message_id)}:", dim=True)
            click.echo(f"  {kind} {_marked(session.hit.snippet, session.hit.marks)}{_more(session)}")
    for note in _session_notes(page):
        click.echo(note, err=True)
    if any(session.hit is not None for session in page.sessions):
        _write_how_to_open()


def _session_facts(session: SessionHits) -> Iterator[str]:
    title = next(((name.text, name.marks) for name in session.names if name.field == "title"), None)
    yield formatting.moment(session.updated_at)
    yield one_line(session.title or formatting.UNKNOWN) if title is None else _marked(*title)
    if session.project_name is not None:
        yield click.style(one_line(session.project_name), dim=True)


def _more(session: SessionHits) -> str:
    """How many parts of the session have the words besides the one that is shown."""
    if session.matches < 2:
        return ""
    exact, least = f"+{formatting.count(session.matches - 1)}", f"{formatting.count(session.matches)}+"
    return click.style(f"  {exact if session.matches_is_exact else least} in this session", dim=True)


def _session_notes(page: SessionSearchPage) -> Iterator[str]:
    if not page.sessions:
        yield from _nothing(page.suggestion)
    elif page.next_cursor is not None:
        total = "" if page.total is None else f" of {formatting.count(page.total)}{'' if page.total_is_exact else '+'}"
        yield f"{formatting.count(len(page.sessions))}{total} sessions; --limit shows more."
    yield from _also(page)


def _sessions_document(page: SessionSearchPage) -> SessionSearchDocument:
    return {
        "sessions": [
            {
                "session_id": session.session_id,
                "agent": session.agent,
                "title": session.title,
                "project": session.project,
                "project_name": session.project_name,
                "updated_at": formatting.iso(session.updated_at),
                "names": [
                    {"field": name.field, "text": name.text, "marks": [list(mark) for mark in name.marks]}
                    for name in session.names
                ],
                "hit": None if session.hit is None else _hit_document(session.hit),
                "matches": session.matches,
                "matches_is_exact": session.matches_is_exact,
            }
            for session in page.sessions
        ],
        "next_cursor": page.next_cursor,
        "total": page.total,
        "total_is_exact": page.total_is_exact,
        "unindexed": page.unindexed,
        "suggestion": page.suggestion,
        "note": page.note,
    }


def _write_hits(store: Store, page: SearchPage) -> None:
    short = shown_ids(store, (hit.places[0].session_id for hit in page.hits))
    for hit in page.hits:
        click.echo("  ".join([click.style(one_line(short[hit.places[0].session_id]), fg="cyan"), *_facts(hit)]))
        click.echo(f"  {_marked(hit.snippet, hit.marks)}")
    for note in _notes(page):
        click.echo(note, err=True)
    if page.hits:
        _write_how_to_open()


def _write_how_to_open() -> None:
    if is_terminal():
        click.echo(dim("turnlog show SESSION --at MESSAGE shows a hit and what is around it."), err=True)


def _facts(hit: Hit) -> Iterator[str]:
    yield formatting.moment(hit.created_at)
    yield _kind(hit)
    yield click.style(one_line(hit.message_id), dim=True)
    yield click.style(one_line(hit.places[0].title or formatting.UNKNOWN), dim=True)
    if len(hit.places) > 1:
        yield click.style(f"and {formatting.plural(len(hit.places) - 1, 'session')} more", dim=True)


def _kind(hit: Hit) -> str:
    return one_line(f"{hit.field} of {hit.tool_name}" if hit.tool_name else f"{hit.role} {hit.field}")


def _marked(text: str, marks: Iterable[tuple[int, int]]) -> str:
    """A text with its matches highlighted."""
    styled: list[str] = []
    end = 0
    for start, stop in marks:
        styled += [plain(text[end:start]), click.style(plain(text[start:stop]), bold=True, fg="yellow")]
        end = stop
    return "".join([*styled, plain(text[end:])])


def _notes(page: SearchPage) -> Iterator[str]:
    if not page.hits:
        yield from _nothing(page.suggestion)
    elif page.next_cursor is not None:
        total = "" if page.total is None else f" of {formatting.count(page.total)}{'' if page.total_is_exact else '+'}"
        yield f"{formatting.count(len(page.hits))}{total}; --limit shows more."
    yield from _also(page)


def _nothing(suggestion: str | None) -> Iterator[str]:
    yield "Nothing found."
    if suggestion is not None:
        yield f"Did you mean: {one_line(suggestion)}"


def _also(page: SearchPage | SessionSearchPage) -> Iterator[str]:
    if page.note is not None:
        yield one_line(page.note)
    if page.unindexed:
        count = formatting.plural(page.unindexed, "message")
        yield f"{count} not searchable yet: `turnlog sync` indexes them."
