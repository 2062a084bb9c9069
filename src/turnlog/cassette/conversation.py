"""A conversation in words that every API has, and whether a request continues the recorded one.

Roles, texts, calls by name and arguments, results by the call that they answer, and kinds of files; no ids, no
reasoning, no system prompt. Each side's texts are one text, since APIs and agents cut and join them differently. If a
request is not the recorded one, a diff shows the first difference. The rules are in docs/how-to/cassettes.md.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from re import Pattern
from typing import Any, Literal, NamedTuple

from turnlog.cassette.tape import AskedFile, AskedResult, AskedText, Entry
from turnlog.model import Part, TextPart, ToolCallPart
from turnlog.model.lenient_json import parse_json
from turnlog.providers.request_parts import arguments_text

Side = Literal["user", "assistant"]


class Mismatch(NamedTuple):
    """Where a request leaves the recording."""

    turn: int
    """Index of the first turn that differs: how far the two are the same."""
    diff: str


def compare(
    entries: Iterable[Entry], sent: PlayedConversation, ignored: Sequence[Pattern[str]] = ()
) -> Mismatch | None:
    """None where a request is the recorded one.

    Args:
        entries: The context that was recorded.
        sent: The conversation of the request.
        ignored: What is not looked at in any text.
    """
    recorded = _relevant(entries, sent, ignored)
    most = max(len(recorded.turns), len(sent.turns))
    for index in range(most):
        if not _is_same(_at(recorded.turns, index), _at(sent.turns, index)):
            return Mismatch(index, _diff(recorded, sent, index))
    return None


class ConversationCall:
    """A call by name and arguments; `id` only says whose result a result is."""

    def __init__(self, call_id: str | None, name: str, arguments: str) -> None:
        """Take the arguments as text, JSON or not."""
        self.id = call_id
        self.name = name
        self.arguments = _unwrapped(json_of(arguments))


class ConversationResult:
    """What came of the call number `call` of the conversation; None: of none that is in it."""

    def __init__(self, call: int | None, text: str | None) -> None:
        """Take the text; None: whatever is said."""
        self.call = call
        self.text = text


class ConversationTurn:
    """All that one side said until the other spoke."""

    def __init__(self, side: Side) -> None:
        """Begin with nothing."""
        self.side: Side = side
        self.texts: list[str] = []
        self.optional: list[str] = []
        """Texts among `texts` that may be missing on the other side."""
        self.anything = False
        """Whether the log does not say what was said."""
        self.files: list[str] = []
        self.calls: list[ConversationCall] = []
        self.results: list[ConversationResult] = []


class PlayedConversation:
    """Turns that alternate, built entry by entry."""

    def __init__(self, ignored: Sequence[Pattern[str]] = ()) -> None:
        """Begin with nothing; what the patterns match is not looked at."""
        self.turns: list[ConversationTurn] = []
        self._ignored = ignored
        self._calls: list[ConversationCall] = []
        self._answered: set[int] = set()

    def text(self, side: Side, text: str, *, optional: bool = False) -> None:
        """A side says something."""
        text = self._clean(text)
        if text.strip():
            turn = self._turn(side)
            turn.texts.append(text)
            if optional:
                turn.optional.append(text)

    def file(self, media_type: str) -> None:
        """The user shows an image or another file."""
        kind = media_type.partition("/")[0]
        self._turn("user").files.append(kind if kind in ("image", "audio", "video") else "file")

    def call(self, call_id: str | None, name: str, arguments: str) -> None:
        """The model calls a tool."""
        call = ConversationCall(call_id, name, arguments)
        self._calls.append(call)
        self._turn("assistant").calls.append(call)

    def result(self, call_id: str | None, text: str | None, name: str | None = None) -> None:
        """A call is answered: that of this id, else the first open one of this name."""
        place = self._place_of(call_id, name)
        if place is not None:
            self._answered.add(place)
        self._turn("user").results.append(ConversationResult(place, None if text is None else self._clean(text)))

    def name_of(self, place: int | None) -> str:
        """The name of a call."""
        return "an unknown call" if place is None else self._calls[place].name

    def add(self, entry: Entry) -> None:
        """What a cassette holds."""
        if isinstance(entry, AskedText) and entry.text is None:
            self._turn("user").anything = True
        elif isinstance(entry, AskedText):
            self.text("user", entry.text or "", optional=entry.optional)
        elif isinstance(entry, AskedFile):
            self.file(entry.media_type)
        elif isinstance(entry, AskedResult):
            self.result(entry.tool_call_id, entry.text)
            for media_type in entry.media_types:
                self.file(media_type)
        else:
            for part in entry.parts:
                self._add_content(part)

    def _add_content(self, part: Part) -> None:
        if isinstance(part, TextPart):
            self.text("assistant", part.text)
        elif isinstance(part, ToolCallPart):
            self.call(part.tool_call_id, part.tool_name, arguments_text(part))

    def _clean(self, text: str) -> str:
        for pattern in self._ignored:
            text = pattern.sub("", text)
        return text

    def _turn(self, side: Side) -> ConversationTurn:
        if not self.turns or self.turns[-1].side != side:
            self.turns.append(ConversationTurn(side))
        return self.turns[-1]

    def _place_of(self, call_id: str | None, name: str | None) -> int | None:
        """Ids may be used again, so the last call counts."""
        places = [place for place, call in enumerate(self._calls) if call_id is not None and call.id == call_id]
        if places:
            return places[-1]
        open_calls = [place for place in range(len(self._calls)) if place not in self._answered]
        return next((place for place in open_calls if name is not None and self._calls[place].name == name), None)


def json_of(text: str) -> Any:
    """A text as JSON; unchanged if it is not JSON."""
    try:
        return parse_json(text) if text.strip() else {}
    except (ValueError, RecursionError):
        return text


def _unwrapped(arguments: Any) -> Any:
    """What `providers.request_parts.arguments_object` wrapped for an API that takes objects only."""
    match arguments:
        case {"_raw": str(text), **rest} if not rest:
            return text
        case {"_value": value, **rest} if not rest:
            return value
        case _:
            return arguments


def bare(*texts: str) -> str:
    """Texts as one, without white space: APIs and agents cut, join and indent them as they like."""
    return "".join([word for text in texts for word in text.split()])


def same_result(recorded: str | None, sent: str) -> bool:
    """Whether a result is the recorded one: the same text, or the same JSON; an empty one may be anything."""
    if recorded is None or not bare(recorded):
        return True
    return bare(recorded) == bare(sent) or _equal_json(recorded, sent)


def _equal_json(one: str, other: str) -> bool:
    value = json_of(one)
    return not isinstance(value, str) and value == json_of(other)


_MOST_LINES = 60
"""Of a diff: the rest is counted."""


def _relevant(
    entries: Iterable[Entry], sent: PlayedConversation, ignored: Sequence[Pattern[str]]
) -> PlayedConversation:
    """The recording without additions of the agent that the request has nowhere; a turn may hold nothing else."""
    texts = bare(*[text for turn in sent.turns if turn.side == "user" for text in turn.texts])
    recorded = PlayedConversation(ignored)
    for entry in entries:
        if not (isinstance(entry, AskedText) and entry.optional and bare(entry.text or "") not in texts):
            recorded.add(entry)
    return recorded


def _at(turns: list[ConversationTurn], index: int) -> ConversationTurn | None:
    return turns[index] if index < len(turns) else None


def _is_same(recorded: ConversationTurn | None, sent: ConversationTurn | None) -> bool:
    if recorded is None or sent is None:
        return False
    return recorded.side == sent.side and all(check(recorded, sent) for check in _CHECKS)


def _same_texts(recorded: ConversationTurn, sent: ConversationTurn) -> bool:
    """Additions of the agent may be anywhere in the turn, or missing."""
    if recorded.anything:
        return True
    sent_text = bare(*sent.texts)
    for text in recorded.optional:
        sent_text = sent_text.replace(bare(text), "", 1)
    return sent_text == bare(*[text for text in recorded.texts if text not in recorded.optional])


def _texts_of(recorded: ConversationTurn, sent: ConversationTurn) -> list[str]:
    """The recorded texts without additions of the agent that this turn lacks."""
    sent_text = bare(*sent.texts)
    return [text for text in recorded.texts if text not in recorded.optional or bare(text) in sent_text]


def _same_files(recorded: ConversationTurn, sent: ConversationTurn) -> bool:
    return recorded.anything or sorted(recorded.files) == sorted(sent.files)


def _same_calls(recorded: ConversationTurn, sent: ConversationTurn) -> bool:
    return [_key(call) for call in recorded.calls] == [_key(call) for call in sent.calls]


def _key(call: ConversationCall) -> tuple[str, str]:
    return call.name, json.dumps(call.arguments, sort_keys=True)


def _same_results(recorded: ConversationTurn, sent: ConversationTurn) -> bool:
    """One result a call. What was never answered, or was aborted, may be answered in any way, or not at all."""
    answers = {result.call: result.text or "" for result in sent.results}
    wanted = {result.call: result.text for result in recorded.results}
    open_calls = {call for call, text in wanted.items() if text is None}
    if len(answers) < len(sent.results) or None in answers or not set(wanted) - open_calls <= set(answers):
        return False
    return set(answers) <= set(wanted) and all(same_result(wanted[call], answers[call]) for call in answers)


_CHECKS: tuple[Callable[[ConversationTurn, ConversationTurn], bool], ...] = (
    _same_texts,
    _same_files,
    _same_calls,
    _same_results,
)


def _diff(recorded: PlayedConversation, sent: PlayedConversation, first: int) -> str:
    """From the turn before the first that differs."""
    start = max(0, first - 1)
    before, after = _lines(recorded, sent, start), _lines(sent, None, start)
    lines = list(difflib.unified_diff(before, after, "recorded", "requested", lineterm="", n=2))
    shown = [line for line in lines if not line.startswith("@@")][:_MOST_LINES]
    more = len(lines) - _MOST_LINES
    return "\n".join([*shown, *([f"… and {more} more lines"] if more > 0 else [])])


def _lines(conversation: PlayedConversation, other: PlayedConversation | None, start: int) -> list[str]:
    """The turns as lines, without white space and without what is not compared."""
    lines: list[str] = []
    for index in range(start, len(conversation.turns)):
        turn = conversation.turns[index]
        twin = _at(other.turns, index) if other is not None else None
        lines += _turn_lines(conversation, turn, twin)
    return lines


def _turn_lines(
    conversation: PlayedConversation, turn: ConversationTurn, twin: ConversationTurn | None
) -> Iterator[str]:
    texts = turn.texts if twin is None else _texts_of(turn, twin)
    for result in sorted(turn.results, key=lambda result: -1 if result.call is None else result.call):
        text = "(anything)" if result.text is None else result.text
        yield from _labelled(f"result of {conversation.name_of(result.call)}", text)
    for text in ["(anything)"] if turn.anything else texts:
        yield from _labelled(turn.side, text)
    for kind in sorted(turn.files):
        yield f"{turn.side}: ({kind})"
    for call in turn.calls:
        yield f"call of {call.name}: {json.dumps(call.arguments, sort_keys=True, ensure_ascii=False)}"


def _labelled(label: str, text: str) -> Iterator[str]:
    lines = [" ".join(line.split()) for line in text.splitlines()]
    for index, line in enumerate([line for line in lines if line]):
        yield f"{label}: {line}" if index == 0 else f"    {line}"
