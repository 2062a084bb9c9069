"""Documents of every recorded session: all that was said and put out is in them, and nothing of it is markup."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from markdown_it import MarkdownIt

from support.profiles import some_of
from support.recorded_sessions import recorded_history
from turnlog.formats.escaping import visible
from turnlog.formats.html import HtmlConversation, to_html
from turnlog.formats.markdown import to_markdown
from turnlog.logs import SessionHistory
from turnlog.model import HistoryEvent, MessageEvent, ReasoningPart, TextPart, ToolCallPart, ToolResult, ToolResultEvent

DATA = Path(__file__).parents[1] / "data"
LOGS = sorted(
    path
    for kind in ("*/scenarios", "*/streams", "*/versions")
    for path in DATA.glob(f"{kind}/**/*.jsonl")
    if path.stat().st_size
)
ACTING = {"html_block", "html_inline", "image", "link_open", "blockquote_open", "code_block", "code_inline"}


@cache
def sessions() -> dict[str, SessionHistory]:
    """The recorded sessions; files beside sessions are none."""
    read = {str(path.relative_to(DATA)): recorded_history(path) for path in LOGS}
    return {name: session for name, session in read.items() if session is not None}


def texts(events: Sequence[HistoryEvent]) -> list[str]:
    """What was said, thought and put out."""
    contents: list[str] = []
    for event in events:
        if isinstance(event, ToolResultEvent):
            contents += _output(event.result)
        elif isinstance(event, MessageEvent):
            for part in event.message.parts:
                if isinstance(part, TextPart | ReasoningPart):
                    contents.append(part.text)
                elif isinstance(part, ToolCallPart):
                    contents += [text for result in part.results for text in _output(result)]
    return [text for text in contents if text.strip()]


def _output(result: ToolResult) -> list[str]:
    return [] if result.spilled_to else [part.text for part in result.content if isinstance(part, TextPart)]


def test_there_are_sessions_of_every_agent() -> None:
    assert {name.partition("/")[0] for name in sessions()} >= {"claude_code", "codex", "gemini_cli", "klaude"}


def test_markdown_has_all_of_it_in_fences_and_nothing_acts() -> None:
    for name, session in some_of([*sessions().items()], 20):
        made = "".join(to_markdown(session.session, session.events))
        tokens = MarkdownIt("commonmark", {"html": True}).enable("table").parse(made)
        assert not {each.type for token in tokens for each in (token, *(token.children or ()))} & ACTING, name
        fenced = {token.content.rstrip("\n") for token in tokens if token.type == "fence"}
        assert [text for text in texts(session.events) if visible(text).rstrip("\n") not in fenced] == [], name


def test_html_has_every_output() -> None:
    for name, session in some_of([*sessions().items()], 20):
        page = b"".join(to_html([HtmlConversation(session.session, session.events)])).decode()
        windows = [piece for data in re.findall(r'class="window">(.*?)</script>', page) for piece in json.loads(data)]
        shown = "".join([page, *windows])
        outputs = [event.result for event in session.events if isinstance(event, ToolResultEvent)]
        wanted = [visible(text) for result in outputs for text in _output(result)]
        assert [text for text in wanted if html.escape(text, quote=False) not in shown] == [], name
