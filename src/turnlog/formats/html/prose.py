"""What a model wrote, as HTML: Markdown rendered, and nothing that acts.

Markup in the text is text. Only absolute web and mail addresses become links, no picture is fetched, headings rank
below the page's own, and a sanitizer has the last word. A text of which rendering would show less is not rendered.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from markdown_it.token import Token

from turnlog.formats.inert import visible

if TYPE_CHECKING:
    from collections.abc import Callable

    from markdown_it.rules_core import StateCore


_LONGEST = 50_000
"""Characters of a text that is rendered; a longer one is shown as it is written."""

_ADDRESS = re.compile(r"(?:https?://|mailto:)[^\s]", re.IGNORECASE)
_LOWEST = 6
_BELOW = 3
"""A first-rank heading of an answer ranks below the page's title, the session's and the speaker's."""

_CUT = "cut"
_INLINE_MARK = re.compile(r"[\\`*~\[<&!]|\b_|_\b")
_CELL_END = re.compile(r"(?<!\\)\|")
_LANGUAGE = re.compile(r"\s*[\w+#.-]*\s*")

_TAGS = {
    *("p", "br", "hr", "h4", "h5", "h6", "ul", "ol", "li", "blockquote", "pre", "code"),
    *("em", "strong", "s", "a", "table", "thead", "tbody", "tr", "th", "td"),
}
_ATTRIBUTES = {"a": {"href", "title"}, "code": {"class"}, "ol": {"start"}}


def prose(text: str) -> str | None:
    """The text as HTML; None where it is better shown as it is written: too long, or more in it than is rendered."""
    return None if len(text) > _LONGEST else _renderer()(visible(text))


@cache
def _renderer() -> Callable[[str], str | None]:
    import nh3
    from markdown_it import MarkdownIt

    # A definition of a link that nothing refers to would not be shown.
    markdown = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    markdown.disable(["image", "reference"])
    markdown.validateLink = lambda url: _ADDRESS.match(url) is not None
    markdown.core.ruler.at("inline", _read_inline)
    markdown.core.ruler.push("check", _check)
    cleaner = nh3.Cleaner(
        tags=_TAGS,
        attributes=_ATTRIBUTES,
        url_schemes={"http", "https", "mailto"},
        link_rel="noopener noreferrer",
    )

    def render(text: str) -> str | None:
        env: dict[str, bool] = {}
        made = markdown.render(text, env)
        return None if _CUT in env else cleaner.clean(made)

    return render


def _read_inline(state: StateCore) -> None:
    """The library's rule, but that a line without any mark is a text at once: most are, and parsing is slow."""
    for token in state.tokens:
        if token.type != "inline":
            continue
        token.children = []
        if "\n" in token.content or _INLINE_MARK.search(token.content):
            state.md.inline.parse(token.content, state.md, state.env, token.children)
        else:
            text = Token("text", "", 0)
            text.content = token.content
            token.children.append(text)


def _check(state: StateCore) -> None:
    """Rank the headings, and mark what Markdown would cut."""
    deepest = int(state.md.options["maxNesting"]) - 1
    for token in state.tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(int(token.tag[1:]) + _BELOW, _LOWEST)}"
        if token.level >= deepest or _is_cut(token, state.src):
            state.env[_CUT] = True
            return


def _is_cut(token: Token, source: str) -> bool:
    """Whether it loses something: cells that no column is for, what stands behind the name of a language."""
    if token.type == "fence":
        return _LANGUAGE.fullmatch(token.info) is None
    if token.type != "table_open" or token.map is None:
        return False
    header, *rows = [len(_CELL_END.split(line.strip().strip("|"))) for line in source.splitlines()[slice(*token.map)]]
    return any(row > header for row in rows)
