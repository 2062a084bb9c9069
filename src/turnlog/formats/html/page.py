"""Blocks as a page: a head that allows nothing but its own script and style, an outline, and windows.

The first window is in the page; the later ones, and the outline's, lie in it as JSON, which a browser neither parses
nor shows until it is asked for. The script makes a window live when it comes near, is searched to, or is printed.
"""

from __future__ import annotations

import base64
import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.resources import files
from itertools import groupby
from typing import NamedTuple, TypeGuard

import orjson
from msgspec import UNSET

from turnlog.formats.edits import edit_diff
from turnlog.formats.escaping import escape, escape_inside, visible
from turnlog.formats.html.prose import prose
from turnlog.formats.labels import (
    DONE,
    Note,
    author_words,
    call_outcome,
    event_label,
    facts,
    part_label,
    pretty,
    result_label,
    subject,
)
from turnlog.model import (
    Fate,
    FilePart,
    HistoryEvent,
    Message,
    MessageEvent,
    Origin,
    Part,
    ReasoningPart,
    Session,
    TextPart,
    ToolCallPart,
    ToolResult,
    ToolResultEvent,
)
from turnlog.model.message import command_line


class HtmlConversation(NamedTuple):
    """A session, all that happened in it, and where the whole of an output is that its result only previews."""

    session: Session
    events: Sequence[HistoryEvent]
    read_spill: Callable[[str], str | None] = lambda name: None


class HtmlBlock(NamedTuple):
    """A piece of the page. With a `title`, the outline leads to it."""

    html: str
    title: str | None = None
    session_id: str | None = None
    """The session that begins here."""


def to_html(conversations: Sequence[HtmlConversation]) -> Iterator[bytes]:
    """The document, piece by piece.

    Args:
        conversations: The session, then those of its subagents; ValueError where there is none. Calls lead to the
            sessions that they started.
    """
    if not conversations:
        raise ValueError("no conversation to show")
    titles = {shown.session.id: shown.session.title or shown.session.id for shown in conversations}
    # The bar has the title of the first.
    made = [block for index, shown in enumerate(conversations) for block in blocks(shown, titles, headed=index > 0)]
    style, script = _own("page.css"), _own("page.js")
    yield _head(next(iter(titles.values())), style, script).encode()
    yield b'<nav class="outline" aria-label="Prompts">'
    yield from _windows([_entry(number, block) for number, block in enumerate(made) if block.title is not None])
    yield b"</nav><main>"
    yield from _windows([block.html for block in made])
    yield b"</main>"
    yield _data({block.session_id: number for number, block in enumerate(made) if block.session_id}, "sessions")
    yield f"<script>{script}</script></body></html>\n".encode()


_WINDOW = 100
"""Blocks of a window at most; more where a page would have more than `_WINDOWS`."""

_WINDOWS = 2000

_WINDOW_SIZE = 200_000
"""Characters after which a window ends, so that one is always quick to show."""


def _own(name: str) -> str:
    return (files("turnlog.formats.html") / name).read_text(encoding="utf-8")


def _head(title: str, style: str, script: str) -> str:
    policy = f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; img-src data:"
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="referrer" content="no-referrer">
<meta name="color-scheme" content="light dark"><title>{escape(title)}</title>
<style>{style}</style></head><body>
<header class="bar"><h1 title="{escape(title)}">{escape(title)}</h1>\
<div role="search"><input type="search" aria-label="Search this session" \
placeholder="Search, also what is folded"><output></output><button type="button" data-step="-1" \
aria-label="Previous">↑</button><button type="button" data-step="1" aria-label="Next">↓</button>\
<button type="button" class="unfold" aria-pressed="false">Unfold all</button></div></header>
<noscript><p class="note">The later parts of a long session and the search need scripts.</p></noscript>
"""


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _entry(number: int, block: HtmlBlock) -> str:
    kind = ' class="session"' if block.session_id else ""
    return f'<a{kind} href="#" data-block="{number}">{escape(block.title or "")}</a>'


def _windows(pieces: Sequence[str]) -> Iterator[bytes]:
    start = 0
    most = max(_WINDOW, -(-len(pieces) // _WINDOWS))
    while start < len(pieces):
        window = list(_fitting(pieces[start : start + most]))
        inside = "".join(window).encode() if start == 0 else _data(window)
        yield b'<section data-start="%d" data-count="%d">%b</section>\n' % (start, len(window), inside)
        start += len(window)


def _fitting(pieces: Sequence[str]) -> Iterator[str]:
    size = 0
    for piece in pieces:
        yield piece
        size += len(piece)
        if size > _WINDOW_SIZE:
            return


def _data(value: object, name: str = "window") -> bytes:
    """JSON that no text can end early: without `<` there is no tag in it."""
    return b'<script type="application/json" class="%b">%b</script>' % (
        name.encode(),
        orjson.dumps(value).replace(b"<", b"\\u003c"),
    )


_TITLE = 100
"""Characters of a prompt that the outline shows, and of an addition that is folded."""

_PROMPTS = (Origin.PROMPT, Origin.COMMAND, Origin.SHELL, Origin.SUBAGENT_PROMPT)

_PICTURES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""Media types that are shown; others could hold more than a picture."""

