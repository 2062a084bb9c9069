"""The pages in a real browser, beside agentsview's: first paint, bytes, a long session, a line on the screen, rest.

    python benchmarks/viewer.py HOME [--rounds 5] [--lines 50] [--idle 300] [--agentsview PATH]

Copies the Claude Code logs of HOME, lets each server read them, and visits both with Chromium in turn, each time with
an empty cache. A session counts as open when words of its answers are painted; a line when its word is. Memory and CPU
are those of the server's processes. Needs playwright and /usr/bin/chromium, as the tests do.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from append import ten_lines
from live import SERVER, answers, wait_for
from measure import bare_environment, process_tree
from playwright.sync_api import Browser, Page, sync_playwright
from playwright.sync_api import TimeoutError as NotSeenError

CHROMIUM = "/usr/bin/chromium"
PATIENCE_MS = 30_000
TICKS = os.sysconf("SC_CLK_TCK")
PROBES = 12
"""Answers of either end of the session; which end a page shows first is its own affair."""

NOTICE = """
wanted => {
  window.paintedAt = null;
  const looked = node => {
    const text = node.textContent ?? "";
    if (window.paintedAt === null && wanted.some(word => text.includes(word))) {
      window.paintedAt = 0;
      requestAnimationFrame(() => setTimeout(() => { window.paintedAt = performance.timeOrigin + performance.now(); }));
    }
  };
  new MutationObserver(records => {
    for (const record of records) {
      if (record.type === "characterData") looked(record.target);
      for (const node of record.addedNodes) looked(node);
    }
  }).observe(document, { subtree: true, childList: true, characterData: true });
}
"""
"""Notes when one of the wanted words has been painted, in milliseconds since 1970."""


@dataclass(frozen=True)
class Viewer:
    """A server and how its pages are addressed."""

    name: str
    command: list[str]
    environment: dict[str, str]
    probe: str
    session: Callable[[Path], str]


@dataclass(frozen=True)
class Visit:
    """One visit of a page: milliseconds, bytes over the network, bytes of the JavaScript heap."""

    ms: float
    transferred: float
    heap: float


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the pages in a browser, beside agentsview's.")
    parser.add_argument("home", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--lines", type=int, default=50)
    parser.add_argument("--idle", type=float, default=300.0, help="seconds of rest")
    parser.add_argument("--agentsview", type=Path, default=shutil.which("agentsview"))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        home = Path(folder)
        shutil.copytree(options.home / ".claude", home / ".claude")
        log = max((home / ".claude" / "projects").glob("*/*.jsonl"), key=lambda path: path.stat().st_size)
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        viewers = [_turnlog(home)]
        if options.agentsview is None:
            print("agentsview is not installed: only turnlog is measured")
        else:
            viewers.append(_agentsview(home, options.agentsview))
        for viewer in viewers:
            _measure(viewer, browser, log, options)


def _turnlog(home: Path) -> Viewer:
    command = [sys.executable, "-c", SERVER, str(home / "turnlog.db")]
    return Viewer(
        "turnlog", command, bare_environment(home), "/api/status", lambda log: f"/sessions/claude-code:{log.stem}"
    )


def _agentsview(home: Path, binary: Path) -> Viewer:
    environment = bare_environment(
        home,
        AGENTSVIEW_DATA_DIR=home / "agentsview",
        AGENTSVIEW_TELEMETRY_ENABLED="0",
        AGENTSVIEW_NO_DAEMON="1",
        DO_NOT_TRACK="1",
    )
    command = [str(binary), "serve", "--no-browser", "--no-update-check", "--port"]
    return Viewer("agentsview", command, environment, "/api/v1/sessions", lambda log: f"/sessions/{log.stem}")


def _measure(viewer: Viewer, browser: Browser, log: Path, options: argparse.Namespace) -> None:
    with _serving(viewer) as (process, address):
        _wait_until_quiet(process.pid)
        print(f"\n{viewer.name}", flush=True)
        _tell("list, first contentful paint", [_visit(browser, address + "/", None) for _ in range(options.rounds)])
        probes = _probes(log)
        page = address + viewer.session(log)
        size = f"{log.stat().st_size / 1e6:.0f} MB"
        _tell(f"session of {size}, words painted", [_visit(browser, page, probes) for _ in range(options.rounds)])
        _tell_lines(_lines_on_screen(browser, page, log, options.lines))
        began = _cpu_seconds(process.pid)
        visitor = browser.new_context()
        visitor.new_page().goto(address + "/")
        time.sleep(options.idle)
        used = _cpu_seconds(process.pid) - began
        visitor.close()
        resident = sum(_resident(pid) for pid in process_tree(process.pid))
        print(
            f"  a page open for {options.idle:.0f} s: {used:.2f} s of CPU, {resident / 1e6:.0f} MB of memory",
            flush=True,
        )


def _visit(browser: Browser, address: str, probes: list[str] | None) -> Visit:
    """Until the first paint, or until one of the probes is painted; then two seconds more, for what else is asked."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    network = context.new_cdp_session(page)
    network.send("Network.enable")
    sizes: list[float] = []
    network.on("Network.loadingFinished", lambda event: sizes.append(event["encodedDataLength"]))
    if probes is not None:
        page.add_init_script(f"({NOTICE})({json.dumps(probes)})")
    started = time.time() * 1000
    page.goto(address)
    if probes is None:
        ms = _when(page, "performance.getEntriesByName('first-contentful-paint')[0]?.startTime")
    else:
        ms = _painted(page) - started
    page.wait_for_timeout(2000)
    network.send("HeapProfiler.collectGarbage")
    heap = network.send("Runtime.getHeapUsage")["usedSize"]
    context.close()
    return Visit(ms, sum(sizes), heap)


