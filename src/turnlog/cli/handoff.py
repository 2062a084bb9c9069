"""`turnlog handoff`: write a session as a session of another agent, or undo that."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypedDict

import click

from turnlog.cli import formatting
from turnlog.cli.fresh_store import fresh_store_option, open_fresh
from turnlog.cli.options import CommandT, WholeNumber, complete_session, examples, find_session, json_option
from turnlog.cli.terminal import write_json
from turnlog.errors import NotFoundError
from turnlog.plain_text import one_line, plain
from turnlog.store.names import unknown_name

if TYPE_CHECKING:
    from turnlog.cli.documents import HandoffDocument, HandoffUndoDocument
    from turnlog.handoff import HandoffPlan, Window
    from turnlog.store.base import Store


NEW_SESSION: Final = "NEW-SESSION"
"""Stands in a command for the id of a session that is not written."""


class WindowOptions(TypedDict):
    """The options of a window."""

    whole: bool
    since: str | None
    until: str | None
    max_tokens: int | None


class HandoffOptions(WindowOptions):
    """All options that shape a hand-over."""

    reasoning: Literal["omit", "text"]
    subagents: bool
    folder: Path | None


_OPTIONS = (
    click.option("--whole", is_flag=True, help="Also what was compacted or rewound, and not only the active branch."),
    click.option("--from", "since", metavar="MESSAGE", help="Begin with the turn of this message."),
    click.option("--at", "until", metavar="MESSAGE", help="End with this message."),
    click.option(
        "--max-tokens",
        type=WholeNumber(min=1),
        metavar="N",
        help="At most about so many tokens: the first turns are left out.",
    ),
    click.option(
        "--reasoning",
        type=click.Choice(["omit", "text"]),
        default="omit",
        show_default=True,
        help="Leave reasoning out, or carry it as text.",
    ),
    click.option("--subagents", is_flag=True, help="Carry transcripts of subagents after the results of their calls."),
    click.option(
        "--folder",
        metavar="DIR",
        type=click.Path(path_type=Path, file_okay=False),
        help="Where the new session works, if not where the old one did.",
    ),
)


def handoff_options(command: CommandT) -> CommandT:
    """The options that `HandoffOptions` has."""
    return reduce(lambda made, option: option(made), reversed(_OPTIONS), command)


@click.command(
    epilog=examples(
        "turnlog handoff 3f2a91c0 --to codex --dry-run     # shows what is carried and what is lost",
        "turnlog handoff 3f2a91c0 --to codex",
        "turnlog handoff 3f2a91c0 --to gemini --max-tokens 100000",
        "turnlog handoff undo codex:01a2…                  # as long as nobody has gone on with it",
    )
)
@click.argument("words", metavar="SESSION | undo SESSION", nargs=-1, required=True, shell_complete=complete_session)
@click.option("--to", "target", metavar="AGENT", help="The agent that goes on: its name or its program.")
@handoff_options
@click.option("--dry-run", is_flag=True, help="Show what would be written and lost, and write nothing.")
@json_option
@fresh_store_option
def handoff(
    words: Sequence[str],
    target: str | None,
    dry_run: bool,
    as_json: bool,
    store_path: Path,
    **options: object,
) -> None:
    """Write a session as a new session of another agent, which can then go on with it.

    Nothing that exists is changed. `turnlog resume --in AGENT` does the same and starts the agent.
    """
    with open_fresh(store_path) as store:
        match list(words):
            case ["undo", session_id]:
                _undo(store, find_session(store, session_id).id, dry_run=dry_run, as_json=as_json)
            case ["undo"]:
                raise click.UsageError("Name the session to undo: turnlog handoff undo SESSION.")
            case [session_id] if target is not None:
                planned = plan_handoff(store, find_session(store, session_id).id, target, options)
                if not dry_run:
                    planned.write()
                if as_json:
                    write_json(document_of(planned, is_written=not dry_run))
                else:
                    write_plan(planned, is_written=not dry_run)
            case [_]:
                raise click.UsageError("Missing option '--to'.")
            case _:
                raise click.UsageError("Expected one session.")


def plan_handoff(store: Store, session_id: str, target: str, options: dict[str, object]) -> HandoffPlan:
    """The plan for a command's options (`HandoffOptions`)."""
    from turnlog import handoff as handoffs

    chosen: HandoffOptions = options  # pyright: ignore[reportAssignmentType]  # click passes them by name
    return handoffs.plan(
        store,
        session_id,
        _target_name(target),
        window=window_of(chosen),
        reasoning=chosen["reasoning"],
        subagents=chosen["subagents"],
        folder=chosen["folder"],
    )


