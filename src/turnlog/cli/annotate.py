"""`turnlog annotate`: what the user says about a session. It is kept in the store, and no log is touched."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from turnlog.cli import figures
from turnlog.cli.lookup import complete_session, find_session, open_existing
from turnlog.cli.options import examples, json_option, store_option
from turnlog.cli.terminal import one_line, plain, write_json

if TYPE_CHECKING:
    from turnlog.store.values import Annotations


@click.command(
    epilog=examples(
        'turnlog annotate 3f2a91c0 --title "Moves the till to Postgres" --star',
        "turnlog annotate 3f2a91c0 --tag release --untag draft",
        "turnlog annotate 3f2a91c0 --archive            # no longer in lists",
        "turnlog annotate 3f2a91c0                      # what was said",
    )
)
@click.argument("session", shell_complete=complete_session)
@click.option("--title", help="What to call it; nothing gives the agent's own title back.")
@click.option("--star/--no-star", "starred", default=None, help="Whether it has a star.")
@click.option("--archive/--no-archive", "archived", default=None, help="Whether it is put away.")
@click.option("--tag", "tags", multiple=True, help="Add a tag. May be given more than once.")
@click.option("--untag", "untags", multiple=True, help="Take a tag away. May be given more than once.")
@click.option("--note", help="What to remember; nothing empties it.")
@json_option
@store_option
def annotate(
    *, session: str, tags: tuple[str, ...], untags: tuple[str, ...], as_json: bool, store_path: Path, **facts: Any
) -> None:
    """Say something about a session, or show what was said. It stays when logs are read anew."""
    from msgspec.structs import asdict

    from turnlog.store.values import Annotations, AnnotationsChange

    with open_existing(store_path) as store:
        session_id = find_session(store, session).id
        annotations = store.annotations([session_id]).get(session_id, Annotations())
        change = AnnotationsChange(**{name: value for name, value in facts.items() if value is not None})
        if tags or untags:
            change["tags"] = _changed(annotations.tags, tags, untags)
        if change:
            annotations = store.annotate(session_id, **change)
    if as_json:
        write_json({"session": session_id, **asdict(annotations)})
    else:
        click.echo("\n".join(_lines(session_id, annotations)))


def _changed(tags: Iterable[str], added: Iterable[str], removed: Iterable[str]) -> list[str]:
    """The tags as they will be. One is a line, whatever the shell gave; spaces around it are none of it."""
    gone = {*removed, *map(one_line, removed), ""}
    return [tag for tag in (*tags, *map(one_line, added)) if tag not in gone]


def _lines(session_id: str, annotations: Annotations) -> list[str]:
    marks = [word for word, holds in (("starred", annotations.starred), ("archived", annotations.archived)) if holds]
    facts = {
        "title": annotations.title,
        "marks": ", ".join(marks),
        "tags": ", ".join(annotations.tags),
        "note": annotations.note,
    }
    return [session_id, *(_line(name, value or figures.UNKNOWN) for name, value in facts.items())]


def _line(name: str, value: str) -> str:
    """A fact under its name; its further lines stand under the first."""
    head = f"  {name}: "
    return head + plain(value).replace("\n", "\n" + " " * len(head))
