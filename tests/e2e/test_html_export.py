"""The exported HTML file in a browser: it opens small, says nothing in the console, and finds what it has not shown."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from support.browser_visit import SECONDS, wait_until
from support.provider_messages import PNG
from turnlog.formats.html import HtmlConversation, to_html
from turnlog.history import history
from turnlog.model import (
    FilePart,
    Membership,
    Message,
    Origin,
    Part,
    ReasoningPart,
    Session,
    TextPart,
    ToolCallPart,
    ToolKind,
    ToolResult,
)
from turnlog.model.codec import to_json

pytestmark = pytest.mark.browser

TURNS = 3000
HOSTILE = "</pre></script><img src=x onerror=\"document.title='hacked'\"><script>document.title='hacked'</script>"


def _messages(turn: int) -> tuple[Message, Message]:
    prompt = Message(
        id=f"p{turn}", role="user", origin=Origin.PROMPT, parts=(TextPart(text=f"Prompt {turn} {HOSTILE}"),)
    )
    result = ToolResult(id=f"r{turn}", content=(TextPart(text=f"jar <{turn}> & lid\n" + "row of a shelf\n" * 60),))
    call = ToolCallPart(
        tool_call_id=f"c{turn}",
        tool_name="Bash",
        input=to_json({"command": f"ls shelf/{turn}"}),
        results=(result,),
        child_session_id="a:scout" if turn == 1 else None,
    )
    parts: tuple[Part, ...] = (ReasoningPart(text="Where is it?"), call, TextPart(text=f"Shelf {turn}. {HOSTILE}"))
    return prompt, Message(id=f"a{turn}", role="assistant", model="large", parts=parts)


def _rich() -> HtmlConversation:
    """One answer of everything that is more than text."""
    code = "```py\ndef f(x):  # why\n    return 'a' + 12\n```\n"
    said = f"# Title\n\n**bold** words, [a page](https://example.invalid/)\n\n{code}"
    image = FilePart(media_type="image/png", filename="dot.png", data=PNG)
    edit = ToolCallPart(
        tool_call_id="e",
        tool_name="Edit",
        kind=ToolKind.EDIT,
        input=to_json({"file_path": "a.py", "old_string": f"one {HOSTILE}", "new_string": "two"}),
        results=(ToolResult(id="r", content=(image,)),),
    )
    parts: tuple[Part, ...] = (TextPart(text=said + HOSTILE), edit)
    filler = tuple(TextPart(text=f"filler {number}") for number in range(200))
    messages = [
        Message(id="a", role="assistant", model="large", parts=parts),
        Message(id="b", role="assistant", model="large", parts=(*filler, *parts)),
    ]
    places = [Membership(session_id="a:rich", message_id=each.id, position=n) for n, each in enumerate(messages)]
    session = Session(id="a:rich", agent="a", external_id="rich", title="Session long")
    return HtmlConversation(session, history(messages, [], places))


def _conversation(name: str, turns: int) -> HtmlConversation:
    messages = [message for turn in range(1, turns + 1) for message in _messages(turn)]
    places = [
        Membership(session_id=f"a:{name}", message_id=message.id, position=number, turn=number // 2 + 1)
        for number, message in enumerate(messages)
    ]
    session = Session(id=f"a:{name}", agent="a", external_id=name, title=f"Session {name}")
    return HtmlConversation(session, history(messages, [], places))


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("export") / "session.html"
    path.write_bytes(b"".join(to_html([_conversation("long", TURNS), _conversation("scout", 2)])))
    return path


@pytest.fixture
def rich(browser: Browser, tmp_path: Path) -> Iterator[Page]:
    path = tmp_path / "rich.html"
    path.write_bytes(b"".join(to_html([_rich()])))
    yield from _opened(browser, path, "light")


@pytest.fixture
def page(browser: Browser, exported: Path) -> Iterator[Page]:
    yield from _opened(browser, exported, "light")


@pytest.fixture
def dark_page(browser: Browser, exported: Path) -> Iterator[Page]:
    yield from _opened(browser, exported, "dark")


def _opened(browser: Browser, path: Path, scheme: Any) -> Iterator[Page]:
    """The file in a window that watches the console and the network."""
    context = browser.new_context(viewport={"width": 1280, "height": 800}, color_scheme=scheme)
    page = context.new_page()
    page.set_default_timeout(SECONDS * 1000)
    problems: list[str] = []
    asked: list[str] = []
    page.on("console", lambda message: problems.append(message.text))
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(path.as_uri())
    yield page
    assert page.title() == "Session long"
    context.close()
    assert problems == []
    assert [url for url in asked if not url.startswith("data:")] == [path.as_uri()]


def _nodes(page: Page) -> int:
    return page.evaluate(
        "() => { const all = document.createTreeWalker(document); let count = 1; while (all.nextNode()) count++;"
        " return count; }"
    )


def _expect_found_in_view(page: Page, text: str) -> None:
    found = page.locator(".found").first
    expect(found).to_contain_text(text)
    expect(found).to_be_in_viewport()


@pytest.mark.parametrize("window", ["page", "dark_page"])
def test_it_opens_small_and_hostile_text_stays_text(window: str, request: pytest.FixtureRequest) -> None:
    page: Page = request.getfixturevalue(window)
    assert _nodes(page) <= 20_000
    assert page.locator("img, iframe, object").count() == 0
    expect(page.locator(".text").first).to_contain_text("<img src=x onerror")


def test_search_finds_an_output_that_is_not_shown_yet(page: Page) -> None:
    assert page.get_by_text("jar <2345>").count() == 0
    page.keyboard.press("/")
    page.keyboard.type("JAR <2345> & lid")
    page.keyboard.press("Enter")
    expect(page.get_by_role("status")).to_have_text("1 of 1")
    expect(page.locator("details.call.found pre").last).to_be_visible()
    _expect_found_in_view(page, "jar <2345> & lid")
    wait_until(page, "CSS.highlights.get('found')?.size === 1")
    assert _nodes(page) <= 20_000


def test_search_steps_through_its_hits(page: Page) -> None:
    field = page.get_by_role("searchbox")
    field.fill("ls shelf/")
    expect(page.get_by_role("status")).to_have_text(str(TURNS + 2))
    page.get_by_role("button", name="Previous").click()
    expect(page.get_by_role("status")).to_have_text(f"{TURNS + 2} of {TURNS + 2}")
    page.get_by_role("button", name="Next").click()
    expect(page.get_by_role("status")).to_have_text(f"1 of {TURNS + 2}")
    field.fill("no such words")
    expect(page.get_by_role("status")).to_have_text("nothing")


def test_links_lead_to_prompts_and_subagents(page: Page) -> None:
    page.locator("nav a").nth(90).click()
    _expect_found_in_view(page, "Turn 90")
    page.locator("nav a").first.click()
    page.locator("summary", has_text="Bash").first.click()
    page.locator("a[data-session]").first.click()
    _expect_found_in_view(page, "Session scout")


def test_scrolling_makes_the_rest_live(page: Page) -> None:
    before = page.locator("main h3").count()
    later = page.locator("main > section").nth(4)
    expect(later.locator("h3")).to_have_count(0)
    later.scroll_into_view_if_needed()
    expect(later.locator("h3").first).to_be_attached()
    expect(page.locator("main h3").nth(before)).to_be_attached()


def test_answers_images_and_edits_are_shown_as_what_they_are(rich: Page) -> None:
    first = rich.locator(".prose").first
    expect(first.locator("strong")).to_have_text("bold")
    expect(first.locator("h4")).to_have_text("Title")
    expect(first).to_contain_text("<img src=x onerror")
    rich.get_by_role("button", name="Unfold all").click()
    image = rich.locator("details.call img").first
    expect(image).to_be_visible()
    assert image.evaluate("async image => { await image.decode(); return image.naturalWidth; }") == 1
    expect(rich.locator(".diff del").first).to_contain_text("-one </pre></script><img")
    expect(rich.locator(".diff ins").first).to_have_text("+two")
    marks = json.dumps([["comment", 1], ["string", 1], ["number", 1], ["word", 2]], separators=(",", ":"))
    wait_until(rich, f"JSON.stringify([...CSS.highlights].map(([name, ranges]) => [name, ranges.size])) === '{marks}'")
    rich.get_by_role("button", name="Unfold all").click()
    expect(rich.locator("details[open]")).to_have_count(0)


def test_a_text_has_its_own_direction_and_code_reads_from_left_to_right(browser: Browser, tmp_path: Path) -> None:
    conversation = _conversation("long", 1)
    text = TextPart(text="استخدم `foo()` الآن.")
    messages = [Message(id="a", role="assistant", model="large", parts=(text,))]
    places = [Membership(session_id="a:long", message_id="a", position=0)]
    path = tmp_path / "arabic.html"
    path.write_bytes(b"".join(to_html([conversation._replace(events=history(messages, [], places))])))
    for page in _opened(browser, path, "light"):
        edges = page.locator(".prose p").evaluate(
            """paragraph => {
                const edge = (node, offset) => {
                    const range = document.createRange();
                    range.setStart(node, offset);
                    range.setEnd(node, offset + 1);
                    return range.getBoundingClientRect().left;
                };
                const code = paragraph.querySelector("code").firstChild;
                const last = paragraph.lastChild;
                return [edge(last, last.length - 1), edge(code, 0), edge(code, 4), edge(paragraph.firstChild, 0)];
            }"""
        )
        assert edges == sorted(edges)


def test_search_reads_over_markup_and_opens_later_windows_unfolded(rich: Page) -> None:
    field = rich.get_by_role("searchbox")
    field.fill("bold words, a page")
    field.press("Enter")
    expect(rich.get_by_role("status")).to_have_text("1 of 2")
    field.press("Enter")
    expect(rich.get_by_role("status")).to_have_text("2 of 2")
    _expect_found_in_view(rich, "bold words, a page")
    wait_until(rich, "CSS.highlights.get('word')?.size === 4")
    rich.get_by_role("button", name="Unfold all").click()
    expect(rich.locator("details:not([open])")).to_have_count(0)


def test_paper_has_everything_unfolded(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "short.html"
    path.write_bytes(b"".join(to_html([_conversation("short", 60)])))
    page = browser.new_page()
    page.goto(path.as_uri())
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    expect(page.locator("details:not([open])")).to_have_count(0)
    expect(page.locator("main script")).to_have_count(0)
    expect(page.get_by_text("jar <60> & lid")).to_be_visible()
    expect(page.locator("nav")).to_be_hidden()
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    expect(page.locator("details[open]")).to_have_count(0)
    page.close()
