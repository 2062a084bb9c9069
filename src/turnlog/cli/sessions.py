"""`turnlog sessions` and `annotate`: the list of sessions, and what the user says about one."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from turnlog.cli import formatting
from turnlog.cli.filters import agent_option, model_option, project_option
from turnlog.cli.fresh_store import fresh_store_option, note_unread, open_fresh
from turnlog.cli.options import (
    EitherFlag,
    complete_session,
    examples,
    find_session,
    json_option,
    limit_option,
    open_existing,
    period_options,
    store_option,
)
from turnlog.cli.short_ids import shown_ids
from turnlog.cli.status import status as status_text
from turnlog.cli.terminal import Column, write_json, write_json_text, write_table
from turnlog.plain_text import one_line, plain
from turnlog.store.base import SessionFilter
from turnlog.store.choices import SESSION_HAVINGS, SESSION_SORTS, SESSION_STATUSES, SessionSort, SessionStatus
from turnlog.store.names import check_session_names, find_agent, find_model, find_project
from turnlog.store.values import Page

if TYPE_CHECKING:
    from turnlog.model import Session
    from turnlog.store.base import Store
    from turnlog.store.session_state import SessionState
    from turnlog.store.values import Annotations


_STATUSES = (
    "Running: its process or its last record says so. Waiting: for a permission or an answer of yours. Done: the turn"
    " has ended. Failed: with an error of the provider. Stopped: by you. Killed: its process ended within a turn."
    " Idle: nothing new for two minutes within a turn."
)


@click.command(
    epilog=examples(
        "turnlog sessions --since 7d",
        "turnlog sessions --project webshop --sort cost --limit 10",
        "turnlog sessions --parent 3f2a91c0             # its subagents and forks",
        "turnlog sessions --status running              # what each is doing now",
        "turnlog sessions --status waiting              # for you",
        "turnlog sessions --having failed-call --since 7d",
        "turnlog sessions --starred --tag release",
        "turnlog sessions --json | jq -r '.items[].id'",
    )
)
@agent_option
@project_option
@model_option("Only sessions that called this model.")
@click.option("--branch", help="Only this git branch, or the worktree of this name; also forks that name no branch.")
@click.option("--title", help="Only titles that contain this.")
@click.option(
    "--parent",
    metavar="SESSION",
    shell_complete=complete_session,
    help="Only subagents, forks and continuations of this session.",
)
@click.option("--starred", is_flag=True, default=None, help="Only sessions with a star.")
@click.option("--tag", help="Only sessions with this tag.")
@click.option("--task", help="Only sessions of this task.")
@click.option(
    "--having",
    type=click.Choice(SESSION_HAVINGS),
    help="Only sessions with one of these, also in their subagents.",
)
@click.option(
    "--status", type=click.Choice(SESSION_STATUSES), help=f"Only sessions that are in this state. {_STATUSES}"
)
@click.option("--archived", is_flag=True, help="List only archived sessions, which are otherwise left out.")
@click.option("--subagents", is_flag=True, help="List subagents too.")
@period_options()
@click.option("--sort", type=click.Choice(SESSION_SORTS), default="updated", show_default=True)
@limit_option(50)
@click.option("--cursor", help="Continue a list: the `next_cursor` of its last page.")
@json_option
@fresh_store_option
def sessions(
    *,
    parent: str | None,
    status: SessionStatus | None,
    sort: SessionSort,
    limit: int,
    cursor: str | None,
    as_json: bool,
    store_path: Path,
    **filters: Any,
) -> None:
    """List sessions, the most recently used first."""
    with open_fresh(store_path, says_unread=False) as store:
        filters["agent"] = find_agent(store, filters["agent"])
        filters["project"] = find_project(store, filters["project"])
        filters["model"] = find_model(store, filters["model"])
        wanted = SessionFilter(**filters, parent=None if parent is None else find_session(store, parent).id)
        try:
            page = _page(store, wanted, status, sort, limit, cursor)
        except ValueError as error:
            raise click.UsageError(str(error)) from error
        if not page.items:
            check_session_names(store, wanted)
        if as_json:
            _write_sessions_document(store, page)
        else:
            _write_list(store, page, with_actions=status in _WITHIN_A_TURN)
            if status is not None and not wanted.subagents and wanted.parent is None:
                click.echo("Subagents are left out; --subagents lists them too.", err=True)
        note_unread(store, store_path)


def _page(
    store: Store, wanted: SessionFilter, status: SessionStatus | None, sort: SessionSort, limit: int, cursor: str | None
) -> Page[Session]:
    if status is None:
        return store.sessions(wanted, sort=sort, limit=limit, cursor=cursor, count=True)
    from turnlog.runs.states import session_states, sessions_of_status

    def list_sessions(limit: int, cursor: str | None) -> Page[Session]:
        return store.sessions(wanted, sort=sort, limit=limit, cursor=cursor)

    return sessions_of_status(list_sessions, partial(session_states, store), status, limit, cursor)


def _write_sessions_document(store: Store, page: Page[Session]) -> None:
    import json

    from turnlog.model.codec import encode
    from turnlog.runs.states import session_states

    states = session_states(store, [session.id for session in page.items])
    # A session is encoded as it is stored, with the fields of newer versions: the state is put behind them.
    items = ",\n".join(
        f'{encode(session).decode()[:-1]},"state":{encode(states.get(session.id)).decode()}}}' for session in page.items
    )
    rest = json.dumps({"next_cursor": page.next_cursor, "total": page.total})
    write_json_text(f'{{"items":[{items}],{rest[1:]}\n')


_WITHIN_A_TURN: Final[tuple[SessionStatus, ...]] = ("running", "waiting", "idle", "killed")
"""Statuses of sessions whose last action is listed: what they do, or what they did when they went silent."""


def _write_list(store: Store, page: Page[Session], *, with_actions: bool) -> None:
    from turnlog.runs.states import session_states

    columns = (
        Column("Session", style="cyan"),
        Column("Updated"),
        Column("Agent", is_optional=True),
        Column("Status", can_shrink=True),
        Column("Project", can_shrink=True),
        Column("Title", can_shrink=True),
        *((Column("Last action", can_shrink=True),) if with_actions else ()),
        Column("Cost", right=True),
        Column("With subagents", right=True, is_optional=True),
        Column("Prompts", right=True, is_optional=True),
        Column("Tools", right=True, is_optional=True),
        Column("Active", right=True, is_optional=True),
        Column("Duration", right=True, is_optional=True),
    )
    ids = [session.id for session in page.items]
    states, previews = session_states(store, ids), store.previews(ids)
    shown = shown_ids(store, ids)
    rows = [
        (
            shown[session.id],
            formatting.moment(session.updated_at),
            session.agent,
            status_text(states.get(session.id), timed=False),
            session.project.name if session.project else formatting.UNKNOWN,
            session.title or formatting.UNKNOWN,
            *((_last_action(store, session.id, states.get(session.id)),) if with_actions else ()),
            formatting.cost_of(session),
            formatting.cost_with_subagents(previews[session.id], session.usage.usage.exactness),
            formatting.count(session.counts.prompts),
            formatting.count(session.counts.tool_calls),
            formatting.duration(previews[session.id].active_ms),
            formatting.duration(formatting.span(session)),
        )
        for session in page.items
    ]
    write_table(columns, rows)
    if page.next_cursor is not None:
        listed = len(page.items)
        found = formatting.plural(listed, "session") if page.total is None else f"{listed} of {page.total} sessions"
        click.echo(f"{found}; --limit shows more.", err=True)


def _last_action(store: Store, session_id: str, state: SessionState | None) -> str:
    """The call that a session has not finished, else what its last message did or said."""
    if state is not None and state.doing is not None:
        return f"{state.doing.tool_name} {state.doing.summary or ''}"
    from turnlog.formats.labels import subject
    from turnlog.model import TextPart, ToolCallPart

    for placed in reversed(store.messages(session_id, before=_END, limit=_LOOKED_AT, resolve_blobs=False)):
        for part in reversed(placed.message.parts):
            if isinstance(part, ToolCallPart):
                return f"{part.tool_name} {subject(part) or ''}"
            if isinstance(part, TextPart) and part.text.strip():
                return part.text.strip().partition("\n")[0][:_LONGEST_ACTION]
    return formatting.UNKNOWN


_END: Final = 1 << 62
_LOOKED_AT: Final = 3
"""The last messages of a session: of the last one the agent may have written only its reasoning yet."""

_LONGEST_ACTION: Final = 200


@click.command(
    epilog=examples(
        'turnlog annotate 3f2a91c0 --title "Moves the till to Postgres" --star',
        "turnlog annotate 3f2a91c0 --tag release --untag draft",
        "turnlog annotate 3f2a91c0 --archive            # no longer in lists",
        "turnlog annotate 3f2a91c0                      # show them",
    )
)
@click.argument("session", shell_complete=complete_session)
@click.option("--title", help="Set the title; an empty one restores the agent's own.")
@click.option("--star/--no-star", "starred", cls=EitherFlag, default=None, help="Add or remove the star.")
@click.option(
    "--archive/--no-archive",
    "archived",
    cls=EitherFlag,
    default=None,
    help="Hide the session from lists, or list it again.",
)
@click.option("--tag", "tags", multiple=True, help="Add a tag; can be repeated.")
@click.option("--untag", "untags", multiple=True, help="Remove a tag; can be repeated.")
@click.option("--note", help="Set the note; an empty one removes it.")
@click.option("--task", help="Put the session into a task; an empty one takes it out.")
@click.option("--pin", "pins", metavar="MESSAGE", multiple=True, help="Pin a message; can be repeated.")
@click.option("--unpin", "unpins", metavar="MESSAGE", multiple=True, help="Unpin a message; can be repeated.")
@json_option
@store_option
def annotate(
    *,
    session: str,
    tags: tuple[str, ...],
    untags: tuple[str, ...],
    pins: tuple[str, ...],
    unpins: tuple[str, ...],
    task: str | None,
    as_json: bool,
    store_path: Path,
    **facts: Any,
) -> None:
    """Give a session a title, a star, tags or a note, or pin messages; without options, show them.

    MESSAGE is an id as `turnlog show --json` has it. Later syncs keep all of this.
    """
    from msgspec.structs import asdict, replace

    from turnlog.hooks.send import task_of
    from turnlog.store.values import Annotations, AnnotationsChange

    if not all(map(one_line, tags)):
        raise click.UsageError("--tag needs a word: a tag cannot be empty.")
    with open_existing(store_path) as store:
        session_id = find_session(store, session).id
        annotations = store.annotations([session_id]).get(session_id, Annotations())
        change = AnnotationsChange(**{name: value for name, value in facts.items() if value is not None})
        absent = [tag for tag in untags if not {tag, one_line(tag)} & {*annotations.tags, *tags}]
        if tags or untags:
            change["tags"] = _changed_tags(annotations.tags, tags, untags)
        if pins or unpins:
            change["pins"] = [pin for pin in (*annotations.pins, *pins) if pin not in unpins]
        if change:
            annotations = store.annotate(session_id, **change)
        owner = store.session(session_id).ownership
        if task is not None:
            owner = store.change_owner(session_id, replace(owner, task=task_of(task) or None)).ownership
    for tag in absent:
        click.echo(f"turnlog: it had no tag {one_line(tag)!r}", err=True)
    if as_json:
        write_json({"session": session_id, **asdict(annotations), "task": owner.task})
    else:
        click.echo("\n".join(_annotation_lines(session_id, annotations, owner.task)))


def _changed_tags(tags: Iterable[str], added: Iterable[str], removed: Iterable[str]) -> list[str]:
    """The new tags. Each added one becomes a single line without spaces around it."""
    gone = {*removed, *map(one_line, removed), ""}
    return [tag for tag in (*tags, *map(one_line, added)) if tag not in gone]


def _annotation_lines(session_id: str, annotations: Annotations, task: str | None) -> list[str]:
    marks = [word for word, holds in (("starred", annotations.starred), ("archived", annotations.archived)) if holds]
    facts = {
        "title": annotations.title,
        "marks": ", ".join(marks),
        "tags": ", ".join(annotations.tags),
        "note": annotations.note,
        "task": task,
        "pins": ", ".join(annotations.pins),
    }
    return [session_id, *(_fact_line(name, value or formatting.UNKNOWN) for name, value in facts.items())]


def _fact_line(name: str, value: str) -> str:
    """A named value; its further lines are indented below the first."""
    head = f"  {name}: "
    return head + plain(value).replace("\n", "\n" + " " * len(head))
