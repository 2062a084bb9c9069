"""`turnlog sessions`: the list of sessions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from turnlog.cli import figures
from turnlog.cli.lookup import abbreviations, complete_session, find_agent, find_session, open_existing
from turnlog.cli.options import examples, json_option, limit_option, period_options, store_option
from turnlog.cli.terminal import Column, is_terminal, write_json_text, write_table
from turnlog.store.base import SessionFilter, SessionSort
from turnlog.store.values import Page

if TYPE_CHECKING:
    from turnlog.model import Session


@click.command(
    epilog=examples(
        "turnlog sessions --since 7d",
        "turnlog sessions --project webshop --sort cost --limit 10",
        "turnlog sessions --parent 3f2a91c0             # its subagents and forks",
        "turnlog sessions --starred --tag release",
        "turnlog sessions --json | jq -r '.items[].id'",
    )
)
@click.option("--agent", help="Only this agent, as `turnlog agents` names it, or the beginning of that.")
@click.option("--project", help="Only this project: its path or name.")
@click.option("--model", help="Only sessions that called this model.")
@click.option("--branch", help="Only this git branch.")
@click.option("--title", help="Only titles that contain this.")
@click.option(
    "--parent", metavar="SESSION", shell_complete=complete_session, help="Only what came out of this session."
)
@click.option("--starred", is_flag=True, default=None, help="Only those with a star.")
@click.option("--tag", help="Only those with this tag.")
@click.option("--archived", is_flag=True, help="Only those that were put away; else only the others.")
@click.option("--subagents", is_flag=True, help="List subagents too.")
@period_options()
@click.option("--sort", type=click.Choice(get_args(SessionSort)), default="updated", show_default=True)
@limit_option(50)
@click.option("--cursor", help="Go on where `next_cursor` of the last page says.")
@json_option
@store_option
def sessions(
    *,
    parent: str | None,
    sort: SessionSort,
    limit: int,
    cursor: str | None,
    as_json: bool,
    store_path: Path,
    **filters: Any,
) -> None:
    """List sessions, the last used first."""
    with open_existing(store_path) as store:
        filters["agent"] = find_agent(store, filters["agent"])
        wanted = SessionFilter(**filters, parent=None if parent is None else find_session(store, parent).id)
        try:
            page = store.sessions(wanted, sort=sort, limit=limit, cursor=cursor, count=True)
        except ValueError as error:
            raise click.UsageError(str(error)) from error
    if as_json:
        _write_document(page)
    else:
        _write_list(page)


def _write_document(page: Page[Session]) -> None:
    import json

    from turnlog.model.codec import encode

    items = ",\n".join(encode(session).decode() for session in page.items)
    rest = json.dumps({"next_cursor": page.next_cursor, "total": page.total})
    write_json_text(f'{{"items":[{items}],{rest[1:]}\n')


def _write_list(page: Page[Session]) -> None:
    columns = (
        Column("Session", style="cyan"),
        Column("Updated"),
        Column("Project", gives_way=True),
        Column("Title", gives_way=True),
        Column("Prompts", right=True),
        Column("Tools", right=True),
        Column("Cost", right=True),
    )
    short = abbreviations(session.external_id for session in page.items)
    rows = [
        (
            short[session.external_id] if is_terminal() else session.id,
            figures.moment(session.updated_at),
            session.project.name if session.project else figures.UNKNOWN,
            session.title or figures.UNKNOWN,
            figures.count(session.counts.prompts),
            figures.count(session.counts.tool_calls),
            figures.money(session.cost.amount if session.cost else None, session.unpriced_calls),
        )
        for session in page.items
    ]
    write_table(columns, rows)
    if page.next_cursor is not None:
        click.echo(f"{len(page.items)} of {figures.plural(page.total or 0, 'session')}; --limit shows more.", err=True)
