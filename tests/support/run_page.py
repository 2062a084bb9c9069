"""Run the Python blocks of a page in order, serve the `app` that they make, and ask it for one answer a path.

Run by an environment that holds turnlog and what it needs, and nothing else: `run_page.py PAGE PATH...`. Prints the
answers. The model's API is a script.
"""

from __future__ import annotations

import io
import json
import re
import sys
import threading
import time
import urllib.request
from pathlib import Path
from typing import Any

import uvicorn

REAL = urllib.request.urlopen
EVENTS: tuple[dict[str, Any], ...] = (
    {
        "type": "message_start",
        "message": {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": []},
    },
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "I am a script."}},
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}},
    {"type": "message_stop"},
)


def urlopen(request: Any, **given: Any) -> Any:
    """The model's API; this machine's server as it is."""
    if "127.0.0.1" in request.full_url:
        return REAL(request, **given)
    return io.BytesIO(
        b"".join(b"event: %b\ndata: %b\n\n" % (e["type"].encode(), json.dumps(e).encode()) for e in EVENTS)
    )


def main(page: Path, paths: list[str]) -> None:
    """Run the page."""
    urllib.request.urlopen = urlopen
    names: dict[str, Any] = {"__name__": "backend"}
    for block in re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL):
        exec(compile(block, str(page), "exec"), names)
    server = uvicorn.Server(uvicorn.Config(names["app"], port=0, log_level="warning"))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    for path in paths:
        message = {"id": path, "role": "user", "parts": [{"type": "text", "text": "hi there"}]}
        body = json.dumps({"id": f"chat {path}", "message": message}).encode()
        headers = {"content-type": "application/json", "x-user": "ann"}
        request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", body, headers)
        with urlopen(request) as answer:
            print(path, answer.status, answer.read().decode().replace("\n", " "))
    server.should_exit = True
    thread.join()


main(Path(sys.argv[1]), sys.argv[2:])
