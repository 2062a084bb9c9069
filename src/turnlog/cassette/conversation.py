"""A conversation in words that every API has: the form in which a request and the recording are compared.

Roles, texts, calls by name and arguments, results by the call that they answer, and kinds of files; no ids, no
reasoning, no system prompt. Each side's texts are one text, since APIs and agents cut and join them differently.
"""

from __future__ import annotations

from collections.abc import Sequence
from re import Pattern
from typing import Any, Literal

from turnlog.cassette.tape import AskedFile, AskedResult, AskedText, Entry
from turnlog.model import Part, TextPart, ToolCallPart
from turnlog.model.codec import parse_json
from turnlog.providers.request_parts import arguments_text

Side = Literal["user", "assistant"]


class Call:
    """A call by name and arguments; `id` tells only whose result a result is."""

    def __init__(self, call_id: str | None, name: str, arguments: str) -> None:
        """Take the arguments as text, JSON or not."""
        self.id = call_id
        self.name = name
        self.arguments = _unwrapped(json_of(arguments))


class Result:
    """What came of the call number `call` of the conversation; None: of none that is in it."""

    def __init__(self, call: int | None, text: str | None) -> None:
        """Take the text; None: whatever is said."""
        self.call = call
        self.text = text


class Turn:
    """All that one side said until the other spoke."""

    def __init__(self, side: Side) -> None:
        """Begin with nothing."""
        self.side: Side = side
        self.texts: list[str] = []
        self.optional: list[str] = []
        """Texts among `texts` that may be missing on the other side."""
        self.anything = False
        """Whether the log does not tell what was said."""
        self.files: list[str] = []
        self.calls: list[Call] = []
        self.results: list[Result] = []


class Conversation:
    """Turns that alternate, built entry by entry."""

    def __init__(self, ignored: Sequence[Pattern[str]] = ()) -> None:
        """Begin with nothing; what the patterns match is not looked at."""
        self.turns: list[Turn] = []
        self._ignored = ignored
        self._calls: list[Call] = []
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
        call = Call(call_id, name, arguments)
        self._calls.append(call)
        self._turn("assistant").calls.append(call)

    def result(self, call_id: str | None, text: str | None, name: str | None = None) -> None:
        """A call is answered: that of this id, else the first open one of this name."""
        place = self._place_of(call_id, name)
        if place is not None:
            self._answered.add(place)
        self._turn("user").results.append(Result(place, None if text is None else self._clean(text)))

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
                self._add_said(part)

    def _add_said(self, part: Part) -> None:
        if isinstance(part, TextPart):
            self.text("assistant", part.text)
        elif isinstance(part, ToolCallPart):
            self.call(part.tool_call_id, part.tool_name, arguments_text(part))

    def _clean(self, text: str) -> str:
        for pattern in self._ignored:
            text = pattern.sub("", text)
        return text

    def _turn(self, side: Side) -> Turn:
        if not self.turns or self.turns[-1].side != side:
            self.turns.append(Turn(side))
        return self.turns[-1]

    def _place_of(self, call_id: str | None, name: str | None) -> int | None:
        """Ids may be used again, so the last call counts."""
        places = [place for place, call in enumerate(self._calls) if call_id is not None and call.id == call_id]
        if places:
            return places[-1]
        open_calls = [place for place in range(len(self._calls)) if place not in self._answered]
        return next((place for place in open_calls if name is not None and self._calls[place].name == name), None)


def json_of(text: str) -> Any:
    """A text as JSON; as it is where it is none."""
    try:
        return parse_json(text) if text.strip() else {}
    except (ValueError, RecursionError):
        return text


def _unwrapped(arguments: Any) -> Any:
    """What `wire.arguments_object` wrapped for an API that takes objects only."""
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
