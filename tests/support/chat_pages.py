"""Chat pages with the real `AbstractChat` of AI SDK 5, 6 and 7: one node process for all pages of a module.

The commands are in `tests/conformance/page.mjs`.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest

from support.ai_sdk_judge import FOLDER

_names = count()


class Pages:
    """The node process with the pages."""

    def __init__(self) -> None:
        assert (FOLDER / "node_modules" / "ai7").is_dir(), f"npm ci in {FOLDER}, or make pytest"
        environment = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
        self._process = subprocess.Popen(
            ["node", "page.mjs"], cwd=FOLDER, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def do(self, do: str, **order: Any) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"do": do, **order}).encode() + b"\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def close(self) -> None:
        self._process.communicate(timeout=20)


class Page:
    """One window of a chat."""

    def __init__(self, pages: Pages, api: str, version: int, chat_id: str, **more: Any) -> None:
        self.name = f"p{next(_names)}"
        self._pages = pages
        pages.do("open", page=self.name, version=version, api=api, id=chat_id, **more)

    def do(self, do: str, argument: Any = None) -> None:
        self._pages.do(do, page=self.name, **({} if argument is None else {"with": argument}))

    def send(self, text: str, **more: Any) -> None:
        self.do("send", {"text": text, **more})

    def see(self, until: Any = None) -> dict[str, Any]:
        seen = self._pages.do("see", page=self.name, **({} if until is None else {"until": until}))
        if isinstance(until, str):
            assert seen["status"] == until, seen
        return seen

    def ready(self) -> list[dict[str, Any]]:
        seen = self.see("ready")
        assert seen.get("error") is None
        return seen["messages"]


@pytest.fixture(scope="module")
def pages() -> Iterator[Pages]:
    process = Pages()
    yield process
    process.close()


def shown(message: dict[str, Any]) -> list[str]:
    return [part.get("text") or part.get("state") or part["type"] for part in message["parts"]]


def without_metadata(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{key: value for key, value in message.items() if key != "metadata"} for message in messages]
