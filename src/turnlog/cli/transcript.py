"""A session as text for a terminal: its turns, its steps and the parts of each message.

One table says how a message of each origin is shown. All text of a log passes through `plain_text` here, which
removes control sequences. Colours are turnlog's own; whoever writes the lines into a pipe removes them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from shlex import quote
from typing import NamedTuple

import click
from msgspec import UNSET

from turnlog.cli import formatting
from turnlog.cli.terminal import SUMMARY_LENGTH, dim
from turnlog.formats.edits import edit_diff
from turnlog.formats.labels import STATES, Note, event_label, part_label
from turnlog.model import (
    CompactionEvent,
    ErrorEvent,
    Fate,
    HistoryEvent,
    InterruptEvent,
    Origin,
    Part,
    ReasoningPart,
    RecordEvent,
    RewindEvent,
    RunMetadataEvent,
    Session,
    TextPart,
    ToolCallPart,
    ToolResult,
    ToolResultEvent,
    ToolState,
)
from turnlog.model.message import command_line
from turnlog.model.parts import call_summary
from turnlog.plain_text import one_line, plain
from turnlog.store.values import PlacedMessage, SessionPreview


class Detail(NamedTuple):
    """How much is shown."""

    reasoning: bool = False
    full: bool = False
    read_spill: Callable[[str], str | None] = lambda name: None
    """The whole of an output that was written to a file of its own, by its name."""
    found: str | None = None
    """Id of the message that is shown in full in any case: a search may have found any word of it."""


def part_lines(part: Part, detail: Detail) -> Iterator[str]:
    """The lines of one part."""
    match part:
        case TextPart():
            yield from text_lines(part)
        case ReasoningPart():
            yield from _reasoning(part, detail)
        case ToolCallPart():
            yield from _tool_call(part, detail)
        case _:
            note = part_label(part) or Note("Unknown part")
            texts = [one_line(" · ".join(note.words)), *([summary(note.json)] if note.json is not None else [])]
            yield dim(f"[{note.name.lower()}: {': '.join(texts)}]")


def text_lines(part: TextPart) -> Iterator[str]:
    """The lines of a text, and its whole size if it was cut when it was stored."""
    yield from plain(part.text).splitlines() or [""]
    if part.blob is not None and part.blob.size > len(part.text.encode(errors="replace")):
        yield dim(f"… {formatting.size(part.blob.size)} in all; --full shows the rest")


def _reasoning(part: ReasoningPart, detail: Detail) -> Iterator[str]:
    if part.redacted or not part.text:
        yield dim("∴ reasoning, withheld by the provider")
    elif detail.reasoning or detail.full:
        yield dim("∴ reasoning")
        for line in plain(part.text).splitlines():
            yield dim(f"  {line}")
    else:
        yield dim(f"∴ reasoning: {summary(part.text)}")


_COLOURS: dict[ToolState, str | None] = {ToolState.OUTPUT_AVAILABLE: None, ToolState.OUTPUT_ERROR: "red"}
"""Colours of finished calls; any other state is yellow."""


def _tool_call(part: ToolCallPart, detail: Detail) -> Iterator[str]:
    colour = _COLOURS.get(part.state, "yellow")
    exit_code = next((result.exit_code for result in reversed(part.results) if result.exit_code), None)
    ends = [
        STATES[part.state] if exit_code is None else f"{STATES[part.state]} (exit {exit_code})",
        *([formatting.duration(took)] if (took := _duration(part)) is not None else []),
    ]
    name = click.style(one_line(part.tool_name), bold=True)
    about = "" if detail.full else _about(part)
    yield f"• {name}{f' {about}' if about else ''}  {click.style(' · '.join(ends), fg=colour, dim=colour is None)}"
    if part.child_session_id is not None:
        yield dim(f"  ↳ subagent: turnlog show {quote(one_line(part.child_session_id))}")
    if part.state is ToolState.OUTPUT_DENIED and part.approval is not None and part.approval.reason:
        yield dim(f"  {summary(part.approval.reason)}")
    if detail.full:
        diff = edit_diff(part, part.results)
        yield from _indented(_input(part), "  ◂ ") if diff is None else _diff(diff)
        for result in part.results:
            yield from _result(result, detail)
    elif part.state is ToolState.OUTPUT_ERROR and part.results:
        reason = part.results[-1].error_text or part.results[-1].output_text
        if reason:
            yield click.style(f"  {summary(reason)}", fg="red")


def _about(part: ToolCallPart) -> str:
    """The purpose of a call in a few words."""
    return summary(call_summary(part) or part.title or _exact_input(part))


def _exact_input(part: ToolCallPart) -> str:
    return part.input_text or "" if part.input is UNSET else bytes(part.input).decode()


def _duration(part: ToolCallPart) -> int | None:
    """Milliseconds from call to last result, from the agent or from the timestamps; never negative (R-C9)."""
    for result in reversed(part.results):
        if result.duration_ms is not None:
            return result.duration_ms
        if result.completed_at is not None and part.started_at is not None:
            return max(0, round((result.completed_at - part.started_at).total_seconds() * 1000))
    return None


def _input(part: ToolCallPart) -> str:
    if part.input is UNSET:
        return part.input_text or ""
    value = part.input_value()
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)


_DIFF_COLOURS: dict[str, str] = {"+": "green", "-": "red", "@": "cyan"}
"""First character of a line of a diff -> its colour."""


def _diff(diff: str) -> Iterator[str]:
    return (click.style(line, fg=_DIFF_COLOURS.get(line[4:5])) for line in _indented(diff, "  ◂ "))


def _result(result: ToolResult, detail: Detail) -> Iterator[str]:
    whole = detail.read_spill(result.spilled_to) if result.spilled_to is not None else None
    if whole is not None:
        yield from _indented(whole, "  ▸ ")
    for part in result.content if whole is None else ():
        lines = (click.unstyle(line) for line in part_lines(part, detail))
        yield from _indented(part.text if isinstance(part, TextPart) else "\n".join(lines), "  ▸ ")
    if result.error_text is not None and result.error_text != result.output_text:
        yield from (click.style(line, fg="red") for line in _indented(result.error_text, "  ▸ "))


def _indented(text: str, mark: str) -> Iterator[str]:
    for number, line in enumerate(plain(text).splitlines()):
        yield (mark if number == 0 else " " * len(mark)) + line


def summary(text: str) -> str:
    """A text in one line, with its length where most of it is not shown."""
    line = one_line(text, SUMMARY_LENGTH)
    return f"{line} ({formatting.count(len(text))} characters)" if line.endswith("…") else line


def transcript(
    session: Session,
    messages: Iterable[PlacedMessage],
    events: Iterable[HistoryEvent],
    detail: Detail,
    *,
    status: str | None = None,
    preview: SessionPreview | None = None,
    resume: Sequence[str] = (),
) -> Iterator[str]:
    """The lines of a session, in the order of the log.

    Args:
        session: Whose.
        messages: In order; read as the lines are taken.
        events: What happened besides messages and results of known calls, in order.
        detail: How much is shown.
        status: What it is doing, in words.
        preview: How long it was active, and what it cost with its subagents.
        resume: The command that goes on with it, and why it cannot be started as things are.
    """
    yield from _head(session, status, preview, resume)
    waiting = iter(events)
    event = next(waiting, None)
    turn: int | None = None
    for placed in messages:
        while event is not None and event.position < placed.membership.position:
            yield from _event(event, detail)
            event = next(waiting, None)
        if placed.membership.turn not in (None, turn):
            turn = placed.membership.turn
            yield from _rule(f"turn {turn}", placed.message.created_at and formatting.moment(placed.message.created_at))
        yield from _message(placed, detail._replace(full=True) if placed.message.id == detail.found else detail)
    while event is not None:
        yield from _event(event, detail)
        event = next(waiting, None)


def _head(session: Session, status: str | None, preview: SessionPreview | None, resume: Sequence[str]) -> Iterator[str]:
    yield click.style(one_line(session.title or session.id), bold=True)
    place = session.project.path if session.project else session.cwd
    detail = ", ".join(filter(None, (session.worktree and f"worktree {session.worktree}", session.git_branch)))
    branch = f" ({detail})" if detail else ""
    counts = session.counts
    with_subagents = formatting.cost_with_subagents(preview, session.usage.usage.exactness) if preview else ""
    more = f" ({with_subagents} with subagents)" if with_subagents else ""
    failed = f" ({formatting.count(counts.failed_tool_calls)} failed)" if counts.failed_tool_calls else ""
    facts = (
        session.id,
        f"{place}{branch}" if place else None,
        ", ".join(session.models) or None,
        f"{formatting.moment(session.created_at)} to {formatting.moment(session.updated_at)}{_times(session, preview)}",
        f"{formatting.plural(counts.prompts, 'prompt')}, {formatting.plural(counts.steps, 'step')},"
        f" {formatting.plural(counts.tool_calls, 'tool call')}{failed}, {_cost(session)}{more}",
        status,
        *(f"{link.kind} of {link.parent_session_id}" for link in session.relationships),
        *(f"resume: {line}" for line in resume),
    )
    for fact in facts:
        if fact is not None:
            yield dim(one_line(fact))


def _times(session: Session, preview: SessionPreview | None) -> str:
    """How long it took from first to last, and how long it was active."""
    span = formatting.span(session)
    active = preview.active_ms if preview else None
    known = (
        (f"{formatting.duration(span)} in all" if span is not None else None),
        (f"{formatting.duration(active)} active" if active is not None else None),
    )
    words = ", ".join(filter(None, known))
    return f" ({words})" if words else ""


def _cost(session: Session) -> str:
    if session.cost is not None:
        return formatting.cost_of(session)
    if not session.usage.calls and not session.totals:
        shared = next((link.parent_session_id for link in session.relationships), None)
        return f"no cost: the messages that it shares count in {shared}" if shared else "no cost: it has no model calls"
    if session.reported_cost is not None:
        return f"{formatting.money(session.reported_cost.amount)} according to the agent"
    if session.usage.usage.total is None:
        return "cost unknown: no call has a count of tokens"
    return f"cost unknown: there is no price for {', '.join(session.models) or 'its model'}"


def _rule(*words: str | None) -> Iterator[str]:
    yield ""
    yield click.style(f"── {' · '.join(word for word in words if word)} ──", fg="cyan")


# Messages


class _Style(NamedTuple):
    """How the text of a message that no model wrote is shown."""

    mark: str
    """Before each line; with a `name`, before the only one."""
    name: str | None = None
    """Shown in one line under this name, unless `full`."""


_STYLES: dict[Origin | None, _Style] = {
    Origin.PROMPT: _Style("> "),
    Origin.COMMAND: _Style("> "),
    Origin.SHELL: _Style("> "),
    Origin.SUBAGENT_PROMPT: _Style("> "),
    Origin.COMMAND_OUTPUT: _Style("· ", "command output"),
    Origin.SHELL_OUTPUT: _Style("· ", "shell output"),
    Origin.NOTIFICATION: _Style("· ", "notification"),
    Origin.COMPACTION: _Style("· ", "summary"),
    Origin.HARNESS: _Style("· ", "harness"),
}


def _message(placed: PlacedMessage, detail: Detail) -> Iterator[str]:
    if placed.message.role == "assistant":
        yield from _step(placed, detail)
        return
    message = placed.message
    style = _STYLES.get(message.origin, _Style("· ", message.role))
    fate = _fate(placed)
    typed = command_line(message)
    for part in message.parts if typed is None or detail.full else (TextPart(text=typed),):
        if not isinstance(part, TextPart):
            yield from part_lines(part, detail)
        elif style.name is not None and not detail.full:
            yield dim(f"{style.mark}{style.name}{fate}: {summary(part.text)}")
        else:
            yield ""
            yield from _marked(part, style.mark, fate, quiet=style.name is not None)


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
        formatting.clock(message.created_at) if message.created_at else None,
        formatting.money(cost.amount) if cost else None,
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
        yield from _labelled_event(event, note)
    elif isinstance(event, RecordEvent | RunMetadataEvent) and detail.full:
        yield dim(f"· {one_line(event.kind)}")


def _labelled_event(event: HistoryEvent, note: Note) -> Iterator[str]:
    name = note.name.lower()
    match event:
        case CompactionEvent():
            tokens = [
                formatting.tokens(count) for count in (event.tokens_before, event.tokens_after) if count is not None
            ]
            yield from _rule(name, *map(one_line, note.words), " to ".join(tokens))
        case RewindEvent():
            yield from _rule(name)
        case InterruptEvent():
            yield click.style("■ " + " during ".join((name, *note.words)), fg="yellow")
        case ErrorEvent():
            yield click.style(f"! {one_line(event.error_text)}", fg="red")
        case _:
            text = (
                summary(event.output_text) if isinstance(event, ToolResultEvent) else one_line(" · ".join(note.words))
            )
            yield dim(f"· {name}: {text}")
