"""Text of logs where people see it: on a terminal, as a title, in a cell of a spreadsheet.

A log may hold anything: sequences that recolour, retitle or rewrite a terminal or type into it, characters that turn
the direction of a line so that it reads as another, and characters that nobody sees. What is stored stays as it was;
every text passes one of these functions on its way out. JSON is exact: it escapes instead (`cli.terminal`), and
documents show a sign in their place (`formats.escaping`).
"""

from __future__ import annotations

import re
from collections.abc import Callable

_SEQUENCES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor, modes
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)"  # OSC, DCS, SOS, PM, APC
    r"|\x1b[ -/]*[0-~]"  # two-character escapes
)
_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*(?:[@-~]|\Z)"  # a text may be cut within one
    r"|\x1b[\]PX^_][^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)"
    r"|\x1b[ -/]*(?:[0-~]|\Z)"
)
"""The sequences that programs write. A single character of the others may be a letter of a wrongly decoded text."""

_STRINGS_IN_JSON = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_LINE_ENDS = re.compile("\r\n?|[\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
# Whatever a sequence could begin with: once these are gone, no sequence is left, however the others were nested.
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_MAYBE_SPECIAL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
"""What one of the three above has in it. Most texts have none, and one search is a third of the time of three."""

JOINED_SCRIPTS = (
    # Arabic and its kin, Indic scripts, Mongolian
    "\u0600-\u061b\u061d-\u06ff\u0700-\u074f\u0750-\u077f\u07c0-\u07ff\u0840-\u08ff\ufb50-\ufdff\ufe70-\ufefc"
    "\u0900-\u0dff\u0f00-\u0fff\u1000-\u109f\u1780-\u17ff\u1b00-\u1bff\ua800-\uaaff\U00011000-\U00011fff"
    "\u1810-\u18af"
)
"""Scripts whose spelling needs joiners (U+200C, U+200D)."""

_EMOJI = "\u2190-\u21ff\u2300-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff"

_IDEOGRAPHS = "\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"

UNSEEN = (
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u206f"  # marks, embeddings, overrides and isolates of direction
    "\u180e\u200b-\u200d\u2060-\u2065\ufeff\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"  # no width
    "\xad\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0"  # a hyphen of line ends, a joiner of nothing, and fillers
    "\u180b-\u180d\u180f\ufe00-\ufe0f\U000e0000-\U000e0fff"  # tags, and forms of the character before
)
"""A set of characters that turn a line's direction or that nobody sees."""

_NEEDED = (
    f"(?<=[{JOINED_SCRIPTS}])[\u200c\u200d]"
    f"|(?:(?<=[{_EMOJI}])|(?<=[{_EMOJI}]\ufe0f))\u200d(?=[{_EMOJI}])"
    # A form of what is before it. Text can be hidden in forms: behind nothing, behind each other, or behind letters
    # that have none.
    f"|(?<=[#*0-9\xa1-\U0010ffff])(?<![{UNSEEN}])[\ufe00-\ufe0f]"
    f"|(?<=[{_IDEOGRAPHS}])[\U000e0100-\U000e01ef]"
    "|(?<=[\u1820-\u18aa])[\u180b-\u180d\u180f]"
)
"""Which of these stay: joiners in an emoji or behind a letter of a script that is spelled with them, forms, flags.

Compiled for the first text that has one: that takes milliseconds, which a light command would spend for nothing.
"""

_FOUND = re.compile(
    # The form of an emoji is needed, and too frequent for a look at each. Flags of England, Scotland and Wales: the one
    # use that tags have.
    f"[{UNSEEN}](?<![{_EMOJI}][\ufe0e\ufe0f])(?:(?<=\U0001f3f4[\U000e0030-\U000e007a])[\U000e0030-\U000e0039\U000e0061-\U000e007a]{{2,5}}\U000e007f)?"
)
"""One of them, or all of a flag. It begins with a set, which is looked for twenty times as fast as alternatives."""

_FORMULA = frozenset("=+-@\N{MINUS SIGN}＝＋－＠﹦﹢﹣﹫")  # noqa: RUF001  # full-width and small forms are meant
"""How a cell begins that some spreadsheet would compute."""


def plain(text: str) -> str:
    """The text for a terminal: no control character but newline and tab, nothing unseen, no turn of direction."""
    if _MAYBE_SPECIAL.search(text) is not None:
        text = _CONTROLS.sub("", _LINE_ENDS.sub("\n", _SEQUENCES.sub("", text)))
    return without_unseen(text)


def without_escapes(text: str) -> str:
    """The text without the sequences that colour a terminal or move its cursor, as programs write them."""
    return _ESCAPES.sub("", text) if "\x1b" in text else text


def without_escapes_in_json(json: str) -> str:
    """JSON whose strings are without the sequences that colour a terminal or move its cursor."""
    return _STRINGS_IN_JSON.sub(_string_without_escapes, json) if "\\u001" in json else json


def _string_without_escapes(found: re.Match[str]) -> str:
    string = found[0]
    if "\\u001" not in string:
        return string
    from json import dumps, loads

    try:
        text = loads(string, strict=False)
    except ValueError:
        return string
    shown = without_escapes(text)
    # Half of a pair stays an escape, because no encoding has it.
    return string if shown == text else dumps(shown, ensure_ascii=re.search("[\ud800-\udfff]", shown) is not None)


def without_unseen(text: str) -> str:
    """The text without characters that turn a line's direction or that nobody sees."""
    return replace_unseen(text, lambda character: "")


def replace_unseen(text: str, sign: Callable[[str], str]) -> str:
    """The text with a sign in the place of each character that turns a line's direction or that nobody sees."""
    if text.isascii() or _FOUND.search(text) is None:
        return text
    needed = re.compile(_NEEDED)

    def shown(found: re.Match[str]) -> str:
        stays = len(found[0]) > 1 or needed.match(text, found.start()) is not None
        return found[0] if stays else sign(found[0])

    return _FOUND.sub(shown, text)


def one_line(text: str, limit: int | None = None) -> str:
    """The text as a title or a cell of a table: `plain`, in one line, cut to `limit` characters with an ellipsis."""
    line = " ".join(plain(text).split())
    return line if limit is None or len(line) <= limit else line[: limit - 1].rstrip() + "…"


def refuse_controls(name: str) -> str:
    """The name, which somebody gave to a person, a machine, a tag or the like.

    Raises ValueError for one that would do something to a terminal or a line: with a control character, an end of a
    line, or a character that turns its direction.
    """
    if (found := _NOT_IN_NAMES.search(name)) is not None:
        raise ValueError(f"no control characters are taken: character {found.start() + 1} is U+{ord(found[0]):04X}")
    return name


def refuse_controls_in_text(text: str) -> str:
    """The same for a text of several lines, such as a note: it may have tabs and ends of lines."""
    refuse_controls(text.replace("\t", " ").replace("\r", " ").replace("\n", " "))
    return text


_NOT_IN_NAMES = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def columns_of(text: str) -> int:
    """Columns of a terminal that a text takes: wide East Asian characters take two."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(0 if combining(character) else 2 if east_asian_width(character) in "WF" else 1 for character in text)


def csv_cell(text: str) -> str:
    """The text as a cell of CSV: `one_line`, with an apostrophe before what a spreadsheet would take for a formula."""
    line = one_line(text)
    return f"'{line}" if line[:1] in _FORMULA else line
