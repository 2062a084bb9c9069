"""Text of logs inside Markdown and HTML: shown as text, never interpreted.

In Markdown, text of a log is in fences that are longer than any run of backticks in it, or is escaped within its
line; in HTML it is escaped. So no tag, link, image, heading or fence of a log is one of the document, and
no terminal obeys what it prints.
"""

from __future__ import annotations

import re

from turnlog.plain_text import replace_unseen, without_escapes

_LINE_ENDS = re.compile("\r\n?|\x85|\u2028|\u2029")
_PICTURES = {code: 0x2400 + code for code in range(0x20) if code not in (0x09, 0x0A)} | {0x7F: 0x2421}
_SHOWN = _PICTURES | dict.fromkeys([*range(0x80, 0xA0), *range(0xD800, 0xE000)], 0xFFFD)
_ODD = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_ODD_BYTES = bytes(code for code in (*_SHOWN, 0x0D) if code < 0x80)
_TICKS = re.compile("`+")
_PUNCTUATION = re.compile(
    r"([\\`*_{}\[\]()#!|~$@^]"
    # Dots and colons only where a reader would see an address or a picture: times, versions and ids stay legible.
    r"|\.(?=[^\W\d_])|:(?=/|[A-Za-z_+-][\w+-]*:|\d{3,}:))"
)
_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"})


def visible(text: str) -> str:
    """The text with a picture (`␀`) for each control character but newline and tab, U+FFFD for what has none.

    Sequences that colour a terminal or move its cursor are left out: they say nothing on a page. What nobody sees, and
    what turns the direction of a line, is U+FFFD too (`plain_text`).
    """
    # Some characters that nobody sees are printable to Python: fillers, forms.
    if text.isascii() and text.isprintable():
        return text
    text = without_escapes(text)
    shown = _LINE_ENDS.sub("\n", text).translate(_SHOWN) if _is_odd(text) else text
    return replace_unseen(shown, lambda character: "\ufffd")


def _is_odd(text: str) -> bool:
    """Whether there is anything to replace. Most texts are plain, and replacing is slow."""
    if not text.isascii():
        return _ODD.search(text) is not None
    data = text.encode()
    return len(data.translate(None, _ODD_BYTES)) < len(data)


def fence(text: str, language: str = "") -> str:
    """The text as a block of code, in a fence that it cannot close."""
    shown = visible(text)
    ticks = "`" * max(3, 1 + max((len(run) for run in _TICKS.findall(shown)), default=0))
    return f"{ticks}{language}\n{shown}{'' if shown.endswith(chr(10)) or not shown else chr(10)}{ticks}"


def inline(text: str) -> str:
    """The text in one line that says only itself."""
    line = " ".join(visible(text).split())
    return _PUNCTUATION.sub(r"\\\1", line).translate(_ENTITIES)


def escape(text: str) -> str:
    """The text as characters of HTML, in an element and in a quoted attribute."""
    return escape_inside(text).replace('"', "&quot;").replace("'", "&#39;")


def escape_inside(text: str) -> str:
    """The text as characters of HTML, in an element alone: quotes mean nothing there."""
    return visible(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
