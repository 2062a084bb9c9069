"""JSON that is still being written: what it holds so far, as AI SDK shows the input of a tool call that streams in.

The scanner goes over each character once, however many deltas there are; asking for the value costs one parse. Its
rules, oddities included, are those of the SDK's `parsePartialJson`: what is open is closed, a literal that has begun
is completed, a key or number without its end is left out. It does not check JSON; the parser behind it does.
"""

from __future__ import annotations

import re
from enum import IntEnum, auto
from typing import Any, Literal, NamedTuple

from msgspec import UNSET

from turnlog.aisdk.json_text import ends_in_half_character, join_surrogates, parse_json
from turnlog.aisdk.versions import Version, sdk_version


class _State(IntEnum):
    ROOT = auto()
    FINISH = auto()
    STRING = auto()
    ESCAPE = auto()
    UNICODE_ESCAPE = auto()
    LITERAL = auto()
    NUMBER = auto()
    OBJECT_START = auto()
    OBJECT_KEY = auto()
    OBJECT_AFTER_KEY = auto()
    OBJECT_BEFORE_VALUE = auto()
    OBJECT_AFTER_VALUE = auto()
    OBJECT_AFTER_COMMA = auto()
    ARRAY_START = auto()
    ARRAY_AFTER_VALUE = auto()
    ARRAY_AFTER_COMMA = auto()


_VALUE_STARTS = {
    '"': _State.STRING,
    "{": _State.OBJECT_START,
    "[": _State.ARRAY_START,
    "-": _State.NUMBER,
    **dict.fromkeys("tfn", _State.LITERAL),
    **dict.fromkeys("0123456789", _State.NUMBER),
}

_AFTER_VALUE_STARTS = {
    _State.ROOT: _State.FINISH,
    _State.OBJECT_BEFORE_VALUE: _State.OBJECT_AFTER_VALUE,
    _State.ARRAY_START: _State.ARRAY_AFTER_VALUE,
    _State.ARRAY_AFTER_COMMA: _State.ARRAY_AFTER_VALUE,
}
"""Where a value may begin -> where its end leads."""

_CLOSERS = {
    _State.STRING: '"',
    _State.OBJECT_START: "}",
    _State.OBJECT_KEY: "}",
    _State.OBJECT_AFTER_KEY: "}",
    _State.OBJECT_BEFORE_VALUE: "}",
    _State.OBJECT_AFTER_VALUE: "}",
    _State.OBJECT_AFTER_COMMA: "}",
    _State.ARRAY_START: "]",
    _State.ARRAY_AFTER_VALUE: "]",
    _State.ARRAY_AFTER_COMMA: "]",
}

_LITERALS = ("true", "false", "null")
_ENDS = {"{": "}", "[": "]", '"': '"'}
_JSON_SPACE = " \t\n\r"
_STRING_STOP = re.compile(r'["\\]')
_HEX = frozenset("0123456789abcdefABCDEF")


