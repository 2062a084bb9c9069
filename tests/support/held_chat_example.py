"""The chat example's server, whose long answers wait before their end until a file is there: what a test does in the
middle of an answer is in its middle, however slow the machine is.

`python held_chat_example.py EXAMPLE FILE [the server's own arguments]`
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator
from importlib import import_module
from pathlib import Path
from typing import Any

BEFORE = "something,"
"""The word of an answer before which it waits."""


def main() -> None:
    """Serve until a signal."""
    example, let_go = sys.argv[1], Path(sys.argv[2])
    sys.path.insert(0, example)
    sys.argv[1:3] = []
    server: Any = import_module("server")
    words = server.words

    async def held(text: str) -> AsyncGenerator[str, None]:
        async for word in words(text):
            while word.strip() == BEFORE and not let_go.exists():
                await asyncio.sleep(0.02)
            yield word

    server.words = held
    server.main()


if __name__ == "__main__":
    main()
