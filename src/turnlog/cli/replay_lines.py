"""The lines of a replay on a terminal: one function per kind of event.

All text of a log passes through `plain_text` here, which removes control sequences. Colours are turnlog's own; whoever
writes the lines into a pipe removes them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import click

from turnlog.cli import formatting
from turnlog.cli.terminal import SUMMARY_LENGTH, dim
from turnlog.model import FilePart
from turnlog.model.parts import input_summary
from turnlog.plain_text import one_line, plain
from turnlog.replay import (
    AnswerShown,
    CompactionShown,
    DeveloperShown,
    ErrorShown,
    ImageShown,
    InterruptShown,
    ReplayEvent,
    ResponseMetadata,
    RewindShown,
    RunMetadataShown,
    ToolCallShown,
    ToolResultShown,
    TurnStarted,
    UserShown,
)


def lines_of(event: ReplayEvent, *, full: bool) -> Iterator[str]:
    """The lines of one event; `full` cuts nothing off and shows what is for the agent only."""
    yield from _EVENT_LINES[type(event)](event, full)


def _user(event: UserShown, full: bool) -> Iterator[str]:
    yield ""
    for line in plain(event.text).splitlines():
        yield click.style(f"> {line}", fg="green", bold=True)
    yield from _files((*event.images, *event.files))


def _developer(event: DeveloperShown, full: bool) -> Iterator[str]:
    name = one_line((event.origin or "developer").replace("_", " "))
    yield from _titled_text(f"· {name}", event.text, full)
    yield from _files((*event.images, *event.files))


def _turn_start(event: TurnStarted, full: bool) -> Iterator[str]:
    words = [
        *([f"turn {event.turn}"] if event.turn is not None else []),
        *([f"step {event.step}"] if event.step is not None else []),
        *([formatting.clock(event.created_at)] if event.created_at is not None else []),
    ]
    yield ""
    yield click.style(f"── {' · '.join(words)} ──" if words else "──", fg="cyan")


def _image(event: ImageShown, full: bool) -> Iterator[str]:
    yield from _files((event.image,))


def _answer(event: AnswerShown, full: bool) -> Iterator[str]:
    if event.reasoning:
        yield from _titled_text("∴ reasoning", event.reasoning, full)
    yield from plain(event.text).splitlines()
    yield from _files(event.files)


def _tool_call(event: ToolCallShown, full: bool) -> Iterator[str]:
    name = click.style(one_line(event.tool_name), bold=True)
    if full:
        yield f"• {name}"
        yield from _dim_lines(event.arguments, "  ◂ ")
    else:
        about = input_summary(event.arguments) or event.title or event.arguments
        yield f"• {name} {one_line(about, SUMMARY_LENGTH)}".rstrip()


_OUTCOMES = {"success": ("done", None), "error": ("failed", "red"), "aborted": ("aborted", "yellow")}


def _tool_result(event: ToolResultShown, full: bool) -> Iterator[str]:
    if event.duplicate:
        return
    word, colour = _OUTCOMES.get(event.outcome, (event.outcome, "yellow"))
    head = f"  {one_line(event.tool_name or 'result')} {word}"
    ends = f"{head} (exit {event.exit_code})" if event.exit_code else head
    text = event.result or event.error_text or ""
    if full:
        yield click.style(ends, fg=colour, dim=colour is None)
        yield from _dim_lines(text, "  ▸ ")
    else:
        yield click.style(
            f"{ends}: {one_line(text, SUMMARY_LENGTH)}" if text.strip() else ends, fg=colour, dim=colour is None
        )
    yield from _files(event.images)


def _interrupt(event: InterruptShown, full: bool) -> Iterator[str]:
    yield click.style("■ interrupted", fg="yellow")


def _error(event: ErrorShown, full: bool) -> Iterator[str]:
    status = f" ({event.status})" if event.status is not None else ""
    yield click.style(f"! {one_line(event.error_text)}{status}", fg="red")


def _run_metadata(event: RunMetadataShown, full: bool) -> Iterator[str]:
    if full:
        yield dim(f"· {one_line(event.kind)}")


def _response_metadata(event: ResponseMetadata, full: bool) -> Iterator[str]:
    total = event.usage.total if event.usage is not None else None
    words = [
        *([one_line(event.model)] if event.model else []),
        *([f"{formatting.tokens(total)} tokens"] if total is not None else []),
        *([str(event.stop_reason).replace("_", " ")] if event.stop_reason is not None else []),
    ]
    if full and words:
        yield dim(f"  {' · '.join(words)}")


def _compaction(event: CompactionShown, full: bool) -> Iterator[str]:
    words = ["context compacted", *([one_line(event.trigger)] if event.trigger else [])]
    yield click.style(f"── {' · '.join(words)} ──", fg="cyan")


def _rewind(event: RewindShown, full: bool) -> Iterator[str]:
    yield click.style("── rewound ──", fg="cyan")


_EVENT_LINES: dict[type, Callable[[Any, bool], Iterator[str]]] = {
    UserShown: _user,
    DeveloperShown: _developer,
    TurnStarted: _turn_start,
    ImageShown: _image,
    AnswerShown: _answer,
    ToolCallShown: _tool_call,
    ToolResultShown: _tool_result,
    InterruptShown: _interrupt,
    ErrorShown: _error,
    RunMetadataShown: _run_metadata,
    ResponseMetadata: _response_metadata,
    CompactionShown: _compaction,
    RewindShown: _rewind,
}


def _files(files: tuple[FilePart, ...]) -> Iterator[str]:
    for file in files:
        words = (file.media_type, file.filename or file.url)
        yield dim(f"[{one_line(' '.join(word for word in words if word), SUMMARY_LENGTH)}]")


def _titled_text(name: str, text: str, full: bool) -> Iterator[str]:
    if full:
        yield dim(name)
        yield from _dim_lines(text, "  ")
    else:
        yield dim(f"{name}: {one_line(text, SUMMARY_LENGTH)}")


def _dim_lines(text: str, margin: str) -> Iterator[str]:
    for line in plain(text).splitlines():
        yield dim(margin + line)
