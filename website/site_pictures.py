"""Pictures of turnlog's pages for the documentation: `python website/site_pictures.py` writes `docs/pictures/`.

They show the bundled sample, in light and dark, and are the same on every machine but for fonts.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import click
from playwright.sync_api import Page, sync_playwright

FOLDER: Final = Path(__file__).parent.parent / "docs" / "pictures"

SESSION: Final = "claude-code:11111111-1111-4111-8111-111111111111"

PAGES: Final = {
    "sessions": ("/?agent=claude-code", "Give me a tour"),
    "session": (f"/sessions/{SESSION}", "Give me a tour"),
    "search": ("/search?q=missing+file", "in this session"),
    "usage": ("/usage?since=2026-11-01&until=2026-11-30", "Usage"),
}
"""The pictures, and for each its page and a text that is there once it has loaded."""

_ARGUMENTS: Final = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@contextmanager
def serving() -> Generator[str]:
    """The address of a server with the sample."""
    with tempfile.TemporaryDirectory() as folder:
        store = ("--store", f"{folder}/turnlog.db")
        turnlog = (sys.executable, "-m", "turnlog")
        subprocess.run([*turnlog, "sync", "--sample", *store], check=True, stdout=subprocess.DEVNULL)
        arguments = ("serve", "--no-sync", "--no-browser", "--no-token", "--port", "0")
        with subprocess.Popen([*turnlog, *arguments, *store], stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            try:
                yield process.stdout.readline().removeprefix("turnlog is at ").strip().rstrip("/")
            finally:
                process.terminate()


def _browser() -> str:
    """The browser that `make browser` installs, or the whole one."""
    return shutil.which("chromium-headless-shell") or shutil.which("chromium") or "chromium"


def take(page: Page, address: str, name: str, mode: str) -> None:
    """Take one picture."""
    path, text = PAGES[name]
    page.goto(f"{address}{path}")
    page.get_by_text(text).locator("visible=true").first.wait_for()
    # Fonts and charts.
    page.wait_for_timeout(2000)
    page.screenshot(path=FOLDER / f"{name}-{mode}.png")
    click.echo(f"{name}-{mode}.png")


def main() -> None:
    """Take all pictures."""
    FOLDER.mkdir(exist_ok=True)
    with serving() as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=_browser(), args=list(_ARGUMENTS))
        for mode in ("light", "dark"):
            context = browser.new_context(
                color_scheme=mode, viewport={"width": 1280, "height": 720}, timezone_id="UTC", locale="en-GB"
            )
            page = context.new_page()
            for name in PAGES:
                take(page, address, name, mode)
            context.close()
        browser.close()


if __name__ == "__main__":
    main()