class PartialJson:
    """JSON text that grows by `feed`."""

    def __init__(self, text: str = "", *, version: Version = 7) -> None:
        """Begin with what there is; the version decides on torn escapes, which AI SDK 5 does not repair."""
        self._major = sdk_version(version).major
        self._pieces: list[str] = []
        self._length = 0
        self._stack = [_State.ROOT]
        self._valid = 0
        self._literal = ""
        self._hex_digits = 0
        self._is_split = False
        self.feed(text)

    @property
    def text(self) -> str:
        """All text so far."""
        return self._whole(self._received())

    def feed(self, text: str) -> None:
        """Take the text that follows."""
        self._pieces.append(text)
        self._is_split = self._is_split or ends_in_half_character(text)
        position = 0
        while position < len(text):
            if self._stack[-1] is _State.STRING:
                position = self._skip_string(text, position)
            else:
                self._step(text[position], self._length + position)
                position += 1
        self._length += len(text)

    def value(self) -> Any:
        """What the text holds so far; UNSET where nothing can be made of it."""
        text = self._received()
        for candidate in (text if _may_be_whole(text) else None, self._fixed(text)):
            if candidate is not None:
                try:
                    return parse_json(self._whole(candidate))
                except ValueError:
                    continue
        return UNSET

    def _received(self) -> str:
        """The text as the scanner counted it."""
        if len(self._pieces) > 1:
            self._pieces = ["".join(self._pieces)]
        return self._pieces[0] if self._pieces else ""

    def _whole(self, text: str) -> str:
        return join_surrogates(text) if self._is_split else text

    def _fixed(self, text: str) -> str:
        closers = [self._closer(state) for state in reversed(self._stack)]
        return text[: self._valid] + "".join(closers)

    def _closer(self, state: _State) -> str:
        if state is not _State.LITERAL:
            return _CLOSERS.get(state, "")
        return next(literal[len(self._literal) :] for literal in _LITERALS if literal.startswith(self._literal))

    def _skip_string(self, text: str, position: int) -> int:
        """Go to the end of the string, or of the text; return where to go on."""
        stop = _STRING_STOP.search(text, position)
        end = len(text) if stop is None else stop.start()
        if end > position:
            self._valid = self._length + end
        if stop is None:
            return end
        if text[end] == '"':
            self._stack.pop()
            self._valid = self._length + end + 1
        else:
            self._stack.append(_State.ESCAPE)
        return end + 1

    def _step(self, char: str, index: int) -> None:
        state = self._stack[-1]
        if state in _AFTER_VALUE_STARTS:
            self._at_value(state, char, index)
        elif state is _State.OBJECT_KEY:
            if char == '"':
                self._stack[-1] = _State.OBJECT_AFTER_KEY
        elif state is _State.OBJECT_AFTER_KEY:
            if char == ":":
                self._stack[-1] = _State.OBJECT_BEFORE_VALUE
        elif state in (_State.OBJECT_START, _State.OBJECT_AFTER_COMMA):
            self._before_key(state, char, index)
        elif state is _State.NUMBER:
            self._in_number(char, index)
        elif state is _State.LITERAL:
            self._in_literal(char, index)
        elif state in (_State.ESCAPE, _State.UNICODE_ESCAPE):
            self._in_escape(state, char, index)
        else:
            self._after_value(char, index)
            if self._stack[-1] is _State.ARRAY_AFTER_VALUE and state is _State.ARRAY_AFTER_VALUE:
                self._valid = index + 1

    def _at_value(self, state: _State, char: str, index: int) -> None:
        if state is _State.ARRAY_START:
            if char == "]":
                self._close(index)
                return
            if self._major < 7:
                self._valid = index + 1
        begun = _VALUE_STARTS.get(char)
        if begun is None:
            return
        if char != "-":
            self._valid = index + 1
        if begun is _State.LITERAL:
            self._literal = char
        self._stack[-1] = _AFTER_VALUE_STARTS[state]
        self._stack.append(begun)

    def _before_key(self, state: _State, char: str, index: int) -> None:
        if char == '"':
            self._stack[-1] = _State.OBJECT_KEY
        elif char == "}" and state is _State.OBJECT_START:
            self._close(index)

    def _after_value(self, char: str, index: int) -> None:
        """Go on after a value that has ended, or ends with this character."""
        inside = self._stack[-1]
        if inside is _State.OBJECT_AFTER_VALUE:
            if char == ",":
                self._stack[-1] = _State.OBJECT_AFTER_COMMA
            elif char == "}":
                self._close(index)
        elif inside is _State.ARRAY_AFTER_VALUE:
            if char == ",":
                self._stack[-1] = _State.ARRAY_AFTER_COMMA
            elif char == "]":
                self._close(index)

    def _close(self, index: int) -> None:
        self._stack.pop()
        self._valid = index + 1

    def _in_number(self, char: str, index: int) -> None:
        if char in "0123456789":
            self._valid = index + 1
        elif char not in "eE-.":
            self._stack.pop()
            if char in ",}]":
                self._after_value(char, index)

    def _in_literal(self, char: str, index: int) -> None:
        if any(literal.startswith(self._literal + char) for literal in _LITERALS):
            self._literal += char
            self._valid = index + 1
        else:
            self._stack.pop()
            self._after_value(char, index)

    def _in_escape(self, state: _State, char: str, index: int) -> None:
        if state is _State.ESCAPE and char == "u" and self._major > 5:
            self._stack[-1] = _State.UNICODE_ESCAPE
            self._hex_digits = 0
        elif state is _State.ESCAPE:
            self._close(index)
        elif char in _HEX:
            self._hex_digits += 1
            if self._hex_digits == 4:
                self._close(index)


class PartialResult(NamedTuple):
    """What `parse_partial_json` made of a text."""

    value: Any
    """UNSET where nothing could be made of it."""
    state: Literal["successful-parse", "repaired-parse", "failed-parse"]


def parse_partial_json(text: str, *, version: Version = 7) -> PartialResult:
    """What a text that may end anywhere holds, and whether it was whole, as AI SDK's `parsePartialJson` says."""
    try:
        return PartialResult(parse_json(text), "successful-parse")
    except ValueError:
        value = PartialJson(text, version=version).value()
    return PartialResult(value, "failed-parse" if value is UNSET else "repaired-parse")


def _may_be_whole(text: str) -> bool:
    """Whether parsing it as it is has any prospect: it ends as it began."""
    stripped = text.strip(_JSON_SPACE)
    return bool(stripped) and stripped[-1] == _ENDS.get(stripped[0], stripped[-1])
