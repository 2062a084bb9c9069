"""What a stream costs a server with real sockets: beside the npm package `ai` in Node, and for many viewers.

    python benchmarks/chat_sockets.py [--only sends viewers slow encoding] [--peers PYTHON]

Each server is a process of its own and tells the same text deltas to clients that throw them away; what is counted is
the CPU time of the server's process, as the kernel accounts it. Servers take turns, and the ratio counts. `sends` needs
node and `npm ci` in tests/conformance; `encoding` a Python with pydantic-ai-slim (`--peers`). uvicorn parses with
httptools where it is installed, else with h11: the output says which. Linux only.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import select
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Generator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import uvicorn

from turnlog.aisdk.chunks import TextDeltaChunk
from turnlog.aisdk.sse import Frames, SseEncoder
from turnlog.aisdk.streaming import StreamResponse, pump, stream_chunks, stream_events
from turnlog.aisdk.writer import ChunkWriter
from turnlog.chat import SqliteStreamStore, Streams
from turnlog.model.stream import RunFinish, StreamEvent, TextDelta, TextStart

JUDGES = Path(__file__).parents[1] / "tests" / "conformance"
DELTAS = 100_000
OWN_DELTAS = 400_000
"""Told by our servers, whose CPU time the kernel counts in hundredths of a second."""
VIEWERS = 100
SHOWN = 5_000
SLOW = 200
SLOW_DELTAS = (300_000, 1_200_000)
TURN = 16
"""Deltas that come in one turn of the event loop, of one stream."""
BURST = 8
"""The same, of a stream with many viewers."""
TICKS = os.sysconf("SC_CLK_TCK")

NODE = """
import { createServer } from 'node:http';
import { createUIMessageStreamResponse, pipeUIMessageStreamToResponse } from 'ai7';
const N = %d;
function* chunks() {
  yield { type: 'text-start', id: 't' };
  for (let i = 0; i < N; i++) yield { type: 'text-delta', id: 't', delta: 'word ' + i };
  yield { type: 'text-end', id: 't' };
}
const make = () => {
  const made = chunks();
  return new ReadableStream({ pull(controller) {
    const { done, value } = made.next();
    if (done) controller.close(); else controller.enqueue(value);
  } });
};
const server = createServer(async (request, response) => {
  if (request.url === '/pipe') return pipeUIMessageStreamToResponse({ response, stream: make() });
  const made = createUIMessageStreamResponse({ stream: make() });
  response.writeHead(made.status, Object.fromEntries(made.headers));
  for await (const piece of made.body) if (!response.write(piece)) await new Promise(r => response.once('drain', r));
  response.end();
});
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
"""

ENCODING = """
import time
from pydantic_ai.ui.vercel_ai.response_types import TextDeltaChunk
N = %d
def run():
    before = time.process_time()
    for count in range(N):
        chunk = TextDeltaChunk(id="t", delta=f"word {count}")
        f"data: {chunk.encode(sdk_version=6)}\\n\\n".encode()
    return N / (time.process_time() - before)
run()
print(run())
"""


# Servers


async def deltas(number: int, burst: int) -> AsyncIterator[StreamEvent]:
    """Text, so many deltas in each turn of the event loop, as they come off a provider's socket."""
    yield TextStart(id="t")
    for count in range(number):
        if count % burst == 0:
            await asyncio.sleep(0)
        yield TextDelta(id="t", delta=f"word {count}")
    yield RunFinish(stop_reason="stop")


class Nowhere:
    """Takes frames, and throws them away."""

    def __init__(self) -> None:
        self.frames = Frames(lambda: None)
        self.is_full = False
        self.taken = 0

    async def wait(self) -> None:
        self.taken += len(self.frames.take()[1])