_MARKS = {"-": "del", "+": "ins"}

_FILE_LINES = ("---", "+++")


def blocks(conversation: HtmlConversation, places: Mapping[str, str], *, headed: bool = True) -> Iterator[HtmlBlock]:
    """The blocks of one conversation, which begin with its title if `headed`.

    `places` has the titles of the sessions of the same page.
    """
    yield from _Blocks(conversation, places).all(headed=headed)


class _Blocks:
    def __init__(self, conversation: HtmlConversation, places: Mapping[str, str]) -> None:
        self._conversation = conversation
        self._places = places
        self._turn: int | None = None
        self._results: dict[tuple[str | None, str], list[ToolResult]] = defaultdict(list)
        for event in conversation.events:
            if isinstance(event, ToolResultEvent) and event.message_id is not None:
                self._results[event.message_id, event.tool_call_id].append(event.result)

    def all(self, *, headed: bool) -> Iterator[HtmlBlock]:
        session = self._conversation.session
        title = session.title or session.id
        rows = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in facts(session))
        heading = f"<h2>{escape(title)}</h2>" if headed else ""
        yield HtmlBlock(f'<header class="session">{heading}<dl>{rows}</dl></header>', title, session.id)
        for is_added, events in groupby(self._conversation.events, _is_added):
            if is_added:
                yield _added([event for event in events if isinstance(event, MessageEvent)])
                continue
            for event in events:
                yield from self._event(event)

    def _event(self, event: HistoryEvent) -> Iterator[HtmlBlock]:
        if isinstance(event, MessageEvent):
            yield from self._message(event)
        elif (note := event_label(event)) is not None:
            below = self._result(event.result) if isinstance(event, ToolResultEvent) else ""
            yield _note_block(note, below)

    def _message(self, event: MessageEvent) -> Iterator[HtmlBlock]:
        message, place = event.message, event.membership
        who, *words = author_words(event)
        classes, turn = message.role, ""
        if place is not None and place.turn not in (None, self._turn):
            self._turn = place.turn
            classes, turn = f"turn {classes}", f"Turn {place.turn} · "
        details = escape_inside("".join(f" · {word}" for word in words) + _fate(event))
        yield HtmlBlock(f'<h3 class="{classes}">{turn}<b>{who}</b>{details}</h3>', _prompt(event))
        for part in message.parts:
            yield self._text_part(part, message) if isinstance(part, TextPart) else self._part(part, message.id)
        if message.error is not None:
            yield _note_block(Note("Error", text=message.error.text))

    def _text_part(self, part: TextPart, message: Message) -> HtmlBlock:
        """Text of a model is rendered, text of a person is shown as typed."""
        if message.role == "assistant" or message.origin is Origin.COMPACTION:
            return _rendered(part.text)
        return self._part(part, message.id)

    def _part(self, part: Part, message_id: str) -> HtmlBlock:
        match part:
            case TextPart():
                return HtmlBlock(f'<div class="text">{_text(part.text)}</div>')
            case ReasoningPart():
                withheld = '<p class="note">withheld by the provider</p>'
                return _details("reasoning", "Reasoning", "", _rendered(part.text).html if part.text else withheld)
            case ToolCallPart():
                return self._call(part, message_id)
            case FilePart() if (picture := _picture(part)) is not None:
                return HtmlBlock(picture)
            case _:
                return _note_block(part_label(part) or Note("Unknown part"))

    def _call(self, call: ToolCallPart, message_id: str) -> HtmlBlock:
        inside = [self._subagent(call.child_session_id)] if call.child_session_id is not None else []
        if call.approval is not None and call.approval.reason:
            inside.append(_note_block(Note("Reason", (call.approval.reason,))).html)
        results = (*call.results, *self._results.get((message_id, call.tool_call_id), ()))
        inside.append(_input(call, results))
        inside.extend(self._result(result, message_id) for result in results)
        state, about = call_outcome(call, results), subject(call)
        subject_html = f"<code>{escape_inside(about)}</code> " if about else ""
        summary = f"<summary><b>{escape_inside(call.tool_name)}</b> {subject_html}<i>{state}</i></summary>"
        kind = "call" if state == DONE else "call undone"
        return HtmlBlock(f'<details class="{kind}">{summary}{"".join(inside)}</details>')

    def _subagent(self, session_id: str) -> str:
        title = self._places.get(session_id)
        if title is None:
            return _note_block(Note("Subagent", (session_id,))).html
        return f'<p class="note">Subagent: <a href="#" data-session="{escape(session_id)}">{escape(title)}</a></p>'

    def _result(self, result: ToolResult, message_id: str = "") -> str:
        made = [_note_block(result_label(result)).html]
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


