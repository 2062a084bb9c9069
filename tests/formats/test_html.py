"""The HTML document holds everything that was said, allows nothing but its own script, and opens small."""

import base64
import hashlib
import json
import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from support.bash_calls import bash_call as call
from support.model_values import TEXT
from turnlog.formats.escaping import escape, visible
from turnlog.formats.html import HtmlConversation, to_html
from turnlog.history import history
from turnlog.model import (
    Approval,
    CompactionEvent,
    Cost,
    DataPart,
    ErrorEvent,
    Fate,
    FilePart,
    HistoryEvent,
    InterruptEvent,
    Membership,
    Message,
    MessageError,
    Origin,
    Part,
    ReasoningPart,
    RecordEvent,
    RewindEvent,
    Role,
    Session,
    SourceDocumentPart,
    SourceUrlPart,
    TextPart,
    ToolCallPart,
    ToolKind,
    ToolResult,
    ToolResultEvent,
    UnknownPart,
    Usage,
    UsageTotal,
)
from turnlog.model.codec import to_json

HOSTILE = (
    "</pre></script><!--<script>alert(1)</script>'\"><img src=x onerror=alert(1)>"
    "<style>*{}</style>&lt;\x1b[31m\r\n\u202e"
)


class _Reader(HTMLParser):
    """What a browser makes of the page: its elements, and its text."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.scripts: list[tuple[str | None, str]] = []
        self._inside: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._inside.append(tag)

    def handle_endtag(self, tag: str) -> None:
        self._inside.append("/" + tag)

    def handle_data(self, data: str) -> None:
        if self._inside and self._inside[-1] == "script":
            self.scripts.append((self.elements[-1][1].get("class"), data))
        else:
            self.texts.append(data)

    @property
    def text(self) -> str:
        return "".join(self.texts)


def read(document: str, *, whole: bool = True) -> _Reader:
    """The page; `whole` with the windows that wait in it."""
    reader = _Reader()
    reader.feed(document)
    for kind, data in list(reader.scripts) if whole else ():
        if kind == "window":
            reader.feed("".join(json.loads(data)))
    reader.close()
    return reader


def conversation(
    *parts: Part,
    role: Role = "assistant",
    origin: Origin | None = None,
    name: str = "s",
    events: tuple[HistoryEvent, ...] = (),
    fate: Fate = Fate.ACTIVE,
    error: MessageError | None = None,
) -> HtmlConversation:
    message = Message(id="m1", role=role, origin=origin, model="large", parts=parts, error=error)
    place = Membership(session_id="a:s", message_id="m1", position=0, turn=1, step=1, fate=fate)
    session = Session(id=f"a:{name}", agent="a", external_id=name, title=f"Session {name}")
    return HtmlConversation(session, history([message], list(events), [place]))


def page(*conversations: HtmlConversation) -> str:
    return b"".join(to_html(conversations)).decode()


def test_parts_and_what_lies_between_messages_are_shown() -> None:
    """R-K21."""
    events = (
        CompactionEvent(id="e1", trigger="auto", position=1),
        RewindEvent(id="e2", position=2),
        InterruptEvent(id="e3", during="tool", position=3),
        ErrorEvent(id="e4", error_text="overloaded", position=4),
        RecordEvent(id="e5", kind="hologram", known=False, position=5),
        ToolResultEvent(tool_call_id="lost", result=ToolResult(id="r", content=(TextPart(text="orphan"),)), position=6),
    )
    parts = (
        ReasoningPart(text="hm"),
        ReasoningPart(text="", redacted=True),
        TextPart(text="hello"),
        call(),
        FilePart(media_type="image/png", filename="shot.png", data=b"12345"),
        SourceUrlPart(source_id="u", url="https://example.invalid/a", title="A page"),
    )
    text = read(page(conversation(*parts, events=events, fate=Fate.REWOUND))).text
    for expected in (
        "Turn 1 · Assistant · large · step 1 (rewound)",
        "hm",
        "withheld by the provider",
        "hello",
        "Bash ls done",
        "Image: shot.png · image/png · 5 bytes",
        "Source: A page · https://example.invalid/a",
        "Context compacted: auto",
        "Rewound to the start",
        "Interrupted: tool",
        "overloaded",
        "Unknown record: hologram",
        "orphan",
    ):
        assert expected in text


def test_every_output_and_the_whole_input_are_there() -> None:
    first = ToolResult(id="r1", content=(TextPart(text="launched"),), preliminary=True)
    last = ToolResult(id="r2", status="error", content=(TextPart(text="x" * 9000),), error_text="it broke", exit_code=2)
    spilled = ToolResult(id="r3", content=(TextPart(text="preview"),), spilled_to="all.txt")
    made = conversation(call(first, last, spilled, text="y" * 9000))
    text = read(page(made._replace(read_spill={"all.txt": "whole"}.get))).text
    for expected in ("y" * 9000, "launched", "x" * 9000, "it broke", "exit 2", "whole"):
        assert expected in text
    assert "preview" not in text
    assert "preview" in read(page(made)).text


@pytest.mark.parametrize(
    "part",
    [
        TextPart(text=HOSTILE),
        ReasoningPart(text=HOSTILE),
        call(ToolResult(id="r", content=(TextPart(text=HOSTILE),), error_text=HOSTILE + "!"), text=HOSTILE),
        call(title=HOSTILE, approval=Approval(approved=False, reason=HOSTILE), child_session_id=HOSTILE),
        ToolCallPart(tool_call_id=HOSTILE, tool_name=HOSTILE, input_text=HOSTILE),
        FilePart(media_type=HOSTILE, filename=HOSTILE, url=HOSTILE),
        SourceUrlPart(source_id=HOSTILE, url=HOSTILE, title=HOSTILE),
        SourceDocumentPart(source_id=HOSTILE, media_type=HOSTILE, title=HOSTILE, filename=HOSTILE),
        DataPart(name=HOSTILE, data=to_json({HOSTILE: HOSTILE})),
        UnknownPart(kind=HOSTILE, data=to_json({HOSTILE: HOSTILE})),
    ],
    ids=lambda part: part.type,
)
def test_hostile_text_is_text_in_every_part(part: Part) -> None:
    filler = [TextPart(text="filler")] * 150
    near, far = read(page(conversation(part))), read(page(conversation(*filler, part)))
    for reader in (near, far):
        assert not {"img"} & {tag for tag, _ in reader.elements}
        assert [tag for tag, _ in reader.elements].count("style") == 1
        assert not any(name.startswith("on") or name == "style" for _, attrs in reader.elements for name in attrs)
        assert all(attrs.get("href") in (None, "#") for _, attrs in reader.elements)
        assert "<img src=x onerror=alert(1)>" in reader.text.replace('\\"', '"')
        assert "\x1b" not in reader.text


def test_hostile_text_is_text_in_sessions_and_events() -> None:
    session = Session(id=HOSTILE, agent=HOSTILE, external_id=HOSTILE, title=HOSTILE, cwd=HOSTILE, git_branch=HOSTILE)
    events = (ErrorEvent(id="e", error_text=HOSTILE), RecordEvent(id="r", kind=HOSTILE, known=False))
    prompted = conversation(
        TextPart(text=HOSTILE), role="user", origin=Origin.PROMPT, events=events, error=MessageError(text=HOSTILE)
    )
    reader = read(page(prompted._replace(session=session)))
    assert {tag for tag, _ in reader.elements}.isdisjoint({"img", "iframe"})
    assert [tag for tag, _ in reader.elements].count("style") == 1
    assert json.loads(next(data for kind, data in reader.scripts if kind == "sessions")) == {HOSTILE: 0}


@given(text=TEXT | st.text(alphabet="<>&\"'/!-\\script\n\r\0 \ud800", max_size=40))
def test_any_text_comes_back_as_it_is_shown(text: str) -> None:
    reader = _Reader()
    reader.feed(f'<p title="{escape(text)}">{escape(text)}</p>')
    reader.close()
    assert reader.text == visible(text)
    assert [tag for tag, _ in reader.elements] == ["p"]
    assert reader.elements[0][1]["title"] == visible(text)


def test_the_policy_allows_its_own_script_and_style_and_nothing_else() -> None:
    document = page(conversation(TextPart(text="hello")))
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', document)
    script = re.search(r"<script>(.*)</script></body>", document, re.DOTALL)
    style = re.search(r"<style>(.*?)</style>", document, re.DOTALL)
    assert policy is not None
    assert script is not None
    assert style is not None
    hashes = [base64.b64encode(hashlib.sha256(each[1].encode()).digest()).decode() for each in (script, style)]
    assert policy[1] == (
        f"default-src 'none'; script-src 'sha256-{hashes[0]}'; style-src 'sha256-{hashes[1]}'; img-src data:;"
        " base-uri 'none'; form-action 'none'"
    )
    assert not re.search(r"(?:src|href|action)=\"(?!#)", document)


def test_a_long_session_waits_in_windows() -> None:
    results = [
        call(ToolResult(id=f"r{number}", content=(TextPart(text=f"output {number}."),))) for number in range(6000)
    ]
    document = page(conversation(*results))
    first = read(document, whole=False)
    assert len(first.elements) < 2000
    assert "output 10." in first.text
    assert "output 5999." not in first.text
    whole = read(document).text
    assert all(f"output {number}." in whole for number in range(6000))


def test_large_outputs_end_a_window_early() -> None:
    results = [call(ToolResult(id=f"r{number}", content=(TextPart(text="x" * 150_000),))) for number in range(8)]
    document = page(conversation(*results))
    counts = [int(attrs["data-count"] or 0) for tag, attrs in read(document).elements if tag == "section"]
    assert max(counts) <= 4
    assert sum(counts) == 10 + 1
    assert len(document) < 8 * 150_000 + 50_000


def test_prompts_are_in_the_outline_and_subagents_in_the_page() -> None:
    parent = conversation(call(child_session_id="a:scout"), TextPart(text="done"))
    child = conversation(TextPart(text="look  around"), role="user", origin=Origin.SUBAGENT_PROMPT, name="scout")
    reader = read(page(parent, child))
    links = [attrs for tag, attrs in reader.elements if tag == "a"]
    assert [link["data-block"] for link in links if "data-block" in link] == ["0", "4", "5"]
    assert [link["data-session"] for link in links if "data-session" in link] == ["a:scout"]
    assert json.loads(next(data for kind, data in reader.scripts if kind == "sessions")) == {"a:s": 0, "a:scout": 4}
    assert "look around" in reader.text


def test_a_command_is_in_the_outline_as_it_was_typed() -> None:
    typed = {"claude-code": {"command": {"name": "/compact", "arguments": "keep the names"}}}
    text = TextPart(text="<command-name>/compact</command-name>")
    message = Message(id="m1", role="user", origin=Origin.COMMAND, metadata=typed, parts=(text,))
    place = Membership(session_id="a:s", message_id="m1", position=0)
    session = Session(id="a:s", agent="a", external_id="s", title="Session")
    reader = read(page(HtmlConversation(session, history([message], [], [place]))))
    assert "/compact keep the names" in reader.text


def test_no_conversation_is_an_error() -> None:
    with pytest.raises(ValueError, match="no conversation"):
        page()


def test_what_a_model_wrote_is_rendered_and_what_was_typed_is_not() -> None:
    answered, typed = conversation(TextPart(text="**so**")), conversation(TextPart(text="**so**"), role="user")
    summary = conversation(TextPart(text="**so**"), role="user", origin=Origin.COMPACTION)
    assert "<strong>so</strong>" in page(answered)
    assert "<strong>so</strong>" in page(summary)
    assert "<pre>\n**so**</pre>" in page(typed)
    assert "**so**" in page(conversation(TextPart(text="**so** " * 30_000)))


def test_what_the_agent_added_is_folded() -> None:
    document = page(conversation(TextPart(text="<note>\nbe <b>nice</b>"), role="developer", origin=Origin.HARNESS))
    assert '<details class="added"><summary><b>Added by the agent</b> &lt;note&gt; be &lt;b&gt;nice' in document
    assert "<pre>\n&lt;note&gt;\nbe &lt;b&gt;nice&lt;/b&gt;</pre></details>" in document
    assert "<h3" not in document


def test_consecutive_texts_of_the_agent_are_folded_into_one() -> None:
    parts = TextPart(text="first"), TextPart(text="second")
    document = page(conversation(*parts, role="developer", origin=Origin.HARNESS))
    assert document.count("<b>Added by the agent: 2 texts</b> first") == 1
    assert document.count("<pre>\nfirst</pre>") == document.count("<pre>\nsecond</pre>") == 1


def test_the_title_is_in_the_page_once_and_the_figures_below_it() -> None:
    session = Session(
        id="a:s",
        agent="a",
        external_id="s",
        title="The session",
        models=("model-1",),
        created_at=datetime(2026, 11, 21, 10, 0, tzinfo=UTC),
        updated_at=datetime(2026, 11, 21, 10, 2, 5, tzinfo=UTC),
        usage=UsageTotal(calls=3, usage=Usage(input=1000, output=234)),
        cost=Cost(amount=Decimal("0.25")),
        unpriced_calls=1,
    )
    document = page(HtmlConversation(session, []))
    body = document.partition("<main>")[2].partition("</main>")[0]
    assert "The session" not in body
    for name, value in (
        ("Models", "model-1"),
        ("Duration", "2 min 5 s"),
        ("Tokens", "1,234"),
        ("Cost", "at least $0.25 (without 1 of 3 calls)"),
    ):
        assert f"<dt>{name}</dt><dd>{value}</dd>" in body


def test_a_cost_that_only_the_agent_knows_is_shown_as_reported() -> None:
    called = UsageTotal(calls=1, usage=Usage(input=1))
    session = Session(id="a:s", agent="a", external_id="s", usage=called, models=("m",))
    told = structs.replace(session, reported_cost=Cost(amount=Decimal("0.0081"), kind="reported"))
    assert "<dd>unknown: no price is known for m</dd>" in page(HtmlConversation(session, []))
    assert "<dt>Cost</dt><dd>$0.0081 as its agent reported it</dd>" in page(HtmlConversation(told, []))


@pytest.mark.parametrize(("lasted", "words"), [(0.288, "288 ms"), (2.64, "2.6 s"), (43, "43 s"), (3720, "1 h 2 min")])
def test_a_document_says_how_long_a_session_was_as_the_page_does(lasted: float, words: str) -> None:
    began = datetime(2026, 11, 21, 10, 0, tzinfo=UTC)
    session = Session(
        id="a:s", agent="a", external_id="s", created_at=began, updated_at=began + timedelta(seconds=lasted)
    )
    assert f"<dt>Duration</dt><dd>{words}</dd>" in page(HtmlConversation(session, []))


def test_a_log_with_one_time_does_not_say_how_long_the_session_took() -> None:
    at = datetime(2026, 7, 24, 9, tzinfo=UTC)
    session = Session(id="claude-code:s1", agent="claude-code", external_id="s1", created_at=at, updated_at=at)
    assert "<dt>Duration</dt>" not in page(HtmlConversation(session, []))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\n b", "a b"),
        ("ten words  " * 20, f"{'ten words ' * 9}ten words…"),
        ("x" * 101, f"{'x' * 99}…"),
        ("x" + " " * 400 + "y", "x…"),
    ],
)
def test_what_is_shown_of_a_long_text_says_that_it_goes_on(text: str, shown: str) -> None:
    added = page(conversation(TextPart(text=text), role="developer", origin=Origin.HARNESS))
    assert f"<summary><b>Added by the agent</b> {shown}</summary>" in added
    prompted = page(conversation(TextPart(text=text), role="user", origin=Origin.PROMPT))
    assert f">{shown}</a>" in prompted


def test_images_are_in_the_page_and_other_files_are_reported() -> None:
    data = b"\x89PNG-1"
    image = FilePart(media_type="image/png", filename='"shot".png', data=data)
    drawing = FilePart(media_type="image/svg+xml", data=b"<svg onload='x'/>")
    inside = call(ToolResult(id="r", content=(TextPart(text="seen"), image)))
    reader = read(page(conversation(image, drawing, inside, FilePart(media_type="image/png", url="https://e/x.png"))))
    sources = [attrs["src"] for tag, attrs in reader.elements if tag == "img"]
    assert sources == [f"data:image/png;base64,{base64.b64encode(data).decode()}"] * 2
    assert 'Image: "shot".png · image/png · 6 bytes' in reader.text
    assert "Image: image/svg+xml · 17 bytes" in reader.text
    assert "Image: https://e/x.png · image/png" in reader.text


def test_an_edit_is_a_diff_with_its_input_below() -> None:
    edit = ToolCallPart(
        tool_call_id="c",
        tool_name="Edit",
        kind=ToolKind.EDIT,
        input=to_json({"file_path": "a<b>.py", "old_string": "x<1>\nsame", "new_string": "y&1\nz\nsame"}),
    )
    document = page(conversation(edit))
    assert "<del>-x&lt;1&gt;</del>\n<ins>+y&amp;1\n+z</ins>\n same</pre>" in document
    assert "--- a&lt;b&gt;.py" in document
    assert '"old_string": "x<1>\\nsame"' in read(document).text


def test_markup_of_the_page_is_in_no_rendered_text() -> None:
    """A text may look like the page's own links; it gets none of them."""
    hostile = '<a href="#" data-block="0">x</a>\n\n[y](#)\n\n```found onclick=x\n1\n```'
    reader = read(page(conversation(TextPart(text=hostile))))
    links = [attrs for tag, attrs in reader.elements if tag == "a"]
    assert all("data-block" in link and link["data-block"] == "0" for link in links[:1])
    assert len(links) == 1
