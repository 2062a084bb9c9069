"""Whether an agent finds turnlog's server where `turnlog mcp install` writes it, and gets an answer from it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from clis import Cli
from model_server import ModelServer
from script import Answer, Call, Tokens

WORD = "Zwetschgenkuchen"
"""What an earlier session said, and no request of the script."""

_START_SECONDS = 8
"""Turnlog's server answers by then, on a busy machine too."""

_EARLIER = {
    "type": "user",
    "uuid": "a6b1c2d3-0000-4000-8000-000000000001",
    "parentUuid": None,
    "sessionId": "a6b1c2d3-0000-4000-8000-000000000000",
    "timestamp": "2026-11-20T10:00:00.000Z",
    "version": "2.1.98",
    "isSidechain": False,
    "userType": "external",
    "message": {"role": "user", "content": f"The word of the retry limit is {WORD}"},
}


def script(cli: Cli) -> list[Answer]:
    """The model looks for the retry limit, then ends."""
    tokens = Tokens(input=100, cached=0, output=40, reasoning=0)
    call = Call(
        id="call_history",
        tool=cli.history_tool,
        namespace=cli.history_namespace,
        input={"query": "retry limit", **cli.history_extra},
        output=WORD,
    )
    pause: Any = f"sleep {_START_SECONDS}"
    given = {cli.argument: [pause] if cli.takes_list else pause, **cli.extra}
    wait = Call(id="call_wait", tool=cli.tool, input=given, output="")
    first = () if cli.waits_for_servers else (wait,)
    return [
        *(Answer(number=0, calls=(each,), tokens=tokens) for each in first),
        Answer(number=1, calls=(call,), tokens=tokens),
        Answer(number=2, text="Found.", tokens=tokens),
    ]


def check_history_server(
    cli: Cli, home: Path, prepare: Callable[[str], None], launch: Callable[[str], None]
) -> list[str]:
    """What is not as it should be: nothing if a request of the agent holds the earlier session's word.

    Args:
        cli: The agent.
        home: Its HOME.
        prepare: Writes the agent's files there, given the model's address.
        launch: Starts the agent and waits for its end, given the model's address.
    """
    with ModelServer(script(cli)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            prepare(server.url)
            _write_earlier_session(home)
            _install(cli, home)
            launch(server.url)
        finally:
            server.shutdown()
    if any(WORD in json.dumps(body, ensure_ascii=False) for body in server.bodies):
        return []
    return [f"no request holds the word {WORD}; tools offered: {_offered(server.bodies)}"]


def _write_earlier_session(home: Path) -> None:
    folder = home / ".claude/projects/-earlier"
    folder.mkdir(parents=True, exist_ok=True)
    record = json.dumps(_EARLIER | {"cwd": str(home / "work")})
    (folder / f"{_EARLIER['sessionId']}.jsonl").write_text(record + "\n")


def _install(cli: Cli, home: Path) -> None:
    arguments = [sys.executable, "-m", "turnlog", "mcp", "install", cli.program, "--yes"]
    environment = {"PATH": os.environ["PATH"], "HOME": str(home)}
    subprocess.run(arguments, env=environment, capture_output=True, text=True, check=True)


def _offered(bodies: list[dict[str, Any]]) -> list[str]:
    """The names of tools that a request offers and that look like ours."""
    text = json.dumps([body.get("tools") for body in bodies])
    return sorted({word for word in text.replace('"', " ").split() if "turnlog" in word or "search_history" in word})
