"""A browser that the server does not know, the link that signs it in, and what it keeps."""

from __future__ import annotations

import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.sync_api import Browser, BrowserContext, expect

from support.browser_history import GROWING_ID, VARIED_ID, write_home
from support.browser_server import serving
from support.browser_visit import SIGNED_IN, TOKEN
from support.cli_runner import command
from turnlog.server.access import page_key

pytestmark = pytest.mark.browser

AXE = Path(__file__).parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"

KEY = "localStorage.getItem('turnlog.key')"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("sign-in-data")


@pytest.fixture(scope="module")
def address(agent_home: Path, data: Path) -> Iterator[str]:
    with serving(agent_home, data) as found:
        yield found


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    """A browser that was never here."""
    context = browser.new_context(bypass_csp=True)
    yield context
    context.close()


def new_link(data: Path) -> str:
    """What `turnlog open --print` prints."""
    arguments = command("open", "--print", "--store", str(data / "turnlog.db"))
    return subprocess.run(arguments, check=True, capture_output=True, text=True).stdout.strip()


def test_a_link_signs_in_and_leaves_no_trace_in_the_address(context: BrowserContext, data: Path, address: str) -> None:
    page = context.new_page()
    page.goto(new_link(data))
    expect(page.locator(".session-row").first).to_be_visible()
    expect(page).to_have_url(f"{address}/")
    assert page.evaluate(KEY) == page_key(TOKEN)
    assert context.cookies() == []
    page.reload()
    expect(page.locator(".session-row").first).to_be_visible()
    other = context.new_page()
    other.goto(f"{address}/sessions/{VARIED_ID}")
    expect(other.locator(".session-facts[data-live=true]")).to_be_visible()
    expect(other.get_by_role("dialog")).to_have_count(0)


def test_an_unknown_browser_signs_in_and_sees_its_page(context: BrowserContext, data: Path, address: str) -> None:
    page = context.new_page()
    page.goto(f"{address}/sessions/{VARIED_ID}")
    dialog = page.get_by_role("dialog", name="Sign in to turnlog")
    expect(dialog).to_contain_text("turnlog open")
    for _ in range(3):
        page.keyboard.press("Escape")
    expect(dialog).to_be_visible()
    expect(page.locator(".message")).to_have_count(0)
    page.get_by_role("textbox").fill("not a code")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_contain_text("was used or is too old")
    page.get_by_role("textbox").fill(new_link(data))
    page.keyboard.press("Enter")
    expect(dialog).to_have_count(0)
    expect(page.locator(".session-facts[data-live=true]")).to_be_visible()
    expect(page).to_have_url(f"{address}/sessions/{VARIED_ID}")


@pytest.mark.usefixtures("address")
def test_a_used_link_says_so(context: BrowserContext, data: Path) -> None:
    link = new_link(data)
    first = context.new_page()
    first.goto(link)
    expect(first.locator(".session-row").first).to_be_visible()
    first.evaluate("localStorage.clear()")
    second = context.new_page()
    second.goto(link)
    expect(second.get_by_role("alert")).to_contain_text("turnlog open")


def test_a_page_that_is_open_goes_on_where_it_was_when_the_key_has_changed(browser: Browser, tmp_path: Path) -> None:
    """The token was deleted, so the server has another one: what was typed and opened is still there."""
    home = tmp_path / "home"
    write_home(home)
    context = browser.new_context()
    context.add_init_script(f"if (!{KEY}) {SIGNED_IN}")
    page = context.new_page()
    with serving(home, tmp_path / "data") as address:
        page.goto(f"{address}/sessions/{GROWING_ID}")
        expect(page.locator(".session-facts[data-live=true]")).to_be_visible()
        page.get_by_role("button", name="Find").click()
        page.get_by_role("textbox", name="Find in this session").fill("floor")
    port = int(address.rpartition(":")[2])
    with serving(
        home, tmp_path / "data", port=port, environment={"TURNLOG_TOKEN": "another-token-of-the-server"}
    ) as again:
        assert again == address
        dialog = page.get_by_role("dialog", name="Sign in to turnlog")
        expect(dialog).to_be_visible()
        page.get_by_role("textbox", name="Or paste the link").fill(new_link(tmp_path / "data"))
        page.keyboard.press("Enter")
        expect(dialog).to_have_count(0)
        expect(page.locator(".session-facts[data-live=true]")).to_be_visible()
        expect(page.get_by_role("textbox", name="Find in this session")).to_have_value("floor")
    context.close()


def test_two_servers_are_signed_in_side_by_side_by_port(
    context: BrowserContext, data: Path, address: str, agent_home: Path, tmp_path: Path
) -> None:
    page = context.new_page()
    page.goto(new_link(data))
    expect(page.locator(".session-row").first).to_be_visible()
    heard: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as thief:

        def serve() -> None:
            connection, _ = thief.accept()
            with connection:
                heard.append(connection.recv(65536))
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi")

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        stolen = context.new_page()
        stolen.goto(f"http://127.0.0.1:{thief.getsockname()[1]}/")
        thread.join(10)
    assert stolen.evaluate("[document.cookie, localStorage.length]") == ["", 0]
    assert b"cookie" not in heard[0].lower()
    assert page_key(TOKEN).encode() not in heard[0]
    with serving(agent_home, tmp_path / "other") as other:
        second = context.new_page()
        second.goto(new_link(tmp_path / "other"))
        expect(second.locator(".session-row").first).to_be_visible()
        expect(second).to_have_url(f"{other}/")
        page.reload()
        expect(page.locator(".session-row").first).to_be_visible()
        expect(page).to_have_url(f"{address}/")


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_the_screen_is_accessible_and_fits(
    browser: Browser, address: str, theme: Literal["light", "dark"], width: int
) -> None:
    context = browser.new_context(color_scheme=theme, viewport={"width": width, "height": 800}, bypass_csp=True)
    page = context.new_page()
    page.goto(f"{address}/")
    expect(page.get_by_role("dialog", name="Sign in to turnlog")).to_be_visible()
    page.evaluate(AXE.read_text(encoding="utf-8"))
    result: dict[str, Any] = page.evaluate("axe.run({ resultTypes: ['violations'] })")
    found = [page.evaluate("document.querySelector('.sign-in').scrollWidth"), page.evaluate("innerWidth")]
    context.close()
    assert [violation["id"] for violation in result["violations"]] == []
    assert found == [width, width]
