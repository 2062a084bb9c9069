"""A slow network and a slow processor for every page in a browser, to find tests that read before a page has answered.

`PYTHONPATH=tests .venv/bin/pytest -p support.slow_pages -m browser tests/e2e/test_search.py`
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from playwright.sync_api import Browser, BrowserContext, Page

LATENCY = 400
"""Milliseconds before each answer."""

SLOWDOWN = 3
"""How many times as long the page's own code takes."""


def _slowing(new_page: Callable[..., Page]) -> Callable[..., Page]:
    """A method that makes pages, and makes them slow."""

    def new_slow_page(*given: Any, **named: Any) -> Page:
        page = new_page(*given, **named)
        developer_tools: Any = page.context.new_cdp_session(page)
        conditions = {"offline": False, "latency": LATENCY, "downloadThroughput": -1, "uploadThroughput": -1}
        developer_tools.send("Network.enable")
        developer_tools.send("Network.emulateNetworkConditions", conditions)
        developer_tools.send("Emulation.setCPUThrottlingRate", {"rate": SLOWDOWN})
        return page

    return new_slow_page


def pytest_configure() -> None:
    """Make every new page a slow one."""
    Browser.new_page = _slowing(Browser.new_page)
    BrowserContext.new_page = _slowing(BrowserContext.new_page)
