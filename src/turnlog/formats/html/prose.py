"""What a model wrote, as HTML: Markdown rendered, and nothing that acts.

Markup in the text is text. Only absolute web and mail addresses become links, no picture is fetched, headings rank
below the page's own, and a sanitizer has the last word. A text of which rendering would show less is not rendered.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

from turnlog.formats.escaping import escape, escape_inside, visible

if TYPE_CHECKING:
    import nh3
    import pyromark

_LONGEST = 200_000
"""Characters of a text that is rendered: a page must not get tens of thousands of elements from one answer."""

_DEEPEST = 50
"""Elements inside of each other; a browser gives up at some hundreds."""

_ADDRESS = re.compile(r"(?:https?://|mailto:)\S", re.IGNORECASE)
_DEFINITION = re.compile(r"^ {0,3}\[[^\]\n]+\]:", re.MULTILINE)
_CELL_END = re.compile(r"(?<!\\)\|")
_RULER = re.compile(r"[\s>]*\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*")
"""The line below the header of a table."""

_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9 ,.;:'\"()?/%-]*(?<! )")
"""One line that no rule of Markdown applies to, as many answers are: there is nothing to parse or to clean."""

_LANGUAGE = re.compile(r"[\w+#.-]+")

_ELEMENTS = {
    "Paragraph": "p",
    "BlockQuote": "blockquote",
    "Item": "li",
    "Emphasis": "em",
    "Strong": "strong",
    "Strikethrough": "s",
    "Table": "table",
    "TableRow": "tr",
    "HtmlBlock": "p",
}
"""Parser event -> HTML element; those with their own rule are in `_Writer`."""

_RANKS = {"H1": "h4", "H2": "h5"}
"""The page has the first three ranks for itself."""

_VOID = {"SoftBreak": "\n", "HardBreak": "<br>\n", "Rule": "<hr>\n"}
_BLOCKS = frozenset({"p", "blockquote", "li", "table", "tr", "ul", "ol", "h4", "h5", "h6"})


def prose(text: str) -> str | None:
    """The text as HTML; None where it is better shown as it is written: long, or some of it would not be shown."""
    text = visible(text)
    # A definition of a link is shown nowhere.
    if len(text) > _LONGEST or _DEFINITION.search(text):
        return None
    if _PLAIN.fullmatch(text):
        return f"<p>{text}</p>\n"
    made = _Writer().write(_parser().events(text))
    return None if made is None or ("<table>" in made and _has_spare_cells(text)) else _cleaner().clean(made)


@cache
def _parser() -> pyromark.Markdown:
    import pyromark

    return pyromark.Markdown(options=pyromark.Options.ENABLE_TABLES | pyromark.Options.ENABLE_STRIKETHROUGH)


@cache
def _cleaner() -> nh3.Cleaner:
    import nh3

    tags = {*_ELEMENTS.values(), *_RANKS.values(), "h6", "br", "hr", "ul", "ol", "pre", "code", "a", "th", "td"}
    return nh3.Cleaner(
        tags=tags,
        attributes={"a": {"href", "title"}, "code": {"class"}, "ol": {"start"}},
        url_schemes={"http", "https", "mailto"},
        link_rel="noopener noreferrer",
    )


def _has_spare_cells(text: str) -> bool:
    """Whether a row of a table has more cells than its header: those are not shown."""
    lines = text.splitlines()
    return any(
        len(_cells(row)) > len(_cells(lines[index]))
        for index in range(len(lines))
        if "-" in lines[index] and _RULER.fullmatch(lines[index])
        for row in _rows(lines, index + 1)
    )


def _rows(lines: list[str], start: int) -> Iterator[str]:
    for line in lines[start:]:
        if "|" not in line:
            return
        yield line


def _cells(line: str) -> list[str]:
    return _CELL_END.split(line.strip().strip("|"))


class _Writer:
    """Writes HTML from the parser's events."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._ends: list[str] = []
        """What closes the elements that are open."""
        self._cell = "td"

    def write(self, events: Iterator[Any]) -> str | None:
        """The HTML; None where it would be nested too deep."""
        for event in events:
            if isinstance(event, str):
                self._pieces.append(_VOID[event])
                continue
            ((kind, value),) = event.items()
            if kind == "Start":
                self._start(value)
                if len(self._ends) > _DEEPEST:
                    return None
            elif kind == "End":
                self._pieces.append(self._ends.pop())
            elif kind == "Code":
                self._pieces.append(f"<code>{escape_inside(value)}</code>")
            else:
                # Text, and markup, which is text here.
                self._pieces.append(escape_inside(value))
        return "".join(self._pieces)

    def _start(self, tag: str | dict[str, Any]) -> None:
        name, value = (tag, None) if isinstance(tag, str) else next(iter(tag.items()))
        match name, value:
            case "Heading", {"level": level}:
                self._open(_RANKS.get(level, "h6"))
            case "List", int(first) if first != 1:
                self._open("ol", f' start="{first}"')
            case "List", _:
                self._open("ul" if value is None else "ol")
            case "CodeBlock", {"Fenced": str(info)}:
                self._open_code(info.strip())
            case "CodeBlock", _:
                self._open_code("")
            case (("Link" | "Image"), {"dest_url": str(address), "title": str(title), "link_type": kind}):
                self._pieces.append("!" if name == "Image" else "")
                self._open_link(f"mailto:{address}" if kind == "Email" else address, title)
            case "TableHead", _:
                self._cell = "th"
                self._open("tr")
            case "TableCell", _:
                self._open(self._cell)
            case _:
                self._cell = "td" if name == "TableRow" else self._cell
                self._open(_ELEMENTS[name])

    def _open(self, element: str, attributes: str = "") -> None:
        self._pieces.append(f"<{element}{attributes}>")
        self._ends.append(f"</{element}>\n" if element in _BLOCKS else f"</{element}>")

    def _open_code(self, info: str) -> None:
        """A block of code; what its fence says besides a language (a file, lines) is shown above it."""
        is_language = _LANGUAGE.fullmatch(info) is not None
        if info and not is_language:
            self._pieces.append(f"<p><code>{escape_inside(info)}</code></p>")
        self._pieces.append(f'<pre><code class="language-{info}">' if is_language else "<pre><code>")
        self._ends.append("</code></pre>\n")

    def _open_link(self, address: str, title: str) -> None:
        """A link where it leads into the web; else, as it is written."""
        if _ADDRESS.match(address):
            named = f' title="{escape(title)}"' if title else ""
            self._open("a", f' href="{escape(address)}"{named}')
            return
        target = f'{address} "{title}"' if title else address
        self._pieces.append("[")
        self._ends.append(f"]({escape_inside(target)})")
