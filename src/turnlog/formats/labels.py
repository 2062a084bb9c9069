"""Words for a session, an event, a part, a time or exact JSON in documents for people: plain text, not yet escaped.

The same words serve every document and the terminal; each decides how they look.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import NamedTuple

import msgspec

from turnlog.model import (
    CompactionEvent,
    DataPart,
    ErrorEvent,
    FilePart,
    HistoryEvent,
    InterruptEvent,
    MessageEvent,
    Part,
    RecordEvent,
    RewindEvent,
    Session,
    SourceDocumentPart,
    SourceUrlPart,
    ToolCallPart,
    ToolResult,
    ToolResultEvent,
    ToolState,
    UnknownPart,
)
from turnlog.model.parts import call_summary, state_after
from turnlog.model.usage import BUCKETS
from turnlog.plain_text import without_escapes_in_json


class Note(NamedTuple):
    """A label: a name, words next to it, and text or JSON below it."""

    name: str
    words: tuple[str, ...] = ()
    text: str | None = None
    json: str | None = None


def _note(name: str, *words: str | None, text: str | None = None, json: str | None = None) -> Note:
    return Note(name, tuple(word for word in words if word), text, json)


def event_label(event: HistoryEvent) -> Note | None:
    """The label of an event between messages; None for messages, results of known calls, and known records."""
    match event:
        case CompactionEvent():
            return _note("Context compacted", event.trigger)
        case RewindEvent():
            return _note("Rewound" if event.to_message_id else "Rewound to the start")
        case InterruptEvent():
            return _note("Interrupted", event.during)
        case ErrorEvent():
            return _note("Error", text=event.error_text)
        case RecordEvent() if not event.known:
            return _note("Unknown record", event.kind)
        case ToolResultEvent() if event.message_id is None:
            return _note("Result of an unknown call", event.tool_call_id)
        case _:
            return None


def part_label(part: Part) -> Note | None:
    """The label of a part; None for text, reasoning and tool calls, which are shown whole."""
    match part:
        case FilePart():
            size = part.blob.size if part.blob else None if part.data is None else len(part.data)
            address = None if part.url is None or part.url.startswith("data:") else part.url
            kind = "Image" if part.media_type.startswith("image/") else "File"
            return _note(kind, part.filename or address, part.media_type, None if size is None else f"{size:,} bytes")
        case SourceUrlPart():
            return _note("Source", part.title, part.url)
        case SourceDocumentPart():
            return _note("Source", part.title, part.filename)
        case DataPart():
            return _note("Data", part.name, json=pretty(part.data))
        case UnknownPart():
            return _note("Unknown part", part.kind, json=pretty(part.data))
        case _:
            return None


def result_label(result: ToolResult) -> Note:
    """The heading of a result: status, whether it is preliminary, exit code."""
    code = None if result.exit_code is None else f"exit {result.exit_code}"
    return _note("Result", result.status, "preliminary" if result.preliminary else None, code)


DONE = "done"

STATES: dict[ToolState, str] = {
    ToolState.INPUT_STREAMING: "cut off",
    ToolState.INPUT_AVAILABLE: "no result",
    ToolState.APPROVAL_REQUESTED: "waiting for approval",
    ToolState.APPROVAL_RESPONDED: "no result",
    ToolState.OUTPUT_AVAILABLE: DONE,
    ToolState.OUTPUT_ERROR: "failed",
    ToolState.OUTPUT_DENIED: "denied",
    ToolState.ABORTED: "aborted",
}
"""Tool state -> the word that people read."""


def call_outcome(call: ToolCallPart, results: Iterable[ToolResult]) -> str:
    """How a call ended, with the results that a document shows below it."""
    return STATES[state_after(call.state, [result.status for result in results])]


_LONGEST_SUBJECT = 120


def subject(call: ToolCallPart) -> str | None:
    """A call in one line of at most 120 characters: its title, otherwise the most telling field of its input."""
    if call.title:
        return call.title
    line = " ".join((call_summary(call) or "")[: 2 * _LONGEST_SUBJECT].split())
    return f"{line[:_LONGEST_SUBJECT]}…" if len(line) > _LONGEST_SUBJECT else line or None


def facts(session: Session) -> Iterator[tuple[str, str]]:
    """Name and value of the facts in a document's header; unknown ones are left out."""
    place = session.project.path if session.project else session.cwd
    known: tuple[tuple[str, str | None], ...] = (
        ("Session", session.id),
        ("Agent", " ".join(word for word in (session.agent, session.agent_version) if word)),
        ("Folder", place),
        ("Worktree", session.worktree),
        ("Branch", session.git_branch),
        ("Models", ", ".join(session.models)),
        ("Started", moment(session.created_at)),
        ("Duration", _duration(session)),
        ("Tokens", _tokens(session)),
        ("Cost", _cost(session)),
    )
    yield from ((name, value) for name, value in known if value)