def _painted(page: Page) -> float:
    return _when(page, "window.paintedAt")


def _when(page: Page, expression: str) -> float:
    """A time that the page notes once it comes. Not by the page's own polling, which its policy forbids."""
    end = time.monotonic() + PATIENCE_MS / 1000
    while not (found := page.evaluate(expression)):
        if time.monotonic() > end:
            raise NotSeenError(expression)
        page.wait_for_timeout(20)
    return found


def _lines_on_screen(browser: Browser, address: str, log: Path, count: int) -> list[float | None]:
    """Milliseconds from the writing of a line to its word on the screen, of a reader at the end of the session."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.goto(address)
    page.wait_for_timeout(3000)
    page.keyboard.press("End")
    page.mouse.move(900, 500)
    for _ in range(5):
        page.mouse.wheel(0, 10_000_000)
        page.wait_for_timeout(300)
    found: list[float | None] = []
    for number in range(count):
        word = f"screen{time.monotonic_ns()}x{number}"
        page.evaluate(NOTICE, [word])
        line = ten_lines(log.stem, word)[0]
        started = time.time() * 1000
        with log.open("ab", buffering=0) as file:
            file.write(line)
        try:
            found.append(_painted(page) - started)
        except NotSeenError:
            found.append(None)
            if number == 2 and not any(found):
                break
        page.wait_for_timeout(100)
    context.close()
    return found


def _probes(log: Path) -> list[str]:
    """Plain runs of words out of the first and the last answers of a log."""
    found: list[str] = []
    for record in _records(log):
        content = record.get("message", {}).get("content")
        if record.get("type") == "assistant" and isinstance(content, list):
            texts = [block["text"] for block in content if block.get("type") == "text"]
            found += [match[0] for text in texts if (match := re.search(r"[A-Za-z]+(?: [A-Za-z]+){5}", text))]
    return found[:PROBES] + found[-PROBES:]


def _records(log: Path) -> Iterator[dict[str, Any]]:
    with log.open("rb") as lines:
        for line in lines:
            yield json.loads(line)


@contextmanager
def _serving(viewer: Viewer) -> Generator[tuple[subprocess.Popen[bytes], str]]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    quiet = subprocess.DEVNULL
    process = subprocess.Popen([*viewer.command, str(port)], env=viewer.environment, stdout=quiet, stderr=quiet)
    try:
        wait_for(lambda: answers(port, viewer.probe))
        yield process, f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


def _wait_until_quiet(pid: int) -> None:
    """Until everything is read: the processes have rested for three seconds."""
    while True:
        before = _cpu_seconds(pid)
        time.sleep(3)
        if _cpu_seconds(pid) - before < 0.3:
            return


def _cpu_seconds(pid: int) -> float:
    """CPU time of a process, what it started, and what of that has ended."""
    total = 0
    for each in process_tree(pid):
        try:
            fields = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        total += sum(int(field) for field in fields[11:15])
    return total / TICKS


def _resident(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def _tell(what: str, visits: list[Visit]) -> None:
    ms = statistics.median(visit.ms for visit in visits)
    transferred = statistics.median(visit.transferred for visit in visits)
    heap = statistics.median(visit.heap for visit in visits)
    print(f"  {what}: {ms:.0f} ms, {transferred / 1e3:.0f} kB transferred, heap {heap / 1e6:.1f} MB", flush=True)


def _tell_lines(found: list[float | None]) -> None:
    times = sorted(ms for ms in found if ms is not None)
    if not times:
        print(f"  a line on the screen: none of {len(found)} within {PATIENCE_MS / 1000:.0f} s", flush=True)
        return
    p99 = times[min(len(times) - 1, int(len(times) * 0.99))]
    print(
        f"  a line on the screen: p50 {statistics.median(times):.0f} ms, p99 {p99:.0f} ms,"
        f" {len(times)} of {len(found)} seen",
        flush=True,
    )


if __name__ == "__main__":
    main()
