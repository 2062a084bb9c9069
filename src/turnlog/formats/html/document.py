"""Blocks as a page: a head that allows nothing but its own script and style, an outline, and windows.

The first window is in the page; the later ones, and the outline's, lie in it as JSON, which a browser neither parses
nor shows until it is asked for. The script makes a window live when it comes near, is searched to, or is printed.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Sequence
from importlib.resources import files

import orjson

from turnlog.formats.escaping import escape
from turnlog.formats.html.blocks import Block, Conversation, blocks

_WINDOW = 100
"""Blocks of a window at most; more where a page would have more than `_WINDOWS`."""
_WINDOWS = 2000
_WINDOW_SIZE = 200_000
"""Characters after which a window ends, so that one is always quick to show."""


def to_html(conversations: Sequence[Conversation]) -> Iterator[bytes]:
    """The document, piece by piece.

    Args:
        conversations: The session, then those of its subagents; ValueError where there is none. Calls lead to the
            sessions that they started.
    """
    if not conversations:
        raise ValueError("no conversation to show")
    titles = {shown.session.id: shown.session.title or shown.session.id for shown in conversations}
    made = [block for shown in conversations for block in blocks(shown, titles)]
    style, script = _own("page.css"), _own("page.js")
    yield _head(next(iter(titles.values())), style, script).encode()
    yield b'<nav class="outline" aria-label="Prompts">'
    yield from _windows([_entry(number, block) for number, block in enumerate(made) if block.title is not None])
    yield b"</nav><main>"
    yield from _windows([block.html for block in made])
    yield b"</main>"
    yield _data({block.session_id: number for number, block in enumerate(made) if block.session_id}, "sessions")
    yield f"<script>{script}</script></body></html>\n".encode()


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
<header class="bar"><h1>{escape(title)}</h1><div role="search"><input type="search" aria-label="Search this session" \
placeholder="Search, also what is folded"><output></output><button type="button" data-step="-1" \
aria-label="Previous">↑</button><button type="button" data-step="1" aria-label="Next">↓</button>\
<button type="button" class="unfold" aria-pressed="false">Unfold all</button></div></header>
<noscript><p class="note">The later parts of a long session and the search need scripts.</p></noscript>
"""


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _entry(number: int, block: Block) -> str:
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
