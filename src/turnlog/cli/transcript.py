"""A session as text for a terminal: turns, steps, and what happened in them, a piece at a time.

One table says how a message of each origin is shown; parts are `part_lines`. Everything a log said is made harmless
(`terminal.plain`) here; colours are ours, and are left out by whoever writes them into a pipe.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import click

from turnlog.cli import figures
from turnlog.cli.part_lines import Detail, part_lines, summary, text_lines
from turnlog.cli.terminal import dim, one_line
from turnlog.formats.labels import Note, event_label
from turnlog.model import (
    CompactionEvent,
    ErrorEvent,
    Fate,
    HistoryEvent,
    InterruptEvent,
    Origin,
    RecordEvent,
    RewindEvent,
    RunMetadataEvent,
    Session,
    TextPart,
    ToolResultEvent,
)
from turnlog.model.message import command_line
from turnlog.store.values import PlacedMessage


def transcript(
    session: Session, messages: Iterable[PlacedMessage], events: Iterable[HistoryEvent], detail: Detail
) -> Iterator[str]:
    """The lines of a session, in the order in which things were logged.

    Args:
        session: Whose.
        messages: In order; read as the lines are taken.
        events: What happened besides messages and results of known calls, in order.
        detail: How much is shown.
    """
    yield from _head(session)
    waiting = iter(events)
    event = next(waiting, None)
    turn: int | None = None
    for placed in messages:
        while event is not None and event.position < placed.membership.position:
            yield from _event(event, detail)
            event = next(waiting, None)
        if placed.membership.turn not in (None, turn):
            turn = placed.membership.turn
            yield from _rule(f"turn {turn}", placed.message.created_at and figures.moment(placed.message.created_at))
        yield from _message(placed, detail)
    while event is not None:
        yield from _event(event, detail)
        event = next(waiting, None)


def _head(session: Session) -> Iterator[str]:
    yield click.style(one_line(session.title or session.id), bold=True)
    place = session.project.path if session.project else session.cwd
    branch = f" ({session.git_branch})" if session.git_branch else ""
    counts = session.counts
    failed = f" ({figures.count(counts.failed_tool_calls)} failed)" if counts.failed_tool_calls else ""
    facts = (
        session.id,
        f"{place}{branch}" if place else None,
        ", ".join(session.models) or None,
        f"{figures.moment(session.created_at)} to {figures.moment(session.updated_at)}",
        f"{figures.plural(counts.prompts, 'prompt')}, {figures.plural(counts.steps, 'step')},"
        f" {figures.plural(counts.tool_calls, 'tool call')}{failed}, {_cost(session)}",
        *(f"{link.kind} of {link.parent_session_id}" for link in session.relationships),
    )
    for fact in facts:
        if fact is not None:
            yield dim(one_line(fact))


def _cost(session: Session) -> str:
    if session.cost is None and session.reported_cost is not None:
        return f"{figures.money(session.reported_cost.amount)} as the agent says"
    return figures.money(session.cost.amount, session.unpriced_calls) if session.cost else "cost unknown"


def _rule(*words: str | None) -> Iterator[str]:
    yield ""
    yield click.style(f"── {' · '.join(word for word in words if word)} ──", fg="cyan")


# Messages


class _Look(NamedTuple):
    """How the text of a message that no model wrote is shown."""

    mark: str
    """Before each line; with a `name`, before the only one."""
    name: str | None = None
    """Told in one line under this name, unless everything is wanted."""


_LOOKS: dict[Origin | None, _Look] = {
    Origin.PROMPT: _Look("> "),
    Origin.COMMAND: _Look("> "),
    Origin.SHELL: _Look("> "),
    Origin.SUBAGENT_PROMPT: _Look("> "),
    Origin.COMMAND_OUTPUT: _Look("· ", "command output"),
    Origin.SHELL_OUTPUT: _Look("· ", "shell output"),
    Origin.NOTIFICATION: _Look("· ", "notification"),
    Origin.COMPACTION: _Look("· ", "summary"),
    Origin.HARNESS: _Look("· ", "harness"),
}


def _message(placed: PlacedMessage, detail: Detail) -> Iterator[str]:
    if placed.message.role == "assistant":
        yield from _step(placed, detail)
        return
    message = placed.message
    look = _LOOKS.get(message.origin, _Look("· ", message.role))
    fate = _fate(placed)
    typed = command_line(message)
    for part in message.parts if typed is None or detail.full else (TextPart(text=typed),):
        if not isinstance(part, TextPart):
            yield from part_lines(part, detail)
        elif look.name is not None and not detail.full:
            yield dim(f"{look.mark}{look.name}{fate}: {summary(part.text)}")
        else:
            yield ""
            yield from _marked(part, look.mark, fate, quiet=look.name is not None)


def _marked(part: TextPart, mark: str, fate: str, *, quiet: bool) -> Iterator[str]:
    for number, line in enumerate(text_lines(part)):
        shown = dim(mark + line) if quiet else click.style(mark + line, fg="green", bold=True)
        yield shown if number or not fate else shown + dim(fate)


def _step(placed: PlacedMessage, detail: Detail) -> Iterator[str]:
    message, membership = placed.message, placed.membership
    cost = placed.cost or message.cost
    head = [
        f"step {membership.step}" if membership.step is not None else "answer",
        one_line(message.model or ""),
        figures.clock(message.created_at) if message.created_at else None,
        figures.money(cost.amount) if cost else None,
    ]
    yield ""
    yield dim("  ".join(word for word in head if word) + _fate(placed))
    for part in message.parts:
        yield from part_lines(part, detail)
    if message.error is not None:
        yield click.style(f"! {one_line(message.error.text)}", fg="red")


def _fate(placed: PlacedMessage) -> str:
    fate = placed.membership.fate
    return "" if fate is Fate.ACTIVE else f" [{fate}]"


# Events


def _event(event: HistoryEvent, detail: Detail) -> Iterator[str]:
    note = event_label(event)
    if note is not None:
        yield from _noted(event, note)
    elif isinstance(event, RecordEvent | RunMetadataEvent) and detail.full:
        yield dim(f"· {one_line(event.kind)}")


def _noted(event: HistoryEvent, note: Note) -> Iterator[str]:
    name = note.name.lower()
    match event:
        case CompactionEvent():
            tokens = [figures.tokens(count) for count in (event.tokens_before, event.tokens_after) if count is not None]
            yield from _rule(name, *map(one_line, note.words), " to ".join(tokens))
        case RewindEvent():
            yield from _rule(name)
        case InterruptEvent():
            yield click.style("■ " + " during ".join((name, *note.words)), fg="yellow")
        case ErrorEvent():
            yield click.style(f"! {one_line(event.error_text)}", fg="red")
        case _:
            said = (
                summary(event.output_text) if isinstance(event, ToolResultEvent) else one_line(" · ".join(note.words))
            )
            yield dim(f"· {name}: {said}")
