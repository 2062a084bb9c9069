"""A chat server that agents of other frameworks answer: `python -m support.bridge_server FOLDER` in tests/.

The agents are those of `support.bridges`, and an Open Harness runtime. It prints its address.
"""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI

from support.bridges import BRIDGES
from turnlog.chat import (
    Chat,
    NativeKeeper,
    OpenHarnessRuntime,
    Runtime,
    SqliteStreamStore,
    Streams,
    TransportOptions,
    chat_endpoint,
)

Listener = Callable[[dict[str, Any]], None]


class Harness:
    """An Open Harness runtime with a scripted agent; of `wait`, it says one word after another."""

    def __init__(self) -> None:
        self._listeners: list[Listener] = []

    def subscribe(self, listener: Listener, /) -> Callable[[], None]:
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    async def dispatch(self, command: dict[str, Any], /) -> None:
        self._say("node:start")
        self._say("agent:thinking:delta", content="Hm")
        self._say("agent:tool", toolName="look", toolCallId="c1", toolInput={"place": "desk"})
        self._say("agent:tool", toolName="look", toolCallId="c1", toolOutput={"seen": "desk"})
        words = 60 if command["message"].startswith("wait") else 2
        for number in range(words):
            self._say("agent:text:delta", content=f"<{number}>")
            await asyncio.sleep(0.05)
        self._say("agent:complete")

    def _say(self, kind: str, **fields: Any) -> None:
        for listener in list(self._listeners):
            listener({"type": kind, "runId": "r", "nodeId": "n", **fields})


def runtimes() -> dict[str, Runtime]:
    harness = OpenHarnessRuntime(lambda chat_id: Harness(), TransportOptions())
    return {"open-harness": harness, **{name: bridge([]) for name, bridge in BRIDGES.items()}}


def main(folder: Path) -> None:
    listener = socket.create_server(("127.0.0.1", 0))

    async def serve() -> None:
        keeper, streams = NativeKeeper(folder / "turnlog.db"), Streams(SqliteStreamStore(folder / "streams.db"))
        app = FastAPI()
        for name, runtime in runtimes().items():
            for version in (5, 6, 7):
                app.include_router(chat_endpoint(Chat(runtime, keeper, streams), f"/{version}/{name}", version=version))
        print(f"http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
        config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=1)
        await uvicorn.Server(config).serve(sockets=[listener])
        keeper.close()

    asyncio.run(serve())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
