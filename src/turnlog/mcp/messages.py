"""Messages of a session as compact text: who speaks at which position, what was said, and which tools were called.

Outputs of tools are shortened to their beginning and end, reasoning likewise. A shortened output names the call by
which `read_output` returns it whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from msgspec import UNSET

from turnlog.formats.labels import call_outcome, moment, part_label
from turnlog.mcp.budget import clean, cut
from turnlog.model import Fate, Part, ReasoningPart, TextPart, ToolCallPart
from turnlog.redact import KnownValues
from turnlog.store.values import PlacedMessage

_LONGEST_INPUT = 2_000
_LONGEST_OUTPUT = 800
_LONGEST_REASONING = 800
"""Characters of a call's input, of its output, and of reasoning, in the text of a session."""


def message_text(placed: PlacedMessage, *, redacted: bool, known: KnownValues | None = None) -> str:
    """A message with its heading, `[position] role · time · model`; without secrets if wanted, before it is cut.

    `known` secrets are masked where they stand alone, too.
    """
    wash = partial(clean, redacted=redacted, known=known)
    message, place = placed.message, placed.membership
    words = [
        message.role,
        message.origin.value.replace("_", " ") if message.origin else None,
        moment(message.created_at),
        message.model,
        None if place.fate is Fate.ACTIVE else place.fate.value,
    ]
    lines = [f"[{place.position}] {' · '.join(word for word in words if word)}"]
    for part in message.parts:
        lines += _part_lines(part, wash)
    if message.error is not None:
        lines.append(f"error: {message.error.text}")
    # Once more as a whole: a name and its value may be in two parts.
    return wash("\n".join(lines))


def _part_lines(part: Part, wash: Callable[..., str]) -> Iterator[str]:
    match part:
        case TextPart():
            yield wash(part.text, is_cut=part.blob is not None)
        case ReasoningPart():
            if part.text:
                text = wash(part.text, is_cut=part.blob is not None)
                yield f"(reasoning) {cut(text, _LONGEST_REASONING, '')}"
        case ToolCallPart():
            yield from _call_lines(part, wash)
        case _:
            note = part_label(part)
            if note is not None:
                yield f"({' '.join([note.name, *note.words])})"


def _call_lines(call: ToolCallPart, wash: Callable[..., str]) -> Iterator[str]:
    given = bytes(call.input).decode(errors="replace") if call.input is not UNSET else call.input_text or ""
    given = wash(given, is_cut=call.input_blob is not None)
    yield f"call {call.tool_call_id}: {call.tool_name} {cut(given, _LONGEST_INPUT, '')}"
    exits = [f"exit code {result.exit_code}" for result in call.results if result.exit_code is not None]
    yield f"→ {', '.join([call_outcome(call, call.results), *exits])}"
    if call.child_session_id is not None:
        yield f"subagent: {call.child_session_id}"
    output = wash(output_of(call), is_cut=_has_preview(call))
    if output:
        yield cut(output, _LONGEST_OUTPUT, f": read_output with call={call.tool_call_id!r}")


def _has_preview(call: ToolCallPart) -> bool:
    """Whether an output of the call is only the beginning of what a blob or a file holds."""
    return any(
        result.spilled_to is not None
        or any(isinstance(part, TextPart) and part.blob is not None for part in result.content)
        for result in call.results
    )


def output_of(call: ToolCallPart) -> str:
    """The text that a call returned, and error texts that are not in it."""
    output = call.output_text
    errors = [result.error_text for result in call.results if result.error_text and result.error_text not in output]
    return "\n".join([text for text in (output, *errors) if text])
