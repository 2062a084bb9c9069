"""The pieces of a conversation as HTML, one block a heading, part or event, in the order in which things happened.

Every text of a log is escaped and shown as it is; control characters have pictures (`inert`). Results stand below
their calls, whole; one whose call is not there stands where it arrived.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec import UNSET

from turnlog.formats.inert import visible
from turnlog.formats.told import facts, file_words, pretty, speaker
from turnlog.model import (
    CompactionEvent,
    DataPart,
    ErrorEvent,
    Fate,
    FilePart,
    HistoryEvent,
    InterruptEvent,
    MessageEvent,
    Origin,
    Part,
    ReasoningPart,
    RecordEvent,
    RewindEvent,
    RunMetadataEvent,
    Session,
    SourceDocumentPart,
    SourceUrlPart,
    TextPart,
    ToolCallPart,
    ToolResult,
    ToolResultEvent,
    UnknownPart,
)

_TITLE = 100
"""Characters of a prompt that the outline shows."""

_PROMPTS = (Origin.PROMPT, Origin.COMMAND, Origin.SHELL, Origin.SUBAGENT_PROMPT)


class Conversation(NamedTuple):
    """A session, all that happened in it, and where the whole of an output is that its result only previews."""

    session: Session
    events: Sequence[HistoryEvent]
    read_spill: Callable[[str], str | None] = lambda name: None


class Block(NamedTuple):
    """A piece of the page. With a `title`, the outline leads to it."""

    html: str
    title: str | None = None
    session_id: str | None = None
    """The session that begins here."""


def escape(text: str) -> str:
    """The text as characters, in an element and in a quoted attribute."""
    shown = visible(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return shown.replace('"', "&quot;").replace("'", "&#39;")


def blocks(conversation: Conversation, places: Mapping[str, str]) -> Iterator[Block]:
    """The blocks of one conversation; `places` has the titles of the sessions of the same page."""
    yield from _Blocks(conversation, places).all()


class _Blocks:
    def __init__(self, conversation: Conversation, places: Mapping[str, str]) -> None:
        self._conversation = conversation
        self._places = places
        self._turn: int | None = None
        self._results: dict[tuple[str | None, str], list[ToolResult]] = defaultdict(list)
        for event in conversation.events:
            if isinstance(event, ToolResultEvent) and event.message_id is not None:
                self._results[event.message_id, event.tool_call_id].append(event.result)

    def all(self) -> Iterator[Block]:
        session = self._conversation.session
        title = session.title or session.id
        told = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in facts(session))
        yield Block(f'<header class="session"><h2>{escape(title)}</h2><dl>{told}</dl></header>', title, session.id)
        for event in self._conversation.events:
            yield from self._event(event)

    def _event(self, event: HistoryEvent) -> Iterator[Block]:
        match event:
            case MessageEvent():
                yield from self._message(event)
            case ToolResultEvent() if event.message_id is None:
                result = self._result(event.result)
                yield _details("call", "Result of an unknown call", event.tool_call_id, result)
            case CompactionEvent():
                yield _note("Context compacted", event.trigger)
            case RewindEvent():
                yield _note("Rewound" if event.to_message_id else "Rewound to the start")
            case InterruptEvent():
                yield _note("Interrupted", event.during)
            case ErrorEvent():
                yield Block(f'<div class="error">{_text(event.error_text)}</div>')
            case RecordEvent() if not event.known:
                yield _note("Unknown record", event.kind)
            case ToolResultEvent() | RecordEvent() | RunMetadataEvent():
                return

    def _message(self, event: MessageEvent) -> Iterator[Block]:
        message, place = event.message, event.membership
        words = speaker(event)
        if place is not None and place.turn not in (None, self._turn):
            self._turn = place.turn
            words.insert(0, f"Turn {place.turn}")
        fate = f" ({place.fate.value})" if place is not None and place.fate is not Fate.ACTIVE else ""
        heading = f'<h3 class="{message.role}">{escape(" · ".join(words) + fate)}</h3>'
        yield Block(heading, _prompt(event))
        for part in message.parts:
            yield self._part(part, message.id)
        if message.error is not None:
            yield Block(f'<div class="error">{_text(message.error.text)}</div>')

    def _part(self, part: Part, message_id: str) -> Block:
        match part:
            case TextPart():
                return Block(f'<div class="text">{_text(part.text)}</div>')
            case ReasoningPart():
                withheld = '<p class="note">withheld by the provider</p>'
                return _details("reasoning", "Reasoning", "", _text(part.text) if part.text else withheld)
            case ToolCallPart():
                return self._call(part, message_id)
            case FilePart():
                kind, words = file_words(part)
                return _note(kind, *words)
            case SourceUrlPart():
                return _note("Source", part.title, part.url)
            case SourceDocumentPart():
                return _note("Source", part.title, part.filename)
            case DataPart():
                return _details("data", "Data", part.name, _text(pretty(part.data)))
            case UnknownPart():
                return _details("data", "Unknown part", part.kind, _text(pretty(part.data)))

    def _call(self, call: ToolCallPart, message_id: str) -> Block:
        inside = [self._subagent(call.child_session_id)] if call.child_session_id is not None else []
        if call.approval is not None and call.approval.reason:
            inside.append(_note("Reason", call.approval.reason).html)
        if call.input is not UNSET:
            inside.append(_text(pretty(call.input)))
        elif call.input_text is not None:
            inside.append(_text(call.input_text))
        arrived = self._results.get((message_id, call.tool_call_id), ())
        inside.extend(self._result(result, message_id) for result in (*call.results, *arrived))
        told = " · ".join(word for word in (call.title, call.state.value) if word)
        return _details("call", call.tool_name, told, "".join(inside))

    def _subagent(self, session_id: str) -> str:
        title = self._places.get(session_id)
        if title is None:
            return _note("Subagent", session_id).html
        return f'<p class="note">Subagent: <a href="#" data-session="{escape(session_id)}">{escape(title)}</a></p>'

    def _result(self, result: ToolResult, message_id: str = "") -> str:
        code = None if result.exit_code is None else f"exit {result.exit_code}"
        made = [_note("Result", result.status, "preliminary" if result.preliminary else None, code).html]
        whole = None if result.spilled_to is None else self._conversation.read_spill(result.spilled_to)
        if whole is not None:
            made.append(_text(whole))
        for part in result.content:
            if not isinstance(part, TextPart):
                made.append(self._part(part, message_id).html)
            elif whole is None:
                made.append(_text(part.text))
        if result.error_text is not None and result.error_text != result.output_text:
            made.append(_text(result.error_text))
        return "".join(made)


def _prompt(event: MessageEvent) -> str | None:
    """What the outline calls a prompt; None for what nobody asked."""
    if event.message.origin not in _PROMPTS:
        return None
    said = (" ".join(part.text.split()) for part in event.message.parts if isinstance(part, TextPart))
    return next((text[:_TITLE] for text in said if text), "…")


def _text(text: str) -> str:
    # The parser takes the first line break of a <pre> away: this one, not the text's own.
    return f"<pre>\n{escape(text)}</pre>"


def _note(name: str, *words: str | None) -> Block:
    told = " · ".join(word for word in words if word)
    return Block(f'<p class="note">{escape(f"{name}: {told}" if told else name)}</p>')


def _details(kind: str, name: str, told: str, inside: str) -> Block:
    summary = f"<summary><b>{escape(name)}</b> {escape(told)}</summary>"
    return Block(f'<details class="{kind}">{summary}{inside}</details>')
