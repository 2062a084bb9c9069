"""How long a line that an agent writes takes until a teammate's browser has it, through a machine's agent and a hub.

    PYTHONPATH=src:tests python benchmarks/hub_live.py [--rounds 100] [--page]

`turnlog hub agent` reads the logs of a home and pushes to `turnlog hub serve`, whose PostgreSQL writes with fsync. A
teammate follows the stream of the session, or with `--page` has its page open in Chromium: there, a line has come when
the frame that shows it is painted. A line is appended about 100 ms after the one before has arrived. Start it
with `chrt -r 5` on a machine that others use too.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from append import ten_lines
from hub_faults import Node, Person, ask, make_people
from hub_faults import wait_for as wait
from live import Stream, ours, rounds, tell
from measure import bare_environment
from playwright.sync_api import Page, TimeoutError, sync_playwright

from support.browser_visit import CHROMIUM
from support.postgres_servers import binaries_of_the_wheel, postgres_server
from turnlog.hub.machine.state import HubConnection, MachineState
from turnlog.hub.people.registry import People
from turnlog.store.postgres.database import Database


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--rounds", type=int, default=100)
    arguments.add_argument("--page", action="store_true", help="watch the page instead of the stream")
    arguments.add_argument("--idle", type=float, default=10, help="seconds in which nothing happens, for its cost")
    given = arguments.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        server = stack.enter_context(postgres_server(binaries_of_the_wheel(), ("--listen_addresses=",)))
        url = server.url(server.new_database())
        writer, reader = make_people(url, 2)
        node = Node(url, folder)
        node.start()
        stack.callback(node.end, signal.SIGTERM)
        home = folder / "home"
        log = home / ".claude" / "projects" / "p" / "5e551055-0000-4000-8000-000000000001.jsonl"
        log.parent.mkdir(parents=True)
        log.write_bytes(b"".join(ten_lines(log.stem, "before")))
        agent = stack.enter_context(pushing(home, node.port, machine_token(url, writer), writer))
        session = f"/api/sessions/{ours(log)}"
        wait(lambda: ask(node.port, "GET", session, writer.token, None)[0] == 200)
        shared = {"visibility": "team", "people": []}
        answer = ask(node.port, "PUT", f"/hub/v1/sessions/{ours(log)}/sharing", writer.token, shared)
        assert answer[0] == 200, answer
        if given.page:
            page = stack.enter_context(
                painted_page(f"http://127.0.0.1:{node.port}", ours(log), browser_of(url, reader))
            )
            tell("line to a teammate's painted page", log, rounds(log, given.rounds, page))
            return
        tell(
            "line to a teammate's event with its content",
            log,
            rounds(log, given.rounds, Stream(node.port, f"{session}/events", token=reader.token)),
        )
        time.sleep(2)
        used = cpu_of_tree(agent.pid)
        time.sleep(given.idle)
        print(f"a machine where nothing happens: {(cpu_of_tree(agent.pid) - used) / given.idle:.2%} of a core")


def machine_token(url: str, person: Person) -> str:
    with Database(url) as database:
        scopes = ("push", "read")
        return People(database).secrets.make("machine", team=1, user=person.name, machine="laptop", scopes=scopes)[0]


def browser_of(url: str, person: Person) -> str:
    """The cookie of a browser that is signed in."""
    with Database(url) as database:
        return People(database).secrets.make("browser", team=1, user=person.name)[0]


class PaintedPage:
    """The page of a session that is open in a browser."""

    def __init__(self, page: Page) -> None:
        self._page = page

    def forget(self) -> None:
        """Nothing: every word is another one."""

    def wait(self, word: str) -> float | None:
        """When the frame that shows a word was painted, by `time.perf_counter`; None if it does not come."""
        try:
            shown = self._page.wait_for_function(_SHOWN, arg=word, timeout=20_000).json_value()
        except TimeoutError:
            return None
        return time.perf_counter() + shown / 1000 - time.time()


# A task that a frame starts runs after that frame was painted.
_SHOWN = """word => new Promise(done => {
    const look = () => document.body.textContent.includes(word)
        ? requestAnimationFrame(() => setTimeout(() => done(performance.timeOrigin + performance.now())))
        : requestAnimationFrame(look);
    look();
})"""


@contextmanager
def painted_page(base: str, session: str, cookie: str) -> Generator[PaintedPage]:
    """A session's page in Chromium, at its end."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM,
            args=[
                *("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"),
                *("--disable-component-update", "--disable-sync"),
            ],
        )
        context = browser.new_context()
        context.add_cookies([{"name": "turnlog_browser", "value": cookie, "url": base}])
        page = context.new_page()
        page.goto(f"{base}/sessions/{session}")
        page.get_by_text("before").first.wait_for()
        yield PaintedPage(page)
        browser.close()


@contextmanager
def pushing(home: Path, port: int, token: str, person: Person) -> Generator[subprocess.Popen[bytes]]:
    """A machine's agent, at the level `full`."""
    store = home / "turnlog.db"
    with MachineState(store) as state:
        state.connect(HubConnection(f"http://127.0.0.1:{port}", token, "1", person.name, "laptop"))
        state.set_level("/", "full")
        state.agree()
    command = [sys.executable, "-m", "turnlog", "hub", "agent", "--store", str(store)]
    process = subprocess.Popen(command, env=bare_environment(home), stdout=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


def cpu_of_tree(pid: int) -> float:
    """CPU seconds of a process and its children."""
    used = 0
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(entry.name) == pid or int(fields[1]) == pid:
            used += int(fields[11]) + int(fields[12])
    return used / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
