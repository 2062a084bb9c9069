"""How fast the server answers: windows against building objects, search, lists, and all of it during an import.

    python benchmarks/serve.py --home HOME [--rounds 300] [--only window requests import]

HOME is a folder with `.claude/projects` in it, such as benchmarks/corpus.py writes; without --home one of 300 MB is
made. Requests are timed twice: inside one process (the ASGI application without a network) and over a kept connection
to a real server in a process of its own. A ratio is printed with the bound it should keep.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import uvicorn
from corpus import Corpus
from fastapi import FastAPI
from measure import bare_environment
from starlette.responses import Response

from turnlog.model import Session
from turnlog.model.codec import encode
from turnlog.server import create_app
from turnlog.server.addresses import bind
from turnlog.store import open_store
from turnlog.store.base import SessionFilter, Store
from turnlog.store.search.base import search_path
from turnlog.store.search.searcher import Searcher
from turnlog.sync.syncer import sync

PAGE = 200
"""Messages of the largest window that one request may ask for."""

SERVER = """
import sys
from pathlib import Path
from turnlog.server import serve

announce = lambda address: print(address, flush=True)
serve(Path(sys.argv[1]), port=0, use_token=False, open_browser=False, announce=announce)
"""

OBJECTS = "/benchmark/objects"
"""Where the measured application also answers with messages that it builds and encodes, through the same layers."""


class Times(NamedTuple):
    """Milliseconds of many repetitions."""

    p50: float
    p95: float
    worst: float

    def __str__(self) -> str:
        return f"p50 {self.p50:8.3f} ms   p95 {self.p95:8.3f}   worst {self.worst:8.3f}"


class Request(NamedTuple):
    """What is asked, and how."""

    name: str
    path: str
    headers: dict[str, str] = {}
    bound: float | None = None
    """Milliseconds that the median should keep over HTTP."""


def times_of(act: Callable[[], object], rounds: int) -> Times:
    act()
    found: list[float] = []
    for _ in range(rounds):
        start = time.perf_counter()
        act()
        found.append((time.perf_counter() - start) * 1000)
    return summary(found)


def summary(found: Sequence[float]) -> Times:
    ordered = sorted(found)
    return Times(statistics.median(ordered), ordered[int(len(ordered) * 0.95)], ordered[-1])


# -- windows against objects


def objects_and_encode(store: Store, session_id: str, limit: int | None = None) -> bytes:
    """What a server does that keeps rows: build every message, encode every message."""
    placed = store.messages(session_id, limit=limit, resolve_blobs=False)
    return b"[%b]" % b",".join([encode(each.message) for each in placed])


def measure_window(store: Store, sessions: dict[str, Session], rounds: int) -> None:
    """A whole session: its stored frames, the same unpacked, and its messages as objects that are encoded."""
    for name, session in sessions.items():
        # All of it at once, which no page asks for: the same work on both sides.
        count = session.counts.messages + 1
        size = len(store.window(session.id, limit=count).to_json())
        fewer = max(20, min(rounds, int(rounds * 500_000 / size)))
        built = times_of(lambda id=session.id: objects_and_encode(store, id), fewer)
        frames = times_of(lambda id=session.id, most=count: store.window(id, limit=most).to_zstd(), fewer)
        plain = times_of(lambda id=session.id, most=count: store.window(id, limit=most).to_json(), fewer)
        print(f"\nwhole session, {name}: {size / 1e3:.0f} kB, {session.counts.messages} messages")
        print(f"  objects, encoded  {built}\n  frames as stored  {frames}\n  unpacked          {plain}")
        is_p95 = name == "p95"
        print_ratio("objects / frames as stored", built.p50 / frames.p50, least=10 if is_p95 else None)
        print_ratio("objects / unpacked", built.p50 / plain.p50, least=2 if is_p95 else None)


# -- requests


def requests_of(store: Store, words: dict[str, str], session: Session) -> list[Request]:
    window = f"/api/sessions/{quote(session.id)}/window?limit={PAGE}"
    listed = [
        Request("status", "/api/status"),
        Request("sessions", "/api/sessions?limit=50"),
        Request("session", f"/api/sessions/{quote(session.id)}"),
        Request("outline", f"/api/sessions/{quote(session.id)}/outline"),
        Request("usage by day", "/api/usage"),
        Request("usage by project", "/api/usage?by=project"),
        Request("tool calls", "/api/tool-calls?tool=Bash&failed=true"),
        Request(f"objects of {PAGE}", f"{OBJECTS}/{quote(session.id)}"),
        Request(f"window of {PAGE}, zstd", window, {"Accept-Encoding": "zstd"}),
        Request(f"window of {PAGE}, gzip", window, {"Accept-Encoding": "gzip"}),
        Request(f"window of {PAGE}, plain", window, {"Accept-Encoding": "identity"}),
    ]
    searches = [Request(f"search, {name}", f"/api/search?q={quote(text)}", bound=10) for name, text in words.items()]
    return listed + searches


def measure_requests(store_path: Path, requests: list[Request], rounds: int) -> None:
    inside = asyncio.run(ask_inside(store_path, requests, rounds))
    with serving([__file__, "--run-app", str(store_path)], store_path.parent) as port:
        outside = ask_outside(port, requests, rounds)
    print("\nrequests, inside one process and over HTTP")
    for request, one, other in zip(requests, inside, outside, strict=True):
        verdict = "" if request.bound is None else f"  ({verdict_of(other.p50, None, request.bound)})"
        print(f"  {request.name:22}  ASGI p50 {one.p50:7.3f}   HTTP {other}{verdict}")
    medians = {
        request.name: (one.p50, other.p50) for request, one, other in zip(requests, inside, outside, strict=True)
    }
    objects = medians[f"objects of {PAGE}"]
    for coding in ("zstd", "plain"):
        window = medians[f"window of {PAGE}, {coding}"]
        ratios = [one / other for one, other in zip(objects, window, strict=True)]
        print(f"  objects / window, {coding}: ASGI {ratios[0]:.1f}, HTTP {ratios[1]:.1f}")


def measured_app(store_path: Path) -> FastAPI:
    """The application, and beside its routes one that builds objects."""
    app = create_app(store_path)

    def build(session_id: str) -> Response:
        return Response(objects_and_encode(app.state.context.store, session_id, PAGE), media_type="application/json")

    app.add_api_route(f"{OBJECTS}/{{session_id}}", build, response_class=Response)
    # Before the last route, which takes every address that is left.
    app.router.routes.insert(0, app.router.routes.pop())
    return app


def run_measured_app(store_path: Path) -> None:
    with bind("127.0.0.1", 0) as listener:
        print(f"http://127.0.0.1:{listener.getsockname()[1]}/", flush=True)
        uvicorn.Server(uvicorn.Config(measured_app(store_path), log_level="warning", access_log=False)).run([listener])


async def ask_inside(store_path: Path, requests: list[Request], rounds: int) -> list[Times]:
    app = measured_app(store_path)
    results: list[Times] = []
    for request in requests:
        await ask_app(app, request)
        found: list[float] = []
        for _ in range(rounds):
            start = time.perf_counter()
            await ask_app(app, request)
            found.append((time.perf_counter() - start) * 1000)
        results.append(summary(found))
    app.state.context.close()
    return results


async def ask_app(app: Any, request: Request) -> None:
    path, _, query = request.path.partition("?")
    headers = [(b"host", b"127.0.0.1")]
    headers += [(name.lower().encode(), value.encode()) for name, value in request.headers.items()]
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": path.replace("%3A", ":"),
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": headers,
        "server": ("127.0.0.1", 80),
        "client": ("127.0.0.1", 1),
    }
    status = 0

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        nonlocal status
        status = message.get("status", status)

    await app(scope, receive, send)
    assert status == 200, (status, request.path)


def ask_outside(port: int, requests: list[Request], rounds: int) -> list[Times]:
    connection = http.client.HTTPConnection("127.0.0.1", port)
    try:
        return [times_of(lambda request=request: ask_server(connection, request), rounds) for request in requests]
    finally:
        connection.close()


def ask_server(connection: http.client.HTTPConnection, request: Request) -> bytes:
    connection.request("GET", request.path, headers=request.headers)
    response = connection.getresponse()
    body = response.read()
    assert response.status == 200, (response.status, request.path)
    return body


@contextmanager
def serving(program: list[str], home: Path) -> Generator[int]:
    """A server in a process of its own; its port."""
    process = subprocess.Popen(
        [sys.executable, *program], stdout=subprocess.PIPE, text=True, env=bare_environment(home)
    )
    assert process.stdout is not None
    try:
        yield int(process.stdout.readline().strip().rstrip("/").rpartition(":")[2])
    finally:
        process.terminate()
        process.wait()


# -- during an import


def measure_import(home: Path, work: Path) -> None:
    """Lists and status, asked every few milliseconds while everything is read for the first time."""
    found: dict[str, list[float]] = {"/api/status": [], "/api/sessions?limit=50": []}
    started = time.perf_counter()
    first_session = None
    with serving(["-c", SERVER, str(work / "import" / "turnlog.db")], home) as port:
        connection = http.client.HTTPConnection("127.0.0.1", port)
        status: dict[str, Any] = {"passes": 0}
        while status["passes"] == 0:
            for path, times in found.items():
                begun = time.perf_counter()
                answer = json.loads(ask_server(connection, Request("", path)))
                times.append((time.perf_counter() - begun) * 1000)
                if path == "/api/status":
                    status = answer["sync"]
                elif first_session is None and answer["items"]:
                    first_session = time.perf_counter() - started
            time.sleep(0.02)
        connection.close()
    seconds = time.perf_counter() - started
    print(f"\nduring an import of {seconds:.1f} s, the first session listed after {first_session:.1f} s")
    for path, times in found.items():
        print(f"  {path:24}  {summary(times)}   ({len(times)} times)")


# -- what to ask for


def typical_sessions(store: Store) -> dict[str, Session]:
    """Sessions of about the sizes that half and 95 % of people's sessions have at most, and the largest."""
    sizes = [(len(store.window(each.id, limit=100_000).to_json()), each) for each in all_sessions(store)]

    def nearest(size: int) -> Session:
        return min(sizes, key=lambda pair: abs(pair[0] - size))[1]

    return {"p50": nearest(120_000), "p95": nearest(770_000), "largest": nearest(10**12)}