class OwnServer:
    """Answers `/send`, `/coalesced`, `/viewers`, `/queues`, `/slow/<deltas>`; the last three wait for all clients."""

    def __init__(self) -> None:
        self._here: dict[str, int] = {}
        self._all_here = asyncio.Event()
        self._queues: list[asyncio.Queue[bytes]] = []
        # In a file, as a server has them: in memory a stream would count as what its readers cost.
        self._hub = Streams(SqliteStreamStore(Path(tempfile.mkdtemp()) / "streams.db"))
        self._stream_id = ""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            return
        kind = scope["path"].removeprefix("/")
        if kind in ("send", "coalesced"):
            body = stream_events(deltas(OWN_DELTAS, TURN), ChunkWriter(7), coalesce=kind == "coalesced")
        elif kind == "queues":
            body = self._from_queue()
        else:
            slow = kind.removeprefix("slow/")
            body = await self._shared(*((VIEWERS, SHOWN, BURST) if kind == "viewers" else (SLOW, int(slow), 64)))
        await StreamResponse(body)(scope, receive, send)

    async def _shared(self, viewers: int, number: int, burst: int) -> AsyncIterator[bytes]:
        """One stream, begun when everybody is here."""
        if await self._is_last(f"shared {viewers}", viewers):
            self._stream_id = await self._hub.start("chat", deltas(number, burst), ChunkWriter(7))
            self._all_here.set()
        await self._all_here.wait()
        return await self._hub.subscribe(self._stream_id)

    async def _from_queue(self) -> AsyncIterator[bytes]:
        queue = asyncio.Queue[bytes]()
        self._queues.append(queue)
        if await self._is_last("queues", VIEWERS):
            self._producing = asyncio.create_task(self._produce())
        while data := await queue.get():
            yield data

    async def _is_last(self, what: str, viewers: int) -> bool:
        self._here[what] = self._here.get(what, 0) + 1
        return self._here[what] == viewers

    async def _produce(self) -> None:
        encode = SseEncoder().encode
        async for chunk in stream_chunks(deltas(SHOWN, BURST), ChunkWriter(7)):
            frame = encode(chunk)
            for queue in self._queues:
                queue.put_nowait(frame)
        for queue in self._queues:
            queue.put_nowait(b"")


def serve() -> None:
    listener = socket.create_server(("127.0.0.1", 0), backlog=512)
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, fileno=listener.detach())
    print(listener.getsockname()[1], flush=True)

    async def run() -> None:
        await uvicorn.Server(uvicorn.Config(OwnServer(), log_level="error", lifespan="off")).serve(sockets=[listener])

    asyncio.run(run())


