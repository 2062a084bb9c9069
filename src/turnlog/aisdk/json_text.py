"""JSON as a JavaScript client parses it: from outside, in outputs of tools, and while it streams in.

It differs from Python's parsers in these points: lone surrogates are valid text, `NaN` and `Infinity` are not JSON, and
the AI SDK refuses objects that would reach JavaScript's prototypes (`secureJsonParse` of `@ai-sdk/provider-utils`).
Numbers stay exact, although JavaScript would round them.

`parse_output` reads the `output` of a UI part: JSON is parsed, any other text stays as it is (R-H8), and the JSON is
copied without rewriting it.

`PartialJson` is the input of a tool call that streams in, by the rules of the SDK's `parsePartialJson`, including its
oddities: open values are closed, literals that have begun are completed, an unfinished key or number is left out.
"""

from __future__ import annotations

import json
import re
from enum import IntEnum, auto
from typing import Any, Literal, NamedTuple, NoReturn, TypeGuard, cast

import msgspec
from msgspec import UNSET, Raw, UnsetType

from turnlog.aisdk.versions import Version, sdk_version
from turnlog.arguments import checked, refusal

_decoder = msgspec.json.Decoder()
_encoder = msgspec.json.Encoder()


def parse_json(text: str | bytes, *, unsafe_keys: bool = False) -> Any:
    """Plain Python values. Raises ValueError where the AI SDK's stream parser throws.

    `unsafe_keys` accepts keys that reach prototypes, like JavaScript's own parser, which reads requests.

    A number that is too large for a float becomes an infinity, as in JavaScript; `encode` writes it as null, also as
    there.
    """
    try:
        value = _decoder.decode(text)
    except (ValueError, RecursionError):
        value = _parse_leniently(text)
    if not unsafe_keys and may_hold_unsafe_key(text) and holds_unsafe_key(value):
        raise ValueError("object contains a forbidden prototype property")
    return value


def _parse_leniently(text: str | bytes) -> Any:
    if isinstance(text, bytes):
        # Browsers and servers decode a body like this: bytes that are not UTF-8 become U+FFFD without an error.
        text = text.decode("utf-8", "replace")
    try:
        return json.loads(text, parse_constant=_refuse_constant, parse_int=_parse_int)
    except RecursionError as error:
        raise ValueError("nested too deep") from error


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def _parse_int(digits: str) -> int | float:
    try:
        return int(digits)
    except ValueError:
        return float(digits)


def may_hold_unsafe_key(text: str | bytes) -> bool:
    """A cheap test without false negatives whether `holds_unsafe_key` can be true.

    All such keys contain `proto`: `__proto__`, and the `prototype` of a `constructor`.
    """
    if isinstance(text, bytes):
        # This runs for every chunk that is sent; for bytes, `find` takes half the time of `in`.
        return text.find(b"proto") >= 0 or text.find(b"\\u00") >= 0
    return "proto" in text or "\\u00" in text


def holds_unsafe_key(value: Any) -> bool:
    """Whether any object in it has a key `__proto__`, or a `constructor` with a key `prototype`."""
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, dict):
            fields = cast("dict[str, Any]", item)
            if "__proto__" in fields or _has_prototype(fields.get("constructor")):
                return True
            pending.extend(fields.values())
        elif isinstance(item, list | tuple):
            pending.extend(cast("list[Any]", item))
    return False


def without_unsafe_keys(value: Any) -> Any:
    """The value without those keys, at any depth; the same object if it has none."""
    if not holds_unsafe_key(value):
        return value
    if isinstance(value, dict):
        return {
            key: without_unsafe_keys(item)
            for key, item in cast("dict[str, Any]", value).items()
            if key != "__proto__" and not (key == "constructor" and _has_prototype(item))
        }
    return [without_unsafe_keys(item) for item in cast("list[Any]", value)]


def _has_prototype(value: Any) -> bool:
    return isinstance(value, dict) and "prototype" in value


def same_json(one: Any, other: Any) -> bool:
    """Whether two plain values are the same JSON; unlike in Python, true is not 1."""
    if isinstance(one, dict) and isinstance(other, dict):
        these, those = cast("dict[str, Any]", one), cast("dict[str, Any]", other)
        return these.keys() == those.keys() and all(same_json(item, those[key]) for key, item in these.items())
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        items, others = cast("list[Any]", one), cast("list[Any]", other)
        return len(items) == len(others) and all(map(same_json, items, others))
    return isinstance(one, bool) == isinstance(other, bool) and one == other


def is_json_string(json: Raw | UnsetType) -> TypeGuard[Raw]:
    """Whether it is the exact JSON of a string."""
    return json is not UNSET and bytes(memoryview(json)[:1]) == b'"'


def ends_in_half_character(text: str) -> bool:
    """Whether it ends with the first half of a surrogate pair whose second half may follow."""
    return "\ud800" <= text[-1:] <= "\udbff"


