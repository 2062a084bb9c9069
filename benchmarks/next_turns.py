"""Whether the next request of a chat begins with the last one, and how long it takes to build one.

    python benchmarks/next_turns.py [--conversations 5000] [--keepers memory sqlite postgres] [--providers …]

Random conversations of `tests/support/next_turns.py`, with every provider's API and every keeper: requests that do not
begin with the one before them, byte for byte, are printed and counted; the types of the providers' SDKs check each.
Then one chat of 2,000 messages with 20 images: CPU time from the page's request to the body of the model's.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import logging
import os
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support.next_turns import MODELS, PNG, PROVIDERS, Model, next_turns
from support.postgres_servers import binaries_of_the_wheel, postgres_server
from support.postgres_stores import PostgresDatabases
from turnlog.aisdk import parse_ui_messages
from turnlog.aisdk.convert import to_ui_messages
from turnlog.chat import Chat, ChatKeeper, MemoryKeeper, NativeKeeper, ProviderRuntime, RequestOptions
from turnlog.model import Message, TextPart

MESSAGES, IMAGES, IMAGE_BYTES = 2000, 20, 100_000


@contextmanager
def keeper_of(kind: str, folder: Path) -> Generator[ChatKeeper]:
    with ExitStack() as stack:
        if kind == "memory":
            yield MemoryKeeper()
            return
        place: Path | str = folder / "chats.db"
        if kind == "postgres":
            place = PostgresDatabases(stack.enter_context(postgres_server(binaries_of_the_wheel()))).url()
        keeper = NativeKeeper(place)
        stack.callback(keeper.close)
        yield keeper


def long_chat() -> list[Any]:
    """A chat as the server keeps it: every second message of the user, some with an image."""
    url = f"data:image/png;base64,{base64.b64encode(PNG + os.urandom(IMAGE_BYTES)).decode()}"
    messages: list[Any] = []
    for number in range(MESSAGES // 2):
        parts = [{"type": "text", "text": f"question {number} " + "word " * 40}]
        if number % (MESSAGES // 2 // IMAGES) == 0:
            parts.append({"type": "file", "mediaType": "image/png", "url": url})
        messages += parse_ui_messages(json.dumps([{"id": f"u{number}", "role": "user", "parts": parts}]))
        said = (TextPart(text="An answer. " * 60),)
        answer = Message(id=f"a{number}~1", role="assistant", model=MODELS["anthropic"], parts=said)
        messages += to_ui_messages([answer]).messages
    return messages


async def request_times(keeper: ChatKeeper) -> list[float]:
    """Milliseconds of CPU time to the body of each of some requests of a long chat."""
    await keeper.save("long", long_chat())
    model, begun = Model("anthropic"), [0.0]

    async def send(body: dict[str, Any]) -> AsyncGenerator[bytes, None]:
        begun[0] = time.process_time() - begun[0]
        async for piece in model(body):
            yield piece

    chat = Chat(ProviderRuntime("anthropic", RequestOptions(model=MODELS["anthropic"]), send), keeper)
    times: list[float] = []
    for number in range(12):
        part = {"type": "text", "text": "and?"}
        body = json.dumps({"id": "long", "message": {"id": f"n{number}", "role": "user", "parts": [part]}})
        begun[0] = time.process_time()
        async for _ in await chat.post(body):
            pass
        times.append(begun[0] * 1000)
    return times


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--conversations", type=int, default=5000, help="for each provider and keeper")
    arguments.add_argument("--keepers", nargs="+", default=["memory", "sqlite", "postgres"])
    arguments.add_argument("--providers", nargs="+", default=list(PROVIDERS))
    given = arguments.parse_args()
    # Some tools of these conversations fail.
    logging.disable(logging.CRITICAL)
    for kind in given.keepers:
        with tempfile.TemporaryDirectory() as folder, keeper_of(kind, Path(folder)) as keeper:
            for provider in given.providers:
                found = asyncio.run(next_turns(provider, keeper, range(given.conversations)))
                print(f"{kind} {provider}: {len(found.wrong)} of {found.pairs} pairs differ", flush=True)
                print(*found.wrong[:3], sep="\n", end="\n" if found.wrong else "")
            first, *others = asyncio.run(request_times(keeper))
            print(f"{kind}: {MESSAGES} messages: {first:.0f} ms for the first request, then", end=" ")
            print(f"{statistics.median(others):.0f} ms", flush=True)


if __name__ == "__main__":
    main()