def _is_added(event: HistoryEvent) -> bool:
    """Whether the event is nothing but text that the agent added to the conversation."""
    if not isinstance(event, MessageEvent) or event.message.role != "developer" or event.message.error is not None:
        return False
    is_text = all(isinstance(part, TextPart) for part in event.message.parts)
    return bool(event.message.parts) and is_text and event.message.origin is not Origin.COMPACTION


def _added(events: Sequence[MessageEvent]) -> HtmlBlock:
    """Texts that the agent added one after the other, folded; several of them into one."""
    folded = [_added_text(event, part.text) for event in events for part in event.message.parts if _is_text(part)]
    if len(folded) == 1:
        return folded[0]
    first = next(part.text for event in events for part in event.message.parts if _is_text(part))
    inside = "".join(block.html for block in folded)
    return _details("added", f"Added by the agent: {len(folded)} texts", _beginning(first), inside)


def _is_text(part: Part) -> TypeGuard[TextPart]:
    return isinstance(part, TextPart)


def _added_text(event: MessageEvent, text: str) -> HtmlBlock:
    about = f'<p class="note">{escape(" · ".join(author_words(event)))}{_fate(event)}</p>'
    return _details("added", "Added by the agent", _beginning(text), about + _text(text))


def _fate(event: MessageEvent) -> str:
    """What became of a message that no longer counts, in brackets."""
    place = event.membership
    return f" ({place.fate.value})" if place is not None and place.fate is not Fate.ACTIVE else ""


def _prompt(event: MessageEvent) -> str | None:
    """The text of a prompt in the outline; None for a message that is not a prompt."""
    if event.message.origin not in _PROMPTS:
        return None
    typed = command_line(event.message)
    texts = (part.text for part in event.message.parts if isinstance(part, TextPart))
    return next((title for text in (typed or "", *texts) if (title := _beginning(text))), "…")


def _beginning(text: str) -> str:
    """The text in one line, with an ellipsis where it is cut."""
    line = " ".join(text[: 2 * _TITLE].split())
    return line if len(text) <= 2 * _TITLE and len(line) <= _TITLE else f"{line[: _TITLE - 1].rstrip()}…"


def _text(text: str) -> str:
    # The parser takes the first line break of a <pre> away: this one, not the text's own.
    return f"<pre>\n{escape_inside(text)}</pre>"


def _rendered(text: str) -> HtmlBlock:
    made = prose(text)
    return HtmlBlock(f'<div class="text">{_text(text)}</div>' if made is None else f'<div class="prose">{made}</div>')


def _picture(part: FilePart) -> str | None:
    """The image itself, in the page; None where its bytes are not there, or are no image that browsers show."""
    if part.data is None or part.media_type not in _PICTURES:
        return None
    data = base64.b64encode(part.data).decode()
    image = f'<img loading="lazy" alt="" src="data:{part.media_type};base64,{data}">'
    return f"<figure>{image}<figcaption>{_note_block(part_label(part) or Note('Image')).html}</figcaption></figure>"


def _input(call: ToolCallPart, results: Iterable[ToolResult]) -> str:
    """The whole input; where it is a change, the change first."""
    whole = "" if call.input_text is None else _text(call.input_text)
    if call.input is not UNSET:
        whole = _text(pretty(call.input))
    diff = edit_diff(call, results)
    if diff is None:
        return whole
    return f'<pre class="diff">\n{_marked(diff)}</pre>' + _details("data", "Input", "", whole).html


def _marked(diff: str) -> str:
    """A diff with what is gone and what is new marked, run by run."""
    runs = groupby(visible(diff).split("\n"), _mark)
    made: list[str] = []
    for tag, lines in runs:
        text = escape_inside("\n".join(lines))
        made.append(f"<{tag}>{text}</{tag}>" if tag else text)
    return "\n".join(made)


def _mark(line: str) -> str | None:
    return _MARKS.get(line[:1]) if line[:3] not in _FILE_LINES else None


def _note_block(note: Note, below: str = "") -> HtmlBlock:
    """A remark; folded where there is much below it."""
    words = " · ".join(note.words)
    if note.text is not None:
        return HtmlBlock(f'<div class="error">{_text(note.text)}</div>')
    if note.json is not None or below:
        return _details("data", note.name, words, below or _text(note.json or ""))
    return HtmlBlock(f'<p class="note">{escape(f"{note.name}: {words}" if words else note.name)}</p>')


def _details(kind: str, name: str, words: str, inside: str) -> HtmlBlock:
    summary = f"<summary><b>{escape_inside(name)}</b> {escape_inside(words)}</summary>"
    return HtmlBlock(f'<details class="{kind}">{summary}{inside}</details>')
