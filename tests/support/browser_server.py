"""A real server in a process of its own, over a store of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from support.browser_visit import TOKEN

SECONDS_TO_READ = 60
"""How long reading and indexing a small home may take; generous, because other tests run at the same time."""


@contextmanager
def serving(
    home: Path,
    data: Path,
    *arguments: str,
    port: int = 0,
    seconds: float = SECONDS_TO_READ,
    environment: Mapping[str, str] | None = None,
) -> Generator[str]:
    """Where `turnlog serve` answers, once it has read and indexed everything in this home. Its token is `TOKEN`."""
    process = subprocess.Popen(
        [sys.executable, "-m", "turnlog", "serve", "--no-browser", "--port", str(port), *arguments],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ
        | {"HOME": str(home), "TURNLOG_DATA_DIR": str(data), "TURNLOG_TOKEN": TOKEN, "PYTHONUNBUFFERED": "1"}
        | dict(environment or {}),
    )
    assert process.stdout is not None
    try:
        found = process.stdout.readline().removeprefix("turnlog is at ").partition("/#code=")[0]
        assert found.startswith("http://127.0.0.1:")
        _wait_until_searchable(found, (environment or {}).get("TURNLOG_TOKEN", TOKEN), seconds)
        yield found
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=20)


def ask(address: str, body: bytes | None = None, token: str = TOKEN) -> Any:
    """What a server of `serving` answers a program; with a body, to a POST."""
    request = urllib.request.Request(address, body, {"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.load(answer)


def _wait_until_searchable(address: str, token: str, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    status: dict[str, Any] = {}
    while time.monotonic() < deadline:
        status = ask(f"{address}/api/status", token=token)
        if status["sync"]["passes"] > 0 and status["search"]["unindexed"] == 0:
            return
        time.sleep(0.1)
    raise AssertionError(f"the logs were not read in {seconds} s: {status}")