def join_surrogates(text: str) -> str:
    """The text with surrogate pairs joined that a stream had split."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


class Parsed(NamedTuple):
    """The JSON in a text."""

    value: Raw
    exact: bool
    """Whether the text can be rebuilt from the value, even after another program has parsed and written it."""


def parse_output(text: Raw) -> Parsed | None:
    """The JSON in a JSON string; None if its text is not JSON."""
    if not _may_be_json(text):
        return None
    try:
        plain = msgspec.json.decode(text, type=str)
        value = msgspec.json.decode(plain)
    except (msgspec.DecodeError, RecursionError):
        return None
    if any(key in plain for key in _UNSAFE_KEYS):
        return None
    return Parsed(Raw(plain.encode()), not isinstance(value, str) and _is_plain(plain, value))


def output_text(output: Raw) -> Raw:
    """The JSON string of the text from which an output was made, if that was exact or not JSON."""
    if is_json_string(output):
        return output
    return Raw(msgspec.json.encode(msgspec.json.encode(msgspec.json.decode(output)).decode()))


def is_plain_json(value: Raw) -> bool:
    """Whether JSON is the same text again after it was parsed and written: without blanks, escapes and double keys."""
    try:
        return _encoder.encode(_decoder.decode(value)) == bytes(value)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return False


def _may_be_json(text: Raw) -> bool:
    if _CONTAINER.match(text):
        return _CLOSED.search(bytes(memoryview(text)[-_TAIL:])) is not None
    return _SCALAR.fullmatch(text) is not None


def _is_plain(plain: str, value: object) -> bool:
    return _FRAGILE.search(plain) is None and msgspec.json.encode(value).decode() == plain


_SPACE = rb"(?:\\[nrt]| )*"

_CONTAINER = re.compile(rb'"' + _SPACE + rb"[\[{]")

_NUMBER = rb"-?(?:0|[1-9]\d{0,14})(?:\.\d{1,15})?(?:[eE][-+]?\d\d?)?"

_SCALAR = re.compile(rb'"' + _SPACE + rb"(?:true|false|null|" + _NUMBER + rb'|\\".*)' + _SPACE + rb'"')
"""Numbers with up to 15 digits: JavaScript would round longer ones, so text with those stays text."""

_CLOSED = re.compile(rb'[\]}](?:\\[nrt]| )*"$')

_TAIL = 64
"""Bytes at the end of a text that must contain its last bracket."""

_FRAGILE = re.compile(r'\d[.eE]|\d{16}|"\d+":')
"""Values that a JavaScript program may write differently: some numbers, and the order of numeric keys."""

_UNSAFE_KEYS = ("__proto__", "constructor")
"""Keys for which the AI SDK may refuse a whole value; text that contains one stays text."""


class PartialResult(NamedTuple):
    """What `parse_partial_json` made of a text."""

    value: Any
    """UNSET if nothing could be parsed."""
    state: Literal["successful-parse", "repaired-parse", "failed-parse"]


@checked
def parse_partial_json(text: str, *, version: Version = 7) -> PartialResult:
    """Parse a text that may end anywhere, and say whether it was complete, like the AI SDK's `parsePartialJson`."""
    try:
        return PartialResult(parse_json(text), "successful-parse")
    except ValueError:
        value = PartialJson(text, version=version).value()
    return PartialResult(value, "failed-parse" if value is UNSET else "repaired-parse")


class PartialJson:
    """JSON text that grows by `feed`.

    Each character is scanned once, however many deltas there are; reading the value costs one parse. The scanner does
    not validate JSON, the parser does.
    """

    @checked
    def __init__(self, text: str = "", *, version: Version = 7) -> None:
        """Begin with a text. AI SDK 5 does not repair torn escapes, so the version matters."""
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
        """Append text."""
        if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # callers may have no types
            raise refusal("text", text, "text")
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
        """The value so far; UNSET if nothing can be parsed."""
        text = self._received()
        for candidate in (text if _may_be_whole(text) else None, self._fixed(text)):
            if candidate is not None:
                try:
                    return parse_json(self._whole(candidate))
                except ValueError:
                    continue
        return UNSET

    def _received(self) -> str:
        """The text as the scanner has counted it."""
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
        """Skip to the end of the string, or of the text; return the next position."""
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
            # Up to 6, `fixJson` accepts any first character of an array, even a space or a lone minus.
            if self._major < 7:
                self._valid = index + 1
        begun = _VALUE_STARTS.get(char)
        if begun is None:
            return
        # A lone minus is not a number yet.
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
        """Continue after a value that ended before this character or with it."""
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
        # An exponent or a decimal point counts only together with the digit after it.
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
        # 5 takes `\u` for a complete escape, and its parser fails until all four digits are there.
        if state is _State.ESCAPE and char == "u" and self._major > 5:
            self._stack[-1] = _State.UNICODE_ESCAPE
            self._hex_digits = 0
        elif state is _State.ESCAPE:
            self._close(index)
        elif char in _HEX:
            self._hex_digits += 1
            if self._hex_digits == 4:
                self._close(index)


def _may_be_whole(text: str) -> bool:
    """Whether it may be complete: its last bracket matches its first."""
    stripped = text.strip(_JSON_SPACE)
    return bool(stripped) and stripped[-1] == _ENDS.get(stripped[0], stripped[-1])


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
"""State in which a value may begin -> state after the value."""

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
