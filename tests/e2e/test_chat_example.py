"""The example's page in a browser: prompts, streams, reloads in the middle, two tabs, stops, permissions."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from support import held_chat_example
from support.browser_visit import Visit

pytestmark = pytest.mark.browser

EXAMPLE = Path(__file__).parents[2] / "examples" / "chat"


class Served:
    """The example's server."""

    def __init__(self, folder: Path) -> None:
        assert (EXAMPLE / "page/dist").is_dir(), f"npm ci && npm run build in {EXAMPLE / 'page'}, or make pytest"
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        self._let_go = folder / "let-go"
        held = [sys.executable, held_chat_example.__file__, str(EXAMPLE), str(self._let_go)]
        self._arguments = [*held, "--port", str(port), "--data", str(folder)]
        self.address = f"http://127.0.0.1:{port}"
        self.start()

    def start(self) -> None:
        self._process = subprocess.Popen(self._arguments, env=dict(os.environ), stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            try:
                urllib.request.urlopen(f"{self.address}/api/chat/nobody", timeout=5).close()
            except OSError:
                time.sleep(0.05)
            else:
                return
        raise AssertionError("the example did not start")

    def hold(self) -> None:
        """Let every long answer wait before its end, from here on."""
        self._let_go.unlink(missing_ok=True)

    def let_go(self) -> None:
        """Let answers come to their end."""
        self._let_go.touch()

    def end(self, number: signal.Signals) -> None:
        self._process.send_signal(number)
        self._process.communicate(timeout=20)


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    served = Served(tmp_path_factory.mktemp("chats"))
    yield served
    served.end(signal.SIGTERM)


@pytest.fixture
def window(browser: Browser, example: Served) -> Iterator[Visit]:
    example.hold()
    context = browser.new_context(viewport={"width": 900, "height": 900})
    visit = Visit(context, example.address)
    visit.page.goto(example.address)
    visit.page.locator("main").wait_for()
    yield visit
    context.close()
    assert visit.problems == []


def ask(page: Page, text: str) -> None:
    page.get_by_label("Message").fill(text)
    page.get_by_role("button", name="Send").click()


def ready(page: Page) -> None:
    expect(page.locator("main[data-status=ready]")).to_be_visible()


def test_an_answer_streams_with_its_thought_and_its_tool(window: Visit, example: Served) -> None:
    """R-O27, R-S39."""
    page = window.page
    ask(page, "Hello there")
    answer = page.get_by_label("assistant")
    expect(answer.locator("details")).to_contain_text("Let me")
    expect(answer.get_by_label("count")).to_have_attribute("data-state", "output-available")
    expect(answer.get_by_label("count")).to_contain_text('"letters": 10')
    expect(page.get_by_role("button", name="Stop")).to_be_visible()
    expect(answer).to_contain_text("This answer is made")
    page.get_by_label("Message").fill("More")
    page.get_by_label("Message").press("Enter")  # Not while it answers.
    example.let_go()
    expect(answer).to_contain_text("I shall ask you first.")
    ready(page)
    expect(page.locator("article")).to_have_count(2)
    expect(page.get_by_label("Message")).to_have_value("More")


def test_a_reload_in_the_middle_and_a_second_tab_show_all_of_it(window: Visit, example: Served) -> None:
    page = window.page
    ask(page, "Hello")
    expect(page.get_by_label("assistant")).to_contain_text("word by word")
    page.reload()
    expect(page.locator("main[data-status=streaming]")).to_be_visible()
    tab = page.context.new_page()
    tab.goto(page.url)
    expect(tab.locator("main[data-status=streaming]")).to_be_visible()
    example.let_go()
    for shown in (page, tab):
        expect(shown.locator("article")).to_have_count(2)
        expect(shown.get_by_label("assistant").locator("p")).to_have_text(
            re.compile("^This answer .* ask you first. $")
        )
        ready(shown)
    page.reload()
    expect(page.get_by_label("assistant").locator("p")).to_contain_text("ask you first.")


def test_a_stop_ends_the_answer_for_good(window: Visit, example: Served) -> None:
    page = window.page
    ask(page, "Hello")
    expect(page.get_by_label("assistant")).to_contain_text("word by word")
    page.get_by_role("button", name="Stop").click()
    ready(page)
    example.let_go()
    expect(page.get_by_label("assistant")).not_to_contain_text("ask you first")
    page.reload()
    expect(page.get_by_label("assistant")).to_contain_text("word by word")
    page.wait_for_load_state("networkidle")  # what a page shows first may grow, where an answer still streams
    ready(page)
    expect(page.get_by_label("assistant")).not_to_contain_text("ask you first")


@pytest.mark.parametrize(("button", "said"), [("Allow", "It is gone."), ("Refuse", "Then it stays.")])
def test_the_page_is_asked_before_anything_is_deleted(window: Visit, button: str, said: str) -> None:
    page = window.page
    ask(page, "Delete my files")
    expect(page.get_by_label("delete")).to_have_attribute("data-state", "approval-requested")
    ready(page)
    page.reload()
    page.get_by_role("button", name=button).click()
    expect(page.get_by_label("assistant")).to_contain_text(said)
    ready(page)
    expect(page.get_by_label("assistant")).to_have_count(1)


def test_a_server_that_was_killed_goes_on_where_it_was(browser: Browser, tmp_path: Path) -> None:
    example = Served(tmp_path)
    page = browser.new_page()
    page.goto(example.address)
    ask(page, "Hello")
    expect(page.get_by_label("assistant")).to_contain_text("it is all there")
    example.end(signal.SIGKILL)
    expect(page.get_by_role("alert")).to_be_visible()
    example.start()
    page.reload()
    expect(page.get_by_label("assistant")).to_contain_text("Reload the page")
    # A page is ready before it requests a stream to go on with, too.
    page.wait_for_load_state("networkidle")
    ready(page)
    example.let_go()
    ask(page, "Again")
    expect(page.get_by_label("assistant").last).to_contain_text("ask you first.")
    expect(page.locator("article")).to_have_count(4)
    page.close()
    example.end(signal.SIGTERM)
