"""A window of a browser on the web app, and a record of what went wrong in it."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import BrowserContext, ConsoleMessage, Locator, Page, Request, Response, expect

from support.browser_history import TURNS
from turnlog.server.access import page_key

CHROMIUM = next(filter(os.path.exists, ("/usr/bin/chromium-headless-shell", "/usr/bin/chromium")), "chromium")
"""Debian's. Without windows, tabs and their pages, the shell takes less than half of the time of the whole browser."""

SECONDS = 15
"""How long anything may take to appear; generous, because other tests run at the same time."""

expect.set_options(timeout=SECONDS * 1000)

TOKEN = "a token that nobody guesses"
"""The access token of all servers in these tests, so that one browser is signed in to each of them."""

SIGNED_IN = f"localStorage.setItem('turnlog.key', '{page_key(TOKEN)}')"
"""What a link of `turnlog open` leaves in a browser."""


STREAM = re.compile(r"/events(\?|$)")

RECORD_FLASHES = """(() => {
  const flashed = window.flashed = new Set();
  const look = () => document.querySelectorAll('.flash').forEach(element => flashed.add(element));
  new MutationObserver(look).observe(document, { subtree: true, childList: true, attributeFilter: ['class'] });
})()"""


class Visit:
    """One window, signed in."""

    def __init__(self, context: BrowserContext, address: str) -> None:
        context.add_init_script(SIGNED_IN)
        context.add_init_script(RECORD_FLASHES)
        self.page: Page = context.new_page()
        self.page.set_default_timeout(SECONDS * 1000)
        self.requests: list[str] = []
        self._open: set[Request] = set()
        self.problems: list[str] = []
        self._refusals: set[int] = set()
        self._address = address
        self.page.on("console", self._on_console)
        self.page.on("pageerror", lambda error: self.problems.append(f"error: {error}"))
        self.page.on("request", self._on_request)
        self.page.on("response", self._on_response)
        self.page.on("requestfinished", lambda request: self._open.discard(request))
        self.page.on("requestfailed", lambda request: self._open.discard(request))

    def open(self, path: str) -> Page:
        """Go to a page of the app and wait until its content is there."""
        self.page.goto(self._address + path)
        return self._loaded()

    def go_on(self, path: str) -> Page:
        """Go from a page of the app to another one, as its links do. To load the app anew takes a second."""
        self.page.evaluate("path => history.pushState(null, '', path)", path)
        return self._loaded()

    def _loaded(self) -> Page:
        # While a page is being loaded, the one before is still there, out of sight.
        expect(self.page.locator("main")).to_have_count(1)
        expect(self.page.locator("[aria-busy=true]")).to_have_count(0)
        self._wait_for(lambda: not self._open)
        return self.page

    def close(self) -> None:
        """Close the window once the server has taken what was sent: the next test finds what this one has left."""
        self._wait_for(lambda: all(request.method == "GET" for request in self._open))
        self.page.context.close()

    def _wait_for(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + SECONDS
        while not condition():
            assert time.monotonic() < deadline, [request.url for request in self._open]
            self.page.wait_for_timeout(20)

    def wait_until_idle(self) -> None:
        """Until nothing is loaded any more, for half a second; streams of changes have no end."""
        calm = 0
        while calm < 5:
            self.page.wait_for_timeout(100)
            calm = 0 if self._open else calm + 1

    def expect_refusal(self, status: int) -> None:
        """Take answers of this status, whenever they come, for what the test is about and no problem."""
        self._refusals.add(status)

    def slow_down(self, factor: int) -> None:
        """Give the page a processor this many times as slow, from here on."""
        developer_tools: Any = self.page.context.new_cdp_session(self.page)
        developer_tools.send("Emulation.setCPUThrottlingRate", {"rate": factor})

    def asked_for(self, part: str) -> list[str]:
        """Requests so far whose address contains this."""
        return [url for url in self.requests if part in url]

    def _on_console(self, message: ConsoleMessage) -> None:
        refused = re.search(r"status of (\d+)", message.text)
        if refused is not None and int(refused[1]) in self._refusals:
            return
        if message.type in {"error", "warning"}:
            self.problems.append(f"console: {message.text}")

    def _on_request(self, request: Request) -> None:
        self.requests.append(request.url)
        if not STREAM.search(request.url):
            self._open.add(request)
        if urlsplit(request.url.removeprefix("blob:")).netloc != urlsplit(self._address).netloc:
            self.problems.append(f"another host was asked: {request.url}")

    def _on_response(self, response: Response) -> None:
        if response.status >= 400 and response.status not in self._refusals:
            self.problems.append(f"{response.status} for {response.url}")


SETTLED = """element => new Promise(done => {
  let seen = '', frames = 0, since = 0;
  const look = () => {
    const now = `${element.scrollTop} ${element.scrollHeight} ${element.clientHeight}`;
    if (now !== seen) [seen, frames, since] = [now, 0, performance.now()];
    frames += 1;
    if (frames > 15 && performance.now() - since > 400) done();
    else requestAnimationFrame(look);
  };
  look();
})"""


def wait_until(where: Page | Locator, condition: str) -> None:
    """Until an expression in JavaScript is true on a page, or a function of an element is.

    Playwright's own `wait_for_function` evaluates it within the page, which its content security policy forbids.
    """
    page = where if isinstance(where, Page) else where.page
    deadline = time.monotonic() + SECONDS
    while not where.evaluate(condition):
        assert time.monotonic() < deadline, f"not within {SECONDS} seconds: {condition}"
        page.wait_for_timeout(50)


def expect_flash(page: Page, kind: str, text: str) -> None:
    """Until something of this kind with this text has flashed; a busy machine may look when that has ended."""
    wait_until(
        page,
        f"[...flashed].some(one => one.matches({json.dumps(kind)}) && one.textContent.includes({json.dumps(text)}))",
    )


def settle(page: Page, scroller: Locator | None = None) -> None:
    """Until a session, or what else scrolls, has stood still: for a while, and for frames, of which slow machines
    draw few."""
    (scroller or page.locator(".timeline")).evaluate(SETTLED)


def scroll_outline(outline: Locator, prompt: int) -> None:
    """Bring a prompt of the long session into sight: of an outline only what is in sight is on the page."""
    outline.get_by_role("button").first.wait_for()
    # It goes to where one is by itself, once it is drawn.
    settle(outline.page, outline)
    outline.locator(".sidebar-scroll").evaluate(
        "(outline, share) => { outline.scrollTop = outline.scrollHeight * share }", (prompt - 4) / TURNS
    )
    # A click while its rows are measured would miss.
    settle(outline.page, outline)