def is_changed(options: dict[str, object]) -> bool:
    """Whether any option of `HandoffOptions` was given."""
    return any(value not in (None, False, "omit") for value in options.values())


def window_of(options: WindowOptions) -> Window:
    """The window that a command's options name."""
    from turnlog.handoff import Window

    return Window(whole=options["whole"], since=options["since"], until=options["until"], tokens=options["max_tokens"])


def _target_name(text: str) -> str:
    """The name of an agent that was named by itself or by its program. Raises NotFoundError if there is none."""
    from turnlog import agents

    found = [agent.name for agent in agents.agents() if agent.handoff and agent.command is not None]
    named = next((name for name in found if text in (name, _program(name))), text)
    if named not in found and named not in agents.agent_names():
        raise NotFoundError(unknown_name("agent", text, found))
    return named


def _program(name: str) -> str:
    from turnlog import agents

    form = agents.agent(name).command
    return form.program if form else name


def write_plan(planned: HandoffPlan, *, is_written: bool, err: bool = False) -> None:
    """Say what is carried and what is not, where it is written, and how to go on. Only what is written has an id."""

    def say(text: str) -> None:
        click.echo(plain(text), err=err)

    title = one_line(planned.session.title or planned.session.id)
    carried = ", ".join(
        [
            formatting.plural(planned.turns, "turn"),
            formatting.plural(planned.messages, "message"),
            formatting.plural(planned.tool_calls, "tool call"),
            f"about {formatting.tokens(planned.tokens)} tokens",
        ]
    )
    say(f"{title}  {planned.session.id} -> {planned.target.display_name}")
    say(f"Carried: {carried}")
    for sentence in (*(each.sentence for each in planned.summary), *planned.notes):
        say(f"  {sentence}")
    size = formatting.size(planned.new.size)
    if is_written:
        say(f"Written: {planned.session_id} ({size})")
    else:
        say(f"Would be written: a session of {planned.target.display_name} ({size})")
    for path in planned.paths if is_written else planned.places:
        say(f"  {path}")
    verb = "Go on" if is_written else "Would go on"
    say(f"{verb}: cd {shlex.quote(str(planned.folder))} && {shlex.join(_command(planned, is_written=is_written))}")
    if is_written:
        say(f"Undo: turnlog handoff undo {planned.session_id}")


def _command(planned: HandoffPlan, *, is_written: bool) -> list[str]:
    """What goes on with the session. Each plan has a new id, so the id of one that is not written would mislead."""
    written, external_id = planned.command, planned.new.external_id
    return [word if is_written or word != external_id else NEW_SESSION for word in written]


def document_of(planned: HandoffPlan, *, is_written: bool) -> HandoffDocument:
    """The plan for programs."""
    return {
        "from": planned.session.id,
        "to": planned.target.name,
        "session_id": planned.session_id if is_written else None,
        "paths": [str(path) for path in (planned.paths if is_written else planned.places)],
        "size": planned.new.size,
        "folder": str(planned.folder),
        "command": _command(planned, is_written=is_written),
        "turns": planned.turns,
        "messages": planned.messages,
        "tool_calls": planned.tool_calls,
        "tokens": planned.tokens,
        "notes": list(planned.notes),
        "losses": [
            {
                "kind": loss.kind,
                "message_id": loss.message_id,
                "tool_call_id": loss.tool_call_id,
                "detail": loss.detail,
            }
            for loss in planned.losses
        ],
    }


def _undo(store: Store, session_id: str, *, dry_run: bool, as_json: bool) -> None:
    from turnlog import handoff as handoffs

    removed = handoffs.undo(store, session_id, dry_run=dry_run)
    if as_json:
        found: HandoffUndoDocument = {"session_id": session_id, "removed": [str(path) for path in removed]}
        write_json(found)
        return
    if not removed:
        click.echo(f"{session_id} is gone already: its agent has deleted it.")
    verb = "Would remove" if dry_run else "Removed"
    for path in removed:
        click.echo(f"{verb} {session_id}: {plain(str(path))}")
