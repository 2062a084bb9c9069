"""Chunks a second and core: our stream response beside `ai`'s own in Node, and one live stream for many viewers.

    python benchmarks/aisdk_writer.py [--only response viewers]

Both sides turn the same text deltas into the body of a response, one process each, in turn: ours from events through
the writer, Node from chunks that are at hand. No socket is involved, which would cost both sides for each send and
make coalescing count for more. Needs node and `npm ci` in tests/conformance. Judge the ratios, not the seconds.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any

from turnlog.aisdk.sse import SseEncoder
from turnlog.aisdk.streaming import StreamResponse, stream_chunks, stream_events
from turnlog.aisdk.writer import ChunkWriter
from turnlog.chat import Streams
from turnlog.model.stream import RunFinish, StreamEvent, TextDelta, TextStart

DELTAS = 100_000
VIEWERS = 100
SHOWN = 2_000
BURST = 8
JUDGES = Path(__file__).parents[1] / "tests" / "conformance"

NODE = """
import { createUIMessageStreamResponse } from 'ai7';
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
const run = async () => {
  const before = process.cpuUsage();
  const reader = createUIMessageStreamResponse({ stream: make() }).body.getReader();
  while (!(await reader.read()).done);
  const { user, system } = process.cpuUsage(before);
  return N / ((user + system) / 1e6);
};
await run();
console.log(await run());
"""


async def deltas(number: int, burst: int) -> AsyncIterator[StreamEvent]:
    """Text, so many deltas in each turn of the event loop."""
    yield TextStart(id="t")
    for count in range(number):
        if count % burst == 0:
            await asyncio.sleep(0)
        yield TextDelta(id="t", delta=f"word {count}")
    yield RunFinish(stop_reason="stop")


async def respond(coalesce: bool, burst: int) -> None:
    async def send(event: Any) -> None:
        pass

    async def receive() -> Any:
        await asyncio.Event().wait()

    body = stream_events(deltas(DELTAS, burst), ChunkWriter(7), coalesce=coalesce)
    await StreamResponse(body)({}, receive, send)


async def watch(reading: AsyncIterator[bytes]) -> None:
    async for _ in reading:
        pass


async def shared_stream() -> None:
    hub = Streams()
    stream_id = await hub.start("chat", deltas(SHOWN, BURST), ChunkWriter(7))
    await asyncio.gather(*[watch(await hub.subscribe(stream_id)) for _ in range(VIEWERS)])


async def queue_each() -> None:
    queues = [asyncio.Queue[bytes | None]() for _ in range(VIEWERS)]

    async def produce() -> None:
        encode = SseEncoder().encode
        async for chunk in stream_chunks(deltas(SHOWN, BURST), ChunkWriter(7)):
            frame = encode(chunk)
            for queue in queues:
                queue.put_nowait(frame)
        for queue in queues:
            queue.put_nowait(None)

    async def view(queue: asyncio.Queue[bytes | None]) -> None:
        while await queue.get() is not None:
            pass

    await asyncio.gather(produce(), *[view(queue) for queue in queues])


def speed(work: Callable[[], Coroutine[Any, Any, None]], number: int) -> float:
    before = time.process_time()
    asyncio.run(work())
    return number / (time.process_time() - before)


def node_speed() -> float:
    script = NODE % DELTAS
    done = subprocess.run(
        ["node", "--input-type=module", "-e", script], cwd=JUDGES, capture_output=True, text=True, check=True
    )
    return float(done.stdout)


def compare(rounds: int, contenders: dict[str, Callable[[], float]]) -> None:
    seen = {name: list[float]() for name in contenders}
    for _ in range(rounds):
        for name, run in contenders.items():
            seen[name].append(run())
    peer = statistics.median(seen[next(iter(contenders))])
    for name, speeds in seen.items():
        middle = statistics.median(speeds)
        print(f"{name:40} {middle:12,.0f} a second  {middle / peer:5.1f} x")


def main() -> None:
    parser = argparse.ArgumentParser(description="Time the stream response and the fan-out.")
    parser.add_argument("--only", nargs="+", choices=["response", "viewers"], default=["response", "viewers"])
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    if "response" in options.only:
        if not (JUDGES / "node_modules").is_dir():
            sys.exit(f"npm ci in {JUDGES} first")
        compare(
            options.rounds,
            {
                "ai 7, createUIMessageStreamResponse": node_speed,
                "one send a chunk": lambda: speed(lambda: respond(False, BURST), DELTAS),
                "sends coalesced, 8 deltas a turn": lambda: speed(lambda: respond(True, BURST), DELTAS),
                "sends coalesced, 64 deltas a turn": lambda: speed(lambda: respond(True, 64), DELTAS),
            },
        )
    if "viewers" in options.only:
        compare(
            options.rounds,
            {
                f"a queue for each of {VIEWERS} viewers": lambda: speed(queue_each, SHOWN * VIEWERS),
                "one shared stream": lambda: speed(shared_stream, SHOWN * VIEWERS),
            },
        )


if __name__ == "__main__":
    main()
