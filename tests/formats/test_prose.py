"""Markdown of models becomes harmless HTML that holds all of it."""

from __future__ import annotations

import re
import time
from collections import Counter
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnlog.formats.html.prose import prose

ELEMENTS = frozenset(
    {
        *("p", "br", "hr", "h4", "h5", "h6", "ul", "ol", "li", "blockquote", "pre", "code"),
        *("em", "strong", "s", "a", "table", "thead", "tbody", "tr", "th", "td"),
    }
)
ATTRIBUTES = frozenset({"href", "title", "rel", "class", "start"})


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.text += data


def read(text: str) -> _Reader:
    made = prose(text)
    assert made is not None
    reader = _Reader()
    reader.feed(made)
    reader.close()
    return reader


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("**bold** and *it*", "<p><strong>bold</strong> and <em>it</em></p>\n"),
        ("# One\n###### Six", "<h4>One</h4>\n<h6>Six</h6>\n"),
        ("```py\na < b\n```", '<pre><code class="language-py">a &lt; b\n</code></pre>\n'),
        ("3. x\n4. y", '<ol start="3"><li>x</li>\n<li>y</li>\n</ol>\n'),
        ("~~no~~", "<p><s>no</s></p>\n"),
        ("<b>no</b>", "<p>&lt;b&gt;no&lt;/b&gt;</p>\n"),
        ("a\x1b[31mb\x1b[0", "<p>ab</p>\n"),
    ],
)
def test_markdown_is_rendered(text: str, expected: str) -> None:
    assert prose(text) == expected


def test_only_addresses_of_the_web_and_of_mail_are_links() -> None:
    text = "[a](https://e.invalid/?x=1&y=2) <mailto:a@e.invalid> ![p](http://e.invalid/p.png)"
    assert [value for name, value in read(text).attributes if name == "href"] == [
        "https://e.invalid/?x=1&y=2",
        "mailto:a@e.invalid",
        "http://e.invalid/p.png",
    ]
    for address in ("javascript:alert(1)", "src/a.py", "//e.invalid", "file:///etc/passwd", "data:text/html,x", "#a"):
        reader = read(f"[a]({address})")
        assert reader.elements == ["p"]
        assert reader.text.strip() == f"[a]({address})"


@pytest.mark.parametrize(
    "text",
    [
        "| a |\n|---|\n| 1 | lost |",
        "> " * 60 + "lost",
        "\n".join("  " * depth + f"- {depth}" for depth in range(60)),
        "see [1]\n\n[1]: https://e.invalid",
        "x" * 200_001,
    ],
)
def test_what_rendering_would_cut_is_not_rendered(text: str) -> None:
    assert prose(text) is None


@given(st.from_regex(r"[A-Za-z][A-Za-z0-9 ,.;:'\"()?/%-]*", fullmatch=True))
def test_a_plain_line_is_a_paragraph(text: str) -> None:
    """Whether or not it is parsed: a line below makes sure that it is."""
    parsed = prose(f"{text}\n\n*")
    assert parsed is not None
    assert parsed.startswith(prose(text) or "")


def test_what_a_fence_says_besides_its_language_is_shown() -> None:
    assert prose("```12:40:src/app.py and more\nx\n```") == (
        "<p><code>12:40:src/app.py and more</code></p><pre><code>x\n</code></pre>\n"
    )


def test_markup_of_several_lines_is_text() -> None:
    assert prose("<div>\n<b>x</b>\n</div>") == "<p>&lt;div&gt;\n&lt;b&gt;x&lt;/b&gt;\n&lt;/div&gt;</p>\n"


def test_tables_have_a_head() -> None:
    assert prose("| a |\n|---|\n| 1 |\n| 2 |") == (
        "<table><tr><th>a</th></tr>\n<tr><td>1</td></tr>\n<tr><td>2</td></tr>\n</table>\n"
    )


@given(text=st.text(alphabet="abc1 *_`#>-|[]()!<=\n\\~:.'\"", max_size=60) | st.text(max_size=40))
def test_nothing_acts_and_no_letter_is_lost(text: str) -> None:
    made = prose(text)
    if made is None:
        return
    reader = read(text)
    assert set(reader.elements) <= ELEMENTS
    assert {name for name, _ in reader.attributes} <= ATTRIBUTES
    if "&" not in text:
        shown = reader.text + "".join([value or "" for name, value in reader.attributes if name != "rel"])
        letters = Counter(re.findall("[a-c]", text))
        assert letters <= Counter(re.findall("[a-c]", shown))


@pytest.mark.parametrize("piece", ["[", "*a_ ", "> ", "![", "[a](", "<a ", "**a", "`a``", "|", "- ", "[a]: b\n"])
def test_no_text_takes_long(piece: str) -> None:
    """Whatever it is made of: time grows with its length alone."""
    text = (piece * 200_000)[:200_000]
    begun = time.process_time()
    assert prose(text) is None or read(text)
    assert time.process_time() - begun < 5