@contextmanager
def server(*command: str) -> Generator[tuple[int, int]]:
    """A server process and its port."""
    process = subprocess.Popen(command, cwd=JUDGES, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield process.pid, int(process.stdout.readline())
    finally:
        process.kill()
        process.communicate()


def own() -> Any:
    return server(sys.executable, str(Path(__file__).resolve()), "--serve")


# What is measured


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def resident_bytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def connect(port: int, path: str, buffer: int | None = None) -> socket.socket:
    client = socket.socket()
    if buffer is not None:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
    client.connect(("127.0.0.1", port))
    client.sendall(b"GET %b HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n" % path.encode())
    return client


def drain(clients: list[socket.socket]) -> int:
    """Read everything that comes, and throw it away."""
    poll = select.poll()
    by_number = {client.fileno(): client for client in clients}
    for number in by_number:
        poll.register(number, select.POLLIN)
    size = 0
    while by_number:
        for number, _ in poll.poll():
            data = by_number[number].recv(1 << 18)
            size += len(data)
            if not data:
                poll.unregister(number)
                by_number.pop(number).close()
    return size


def chunks_a_second(pid: int, port: int, path: str, viewers: int, number: int) -> float:
    before = cpu_seconds(pid)
    size = drain([connect(port, path) for _ in range(viewers)])
    assert size > viewers * number * 40, f"{path} told too little: {size} bytes"
    return viewers * number / (cpu_seconds(pid) - before)


def compare(rounds: int, contenders: dict[str, Callable[[], float]]) -> None:
    seen = {name: list[float]() for name in contenders}
    for _ in range(rounds):
        for name, run in contenders.items():
            seen[name].append(run())
    peer = statistics.median(seen[next(iter(contenders))])
    for name, speeds in seen.items():
        middle = statistics.median(speeds)
        print(f"{name:44} {middle:12,.0f} a CPU second  {middle / peer:5.1f} x", flush=True)


def one_run(make: Callable[[], Any], path: str, viewers: int, number: int, *, warm: bool) -> float:
    with make() as (pid, port):
        if warm:
            drain([connect(port, path)])
        return chunks_a_second(pid, port, path, viewers, number)


def compare_sends(rounds: int) -> None:
    node = NODE % DELTAS

    def peer() -> Any:
        return server("node", "--input-type=module", "-e", node)

    compare(
        rounds,
        {
            "ai 7, createUIMessageStreamResponse": lambda: one_run(peer, "/", 1, DELTAS, warm=True),
            "ai 7, pipeUIMessageStreamToResponse": lambda: one_run(peer, "/pipe", 1, DELTAS, warm=True),
            "one send a chunk": lambda: one_run(own, "/send", 1, OWN_DELTAS, warm=True),
            f"coalesced, {TURN} deltas a turn": lambda: one_run(own, "/coalesced", 1, OWN_DELTAS, warm=True),
        },
    )


def compare_viewers(rounds: int) -> None:
    compare(
        rounds,
        {
            f"a queue for each of {VIEWERS} viewers": lambda: one_run(own, "/queues", VIEWERS, SHOWN, warm=False),
            "one shared stream": lambda: one_run(own, "/viewers", VIEWERS, SHOWN, warm=False),
        },
    )


def show_slow() -> None:
    """The server's memory while it tells a stream, and one four times as long, to clients that read nothing."""
    for number in SLOW_DELTAS:
        with own() as (pid, port):
            before = most = resident_bytes(pid)
            slow = [connect(port, f"/slow/{number}", 4096) for _ in range(SLOW)]
            busy, idle = cpu_seconds(pid), 0
            while idle < 20:
                time.sleep(0.1)
                most = max(most, resident_bytes(pid))
                now = cpu_seconds(pid)
                busy, idle = now, idle + 1 if now - busy < 0.02 else 0
            print(
                f"{SLOW} readers that read nothing of {number * 57 / 1e6:.0f} MB:"
                f" {before / 1e6:.0f} MB before, {most / 1e6:.0f} MB at most",
                flush=True,
            )
            for client in slow:
                client.close()


def compare_encoding(rounds: int, peers: str) -> None:
    def peer() -> float:
        done = subprocess.run([peers, "-c", ENCODING % DELTAS], capture_output=True, text=True, check=True)
        return float(done.stdout)

    async def told() -> AsyncIterator[StreamEvent]:
        yield TextStart(id="t")
        for count in range(DELTAS):
            yield TextDelta(id="t", delta=f"word {count}")
        yield RunFinish(stop_reason="stop")

    def own() -> float:
        sink = Nowhere()
        before = time.process_time()
        asyncio.run(pump(told(), ChunkWriter(7), sink))
        assert sink.taken > DELTAS * 40
        return DELTAS / (time.process_time() - before)

    def chunk() -> float:
        encode = SseEncoder().encode
        before = time.process_time()
        for count in range(DELTAS):
            encode(TextDeltaChunk(id="t", delta=f"word {count}"))
        return DELTAS / (time.process_time() - before)

    own_ways = {"a chunk made and encoded": chunk, "an event through the writer, encoded": own}
    compare(rounds, {"pydantic-ai, a validated chunk encoded": peer, **own_ways})


def main() -> None:
    kinds = ["sends", "viewers", "slow", "encoding"]
    parser = argparse.ArgumentParser(description="Time streams with real sockets.")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--only", nargs="+", choices=kinds, default=kinds)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peers", help="a Python with pydantic-ai-slim")
    options = parser.parse_args()
    if options.serve:
        serve()
        return
    print("uvicorn with", "httptools" if find_spec("httptools") else "h11")
    if "sends" in options.only:
        compare_sends(options.rounds)
    if "viewers" in options.only:
        compare_viewers(options.rounds)
    if "slow" in options.only:
        show_slow()
    if "encoding" in options.only and options.peers:
        compare_encoding(options.rounds, options.peers)


if __name__ == "__main__":
    main()