def all_sessions(store: Store) -> list[Session]:
    found: list[Session] = []
    cursor: str | None = None
    while True:
        page = store.sessions(SessionFilter(subagents=True), limit=200, cursor=cursor)
        found += page.items
        if page.next_cursor is None:
            return found
        cursor = page.next_cursor


def typical_words(store: Store, store_path: Path, session: Session) -> dict[str, str]:
    """Words by how often they stand in a session: the commonest, a middling one, a rare one, a phrase, a prefix."""
    body = store.window(session.id, limit=100_000).to_json().decode()
    words = [word for word, _ in Counter(re.findall(r"\b[a-z]{4,}\b", body)).most_common()]
    with Searcher(store_path, search_path(store_path)) as searcher:
        found = [word for word in words if searcher.search(word, limit=1).hits]
    middling = found[len(found) // 2]
    text = next(iter(re.findall(r"[a-z]{4,} [a-z]{4,}", body)))
    return {
        "commonest word": found[0],
        "middling word": middling,
        "rare word": found[-1],
        "phrase": f'"{text}"',
        "prefix": f"{middling[:4]}*",
        "nothing": "xyzzyplugh",
    }


# -- output


def verdict_of(value: float, least: float | None, most: float | None) -> str:
    bound, kept = (f">= {least:g}", value >= least) if least is not None else (f"<= {most:g}", value <= (most or 0))
    return f"{bound}: {'kept' if kept else 'MISSED'}"


def print_ratio(name: str, value: float, *, least: float | None = None) -> None:
    verdict = "" if least is None else f"  ({verdict_of(value, least, None)})"
    print(f"  {name}: {value:.1f}{verdict}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure how fast turnlog's server answers.")
    parser.add_argument("--home", type=Path, help="folder with .claude/projects; made when not given")
    parser.add_argument("--mb", type=float, default=300, help="size of the tree that is made, in millions of bytes")
    parser.add_argument("--rounds", type=int, default=300, help="repetitions of each request")
    parser.add_argument("--run-app", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--only", nargs="+", choices=["window", "requests", "import"])
    options = parser.parse_args()
    if options.run_app is not None:
        run_measured_app(options.run_app)
        return
    wanted = options.only or ["window", "requests", "import"]
    with tempfile.TemporaryDirectory(prefix="turnlog-benchmark-") as temporary:
        work = Path(temporary)
        home: Path = (options.home or work / "home").resolve()
        if not home.exists():
            Corpus(home, seed=7, end=datetime(2026, 11, 20, 18, tzinfo=UTC)).write(options.mb, giant_megabytes=24)
        if "import" in wanted:
            measure_import(home, work)
        store_path = work / "turnlog.db"
        if {"window", "requests"} & set(wanted):
            sync(store_path, roots=[home / ".claude"])
            with open_store(store_path) as store:
                sessions = typical_sessions(store)
                if "window" in wanted:
                    measure_window(store, sessions, options.rounds)
                if "requests" in wanted:
                    words = typical_words(store, store_path, sessions["p95"])
                    measure_requests(store_path, requests_of(store, words, sessions["p95"]), options.rounds)


if __name__ == "__main__":
    main()