def _duration(session: Session) -> str | None:
    """From the first record to the last, as `85 ms`, `2.3 s`, `43 s` or `1 h 2 min`; None without two times."""
    if session.created_at is None or session.updated_at is None or session.created_at == session.updated_at:
        return None
    lasted = (session.updated_at - session.created_at).total_seconds()
    if lasted < 9.95:
        return f"{lasted * 1000:.0f} ms" if lasted < 1 else f"{lasted:.1f} s"
    minutes, seconds = divmod(round(lasted), 60)
    if minutes < 1:
        return f"{seconds} s"
    return f"{minutes} min {seconds} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def _tokens(session: Session) -> str | None:
    """All tokens of the session's own calls; at least as many where a call has no count."""
    usage = session.usage.usage
    total = sum(getattr(usage, name) or 0 for name in BUCKETS)
    if not total:
        return None
    is_bound = session.usage.unknown_calls or usage.exactness == "lower_bound"
    about = "about " if usage.exactness == "estimated" and not session.totals else ""
    count = f"{'at least ' if is_bound else about}{total:,}"
    return f"{count} (counted for the session as a whole)" if session.totals else count


_MARKS = {"exact": "", "lower_bound": "at least ", "estimated": "about "}


def _cost(session: Session) -> str | None:
    """What the session's own calls cost, without its subagents, or what its agent reported where no price is known."""
    if not session.usage.calls and not session.totals:
        return None
    if session.cost is None and session.reported_cost is not None:
        return f"{_dollars(session.reported_cost.amount)} as its agent reported it"
    if session.cost is None:
        return f"unknown: no price is known for {', '.join(session.models) or 'its model'}"
    exact = _dollars(session.cost.amount)
    if not session.unpriced_calls:
        return f"{_MARKS[session.usage.usage.exactness]}{exact}"
    return f"at least {exact} (without {session.unpriced_calls} of {session.usage.calls} calls)"


def _dollars(amount: Decimal) -> str:
    return f"${amount:,.2f}" if amount >= Decimal("0.01") or not amount else f"${amount:.4f}"


def moment(at: datetime | None) -> str | None:
    """A time in UTC, to the second."""
    return None if at is None else f"{at.astimezone(UTC).isoformat(' ')[:19]} UTC"


def author_words(event: MessageEvent) -> list[str]:
    """The heading of a message: role, origin, model, step and time, as far as they are known."""
    message, place = event.message, event.membership
    words = (
        message.role.capitalize(),
        message.origin.value.replace("_", " ") if message.origin else None,
        message.model,
        f"step {place.step}" if place is not None and place.step is not None else None,
        moment(message.created_at),
    )
    return [word for word in words if word]


def pretty(data: msgspec.Raw) -> str:
    """JSON with line breaks between its values, and without colours for a terminal in its texts."""
    try:
        json = msgspec.json.format(bytes(data), indent=2)
    except (msgspec.DecodeError, RecursionError):
        json = bytes(data)
    return without_escapes_in_json(json.decode(errors="replace"))
