"""Markdown holds everything that was said, and nothing of it does anything."""

import json
import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from support.bash_calls import bash_call as call
from support.model_values import TEXT
from turnlog.formats.escaping import fence, inline
from turnlog.formats.markdown import to_markdown
from turnlog.history import history
from turnlog.model import (
    DataPart,
    Fate,
    FilePart,
    Membership,
    Message,
    Part,
    ReasoningPart,
    Session,
    TextPart,
    ToolResult,
    UnknownPart,
)
from turnlog.model.codec import to_json

HOSTILE = "\n".join(
    (
        "# a heading",
        "```` ```",
        "~~~~",
        "</pre><script>alert(1)</script>",
        "![x](https://example.invalid/x.png) [y](javascript:alert(1))",
        "\x1b[31mred\x1b]0;owned\x07\x9b2J",
        "`````markdown",
        "    indented",
        "> quoted",
    )
)


def blocks(document: str) -> list[Token]:
    """What a reader of CommonMark with tables and HTML makes of the document."""
    return MarkdownIt("commonmark", {"html": True}).enable("table").parse(document)


def fenced(document: str) -> list[str]:
    return [token.content.rstrip("\n") for token in blocks(document) if token.type == "fence"]


def headings(document: str) -> list[str]:
    tokens = blocks(document)
    return [after.content for token, after in pairwise(tokens) if token.type == "heading_open"]


def document(*parts: Part, session: Session | None = None, fate: Fate = Fate.ACTIVE) -> str:
    message = Message(id="m1", role="assistant", model="large", parts=parts)
    place = Membership(session_id="a:s", message_id="m1", position=0, turn=1, step=1, fate=fate)
    shown = session or Session(id="a:s", agent="a", external_id="s", title="A session")
    return "".join(to_markdown(shown, history([message], [], [place]), names={"a:s.scout": "Scout"}))


def shown(text: str) -> str:
    """What is between the lines of a fence."""
    return "\n".join(fence(text).split("\n")[1:-1])


def test_every_output_and_the_whole_input_are_there() -> None:
    first = ToolResult(id="r1", content=(TextPart(text="launched"),), preliminary=True)
    last = ToolResult(id="r2", status="error", content=(TextPart(text="x" * 9000),), error_text="it broke", exit_code=2)
    made = document(call(first, last, text="y" * 9000))
    assert [json.loads(fenced(made)[0]), *fenced(made)[1:]] == [
        {"command": "y" * 9000},
        "launched",
        "x" * 9000,
        "it broke",
    ]
    assert "exit 2" in made


def test_headings_name_turn_speaker_and_fate() -> None:
    made = document(ReasoningPart(text="hm"), TextPart(text="hello"), call(), fate=Fate.REWOUND)
    assert headings(made) == [
        "A session",
        "Turn 1",
        "Assistant · large · step 1 (rewound)",
        "Reasoning",
        "Tool call: Bash · ls · done",
    ]


def test_files_and_subagents_are_mentioned_by_name() -> None:
    image = FilePart(media_type="image/png", filename="shot.png", data=b"12345")
    made = document(image, call(child_session_id="a:s.scout"))
    assert "**Image** · shot\\.png · image/png · 5 bytes" in made
    assert "Subagent: Scout" in made


@pytest.mark.parametrize(
    "part",
    [
        TextPart(text=HOSTILE),
        ReasoningPart(text=HOSTILE),
        call(ToolResult(id="r", content=(TextPart(text=HOSTILE),)), text=HOSTILE, title=HOSTILE),
        call(ToolResult(id="r", error_text=HOSTILE, status="error"), child_session_id=HOSTILE),
        FilePart(media_type=HOSTILE, filename=HOSTILE, url=HOSTILE),
        DataPart(name=HOSTILE, data=to_json([HOSTILE])),
        UnknownPart(kind=HOSTILE, data=to_json({HOSTILE: HOSTILE})),
    ],
    ids=lambda part: part.type,
)
def test_hostile_text_stays_text(part: Part) -> None:
    session = Session(id="a:s", agent="a", external_id="s", title=HOSTILE, git_branch=HOSTILE, cwd=HOSTILE)
    made = document(part, session=session)
    tokens = blocks(made)
    kinds = {each.type for token in tokens for each in (token, *(token.children or ()))}
    assert not kinds & {"html_block", "html_inline", "image", "link_open", "blockquote_open", "code_block"}
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", made)
    assert len(headings(made)) == (4 if part.type in ("tool-call", "reasoning") else 3)


@given(st.text(st.sampled_from("`~\n\r #<>a\\\x1b"), max_size=60) | TEXT)
def test_a_fence_holds_any_text(text: str) -> None:
    (token,) = blocks(fence(text))
    assert token.type == "fence"
    assert token.content.rstrip("\n") == shown(text).rstrip("\n")


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("2026-11-21 01:20:14 UTC", "2026-11-21 01:20:14 UTC"),
        ("claude-code:50a993fb, 2.1.329.", "claude-code:50a993fb, 2.1.329."),
        ("https://a.example www.b.example", r"https\://a\.example www\.b\.example"),
        ("shot.png :smile: :100: :+1:", r"shot\.png \:smile: \:100: \:+1:"),
    ],
)
def test_only_what_a_reader_would_make_something_of_is_escaped(text: str, written: str) -> None:
    assert inline(text) == written


@given(st.text(st.sampled_from('`~*_[]()!<>&"a1.\\# \n|-=+:/@'), min_size=1, max_size=40))
def test_an_inline_text_says_only_itself(text: str) -> None:
    _, token, _ = blocks(f"x {inline(text)}")
    assert {child.type for child in token.children or ()} <= {"text", "text_special"}
    assert "".join(child.content for child in token.children or ()).strip() == f"x {' '.join(text.split())}".strip()
