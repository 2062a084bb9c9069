"""The parts of a message as text for a terminal: what was said and thought, and what tools were called to do.

Everything a log said is made harmless (`terminal.plain`) here; colours are ours, and are left out by whoever writes
them into a pipe.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import NamedTuple

import click
from msgspec import UNSET

from turnlog.cli import figures
from turnlog.cli.terminal import dim, one_line, plain
from turnlog.formats.labels import STATES, Note, part_label
from turnlog.model import Part, ReasoningPart, TextPart, ToolCallPart, ToolResult, ToolState
from turnlog.model.call_summary import call_summary

SUMMARY_LENGTH = 100
"""Characters of a text that is told in one line."""


class Detail(NamedTuple):
    """How much is shown."""

    reasoning: bool = False
    full: bool = False
    read_spill: Callable[[str], str | None] = lambda name: None
    """The whole of an output that was written to a file of its own, by its name."""


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
            said = [one_line(" · ".join(note.words)), *([summary(note.json)] if note.json is not None else [])]
            yield dim(f"[{note.name.lower()}: {': '.join(said)}]")


def text_lines(part: TextPart) -> Iterator[str]:
    """The lines of a text, and how much of it is not there."""
    yield from plain(part.text).splitlines() or [""]
    if part.blob is not None and part.blob.size > len(part.text.encode(errors="replace")):
        yield dim(f"… {figures.size(part.blob.size)} in all; --full shows the rest")


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
"""How the end of a call is shown where it is not `yellow`: neither good nor bad."""


def _tool_call(part: ToolCallPart, detail: Detail) -> Iterator[str]:
    colour = _COLOURS.get(part.state, "yellow")
    exit_code = next((result.exit_code for result in reversed(part.results) if result.exit_code), None)
    ends = [
        STATES[part.state] if exit_code is None else f"{STATES[part.state]} (exit {exit_code})",
        *([figures.duration(took)] if (took := _duration(part)) is not None else []),
    ]
    name = click.style(one_line(part.tool_name), bold=True)
    about = "" if detail.full else _about(part)
    yield f"• {name}{f' {about}' if about else ''}  {click.style(' · '.join(ends), fg=colour, dim=colour is None)}"
    if part.child_session_id is not None:
        yield dim(f"  ↳ subagent: turnlog show {one_line(part.child_session_id)}")
    if part.state is ToolState.OUTPUT_DENIED and part.approval is not None and part.approval.reason:
        yield dim(f"  {summary(part.approval.reason)}")
    if detail.full:
        yield from _indented(_input(part), "  ◂ ")
        for result in part.results:
            yield from _result(result, detail)
    elif part.state is ToolState.OUTPUT_ERROR and part.results:
        reason = part.results[-1].error_text or part.results[-1].output_text
        if reason:
            yield click.style(f"  {summary(reason)}", fg="red")


def _about(part: ToolCallPart) -> str:
    """What a call is about, in a few words."""
    return summary(call_summary(part) or part.title or _exact_input(part))


def _exact_input(part: ToolCallPart) -> str:
    return part.input_text or "" if part.input is UNSET else bytes(part.input).decode()


def _duration(part: ToolCallPart) -> int | None:
    """Milliseconds from call to last result, as the agent said or as the times tell; never negative (R-C9)."""
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
    return f"{line} ({figures.count(len(text))} characters)" if line.endswith("…") else line
