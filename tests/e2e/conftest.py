"""A real browser on the real server, over a store that the real sync made. Every test ends with a look at what the
page did besides: no error in its console, no request to another host, nothing refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from support.browser_history import write_home
from support.browser_server import serving
from support.browser_visit import Visit


@pytest.fixture(scope="session")
def agent_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home folder with Claude Code's logs in it."""
    folder = tmp_path_factory.mktemp("agent-home")
    write_home(folder)
    return folder


@pytest.fixture(scope="session")
def address(agent_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where `turnlog serve` answers, once it has read and indexed everything."""
    with serving(agent_home, tmp_path_factory.mktemp("data")) as found:
        yield found


@pytest.fixture
def visit(browser: Browser, address: str) -> Iterator[Visit]:
    """A window of usual size, light theme, in Berlin."""
    context = browser.new_context(
        viewport={"width": 1280, "height": 800}, color_scheme="light", timezone_id="Europe/Berlin", locale="en-GB"
    )
    visit = Visit(context, address)
    yield visit
    visit.close()
    assert visit.problems == []
