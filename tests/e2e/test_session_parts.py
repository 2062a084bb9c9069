"""What is in a session: every kind of part, branches, subagents, and contents that mean harm."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from support.browser_history import HARSH_ID, VARIED_ID
from support.browser_visit import Visit, expect_flash, settle, wait_until

pytestmark = pytest.mark.browser

VARIED = f"/sessions/{VARIED_ID}"


def test_a_tool_row_opens_to_its_input_and_output(visit: Visit) -> None:
    """R-H18, R-S37."""
    page = visit.open(VARIED)
    row = page.locator(".tool", has_text="cat ledger")
    expect(page.locator(".thumbnail img")).to_be_visible()
    visit.wait_until_idle()
    assert len(visit.asked_for("/api/blobs/")) == 1, "of large contents only the thumbnail is loaded"
    row.get_by_role("button").first.click()
    expect(row.get_by_text("row 0 of a large output")).to_be_visible()
    expect(row).not_to_contain_text("the very last row")
    row.get_by_role("button", name="Show all").click()
    expect(row).to_contain_text("the very last row")


def test_a_word_far_down_in_a_long_output_is_shown_and_marked(visit: Visit) -> None:
    page = visit.open(VARIED)
    page.keyboard.press("f")
    page.get_by_role("textbox", name="Find in this session").fill('"the very last row"')
    page.keyboard.press("Enter")
    expect(page.locator(".tool", has_text="cat ledger").locator(".output").last).to_contain_text("the very last row")
    wait_until(page, MARK_IN_SIGHT)


def test_every_match_in_a_long_output_is_marked(visit: Visit) -> None:
    page = visit.open(VARIED)
    page.keyboard.press("f")
    page.get_by_role("textbox", name="Find in this session").fill('"large output"')
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Show all").click()
    wait_until(page, "CSS.highlights.get('found')?.size >= 6000")


MARK_IN_SIGHT = """() => {
  const inSight = range => {
    const box = range.getBoundingClientRect();
    const scrolled = range.startContainer.parentElement.closest('.output').getBoundingClientRect();
    return box.top >= scrolled.top && box.bottom <= scrolled.bottom && box.bottom <= innerHeight;
  };
  const marks = [...(CSS.highlights.get('found') ?? [])];
  return marks.filter(inSight).join(' ').toLowerCase() === 'the very last row';
}"""


def test_parallel_calls_are_side_by_side_in_the_order_of_the_model(visit: Visit) -> None:
    page = visit.open(VARIED)
    group = page.get_by_role("group", name="2 calls at the same time")
    expect(group.locator(".tool")).to_have_count(2)
    tops = group.locator(".tool").evaluate_all("rows => rows.map(row => row.getBoundingClientRect().top)")
    assert tops[0] == tops[1]
    expect(group.locator(".tool").first).to_contain_text("cat ledger")


def test_a_structured_result_and_the_raw_records_are_one_click_away(visit: Visit) -> None:
    page = visit.open(VARIED)
    page.locator(".tool-row", has_text="Look around").click()
    page.locator(".tool", has_text="Look around").get_by_role("button", name="Structured result").click()
    expect(page.locator(".tool-structured")).to_contain_text("a1b2c3")
    expect(page.locator(".raw-record")).to_have_count(0)
    page.locator(".message", has_text="I begin.").get_by_role("button", name="Message details").click()
    page.get_by_role("complementary").get_by_role("button", name="Raw records").click()
    expect(page.locator(".raw-record").first).to_contain_text('"signature": "c2ln"')


def test_the_raw_records_of_a_call_are_one_key_away(visit: Visit) -> None:
    page = visit.open(VARIED)
    row = page.locator(".tool-row", has_text="rm -rf vault")
    row.focus()
    page.keyboard.press("r")
    records = page.locator(".tool", has_text="rm -rf vault").locator(".raw-record")
    expect(records).to_have_count(2)
    expect(records.first).to_contain_text('"name": "Bash"')
    expect(records.last).to_contain_text("User rejected tool use")
    page.keyboard.press("r")
    expect(records).to_have_count(0)


def test_a_message_and_a_session_can_be_copied_and_exported(visit: Visit) -> None:
    visit.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = visit.open(VARIED)
    clipboard = "navigator.clipboard.readText()"
    page.locator(".tool-row", has_text="rm -rf vault").click()
    page.get_by_role("group", name="Copy as").get_by_role("button", name="Markdown").click()
    expect(page.get_by_role("group", name="Copy as")).to_contain_text("Copied")
    assert page.evaluate(clipboard).startswith("**Bash**\n\n```bash\nrm -rf vault\n```")
    row = page.locator(".tool-row", has_text="make test")
    row.focus()
    page.keyboard.press("c")
    wait_until(page, "navigator.clipboard.readText().then(text => text.startsWith('http'))")
    assert re.search(r"#msg_0bbbbbbb_\d+/1$", page.evaluate(clipboard))
    command = "cd /home/ada/bank && claude --resume 0bbbbbbb-0000-4000-8000-000000000002"
    page.get_by_role("button", name="Resume").click()
    expect(page.get_by_text(command)).to_be_visible()
    page.get_by_role("button", name="Copy the command").first.click()
    expect(page.locator(".menu-item", has_text="Copied")).to_have_count(1)
    assert page.evaluate(clipboard) == command
    page.get_by_role("button", name="Share").click()
    page.get_by_role("button", name="Anthropic").click()
    wait_until(page, "navigator.clipboard.readText().then(text => text.includes('\"messages\"'))")
    with page.expect_download() as download:
        page.get_by_role("button", name="Markdown text").click()
    assert "Painted blue." in download.value.path().read_text(encoding="utf-8")


def test_an_image_is_a_thumbnail_that_opens(visit: Visit) -> None:
    page = visit.open(VARIED)
    thumbnail = page.locator(".thumbnail img")
    expect(thumbnail).to_be_visible()
    expect(thumbnail).to_have_js_property("naturalWidth", 48)
    thumbnail.click()
    expect(page.get_by_role("dialog", name="Image")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog", name="Image")).to_be_hidden()


def test_a_subagent_is_a_link_with_a_way_back(visit: Visit) -> None:
    page = visit.open(VARIED)
    page.get_by_role("link", name="Open subagent").click()
    expect(page.get_by_text("All doors are shut.")).to_be_visible()
    assert page.url.endswith(f"{VARIED}.a1b2c3")
    page.get_by_role("link", name="Back to the parent session").click()
    expect_flash(page, ".message", "Look around")


def test_the_other_branch_is_one_click_away(visit: Visit) -> None:
    page = visit.open(VARIED)
    left = page.locator('.message[data-fate="rewound"]')
    expect(page.get_by_text("Painted blue.")).to_be_visible()
    expect(left).to_have_count(0)
    head = page.get_by_role("button", name="Abandoned branch")
    expect(head).to_contain_text("Paint it green")
    expect(head).to_contain_text("2 messages")
    head.click()
    expect(left).to_have_count(2)
    expect(left.last).to_contain_text("Painted green.")
    page.get_by_role("button", name="Go to where it continued").click()
    expect(page.locator(".prompt", has_text="Paint it blue")).to_be_in_viewport()
    head.click()
    expect(left).to_have_count(0)


def test_a_link_into_another_branch_opens_it(visit: Visit) -> None:
    page = visit.open(VARIED)
    page.get_by_role("navigation", name="Prompts").get_by_role("button", name="Paint it green").click()
    expect(page.get_by_text("Painted green.")).to_be_in_viewport()


def test_a_subagent_opens_in_place(visit: Visit) -> None:
    page = visit.open(VARIED)
    page.locator(".tool-row", has_text="Look around").click()
    child = page.get_by_role("region", name="Session of the subagent")
    expect(child.get_by_text("All doors are shut.")).to_be_visible()
    settle(page)
    child.locator(".tool-row", has_text="doors/*").click()
    expect(child.locator(".found-path")).to_have_text(["doors/front", "doors/back"])
    assert page.url.endswith(VARIED)


def test_what_a_log_says_never_becomes_part_of_the_page(visit: Visit) -> None:
    page = visit.open(VARIED)
    prompt = page.locator(".prompt").first
    expect(prompt).to_contain_text("<script>document.title = 'hacked'</script>")
    expect(prompt).to_contain_text("[image: cat]")
    assert prompt.locator("script, .markdown img").count() == 0
    prompt.get_by_text("click", exact=True).click()
    expect(page).to_have_title("Mind the bank · turnlog")


def test_harsh_contents_stay_contents(visit: Visit) -> None:
    """Scripts, huge lines, turned directions, terminal codes, broken Markdown, kinds nobody knows."""
    page = visit.open(f"/sessions/{HARSH_ID}")
    page.get_by_role("button", name="Open all").click()
    expect(page.get_by_text("at the bottom")).to_be_attached()
    expect(page.locator(".code-block", has_text="never closed")).to_be_visible()
    expect(page.get_by_text("Unknown part: hologram")).to_be_attached()
    command = page.locator(".tool", has_text="gpj.exe")
    expect(command.locator(".code-block").first).to_have_text("echo ⟨U+202E⟩gpj.exe # <b>")
    expect(command.locator(".output")).to_contain_text("link home red bell")
    expect(page.locator(".tool-name", has_text="<b>Wide</b>")).to_be_attached()
    expect(page.locator(".tool", has_text="<b>Wide</b>")).to_contain_text("__proto__")
    assert page.locator(".prompt .markdown").evaluate("text => getComputedStyle(text).direction") == "rtl"
    code = page.locator(".prompt code, .markdown pre")
    assert set(code.evaluate_all("all => all.map(one => getComputedStyle(one).direction)")) == {"ltr"}
    assert page.locator("main :is(script, img, svg[onload], iframe)").count() == 0
    expect(page).to_have_title(re.compile("· turnlog$"))
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.locator(".timeline").evaluate("timeline => timeline.scrollWidth <= timeline.clientWidth")
    page.keyboard.press("End")
    expect(page.get_by_text("The end of it.")).to_be_visible()
