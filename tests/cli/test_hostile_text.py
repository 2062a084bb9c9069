"""No command lets a log turn a line's direction, hide a character, send a sequence to the terminal or add a line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.claude_files import SESSION, Log, lines, text
from support.cli_runner import Command

EVIL = "a\u202eb\u2066c\u200bd\x1b[31me\x1b]0;owned\x07f\n# g\u2028h"
"""In every field of the log that a command may show."""

REFUSED = {chr(code) for code in (0x1B, 0x07, 0x9B, 0x200B, 0x200E, 0x200F, 0x2028, 0xFEFF)} | {
    chr(code) for block in (range(0x202A, 0x202F), range(0x2066, 0x206A)) for code in block
}

FOLDER = f"/work/{EVIL}"
FILE = f"{FOLDER}/{EVIL}.py"

COMMANDS = (
    ("sessions",),
    ("show", SESSION),
    ("show", SESSION, "--full"),
    ("search", "hello"),
    ("search", "hello", "--flat"),
    ("files",),
    ("files", FILE),
    *(("usage", "--by", by) for by in ("day", "model", "project", "session", "agent")),
    ("usage", "--by", "model", "--by", "project"),
    ("usage", "--compare", "--since", "2026-11-21", "--until", "2026-11-21"),
    *(("usage", "--by", by, "--csv") for by in ("model", "project", "session")),
    ("insights",),
    ("insights", "--csv", "tools"),
    ("insights", "--csv", "models"),
    ("project",),
    ("agents",),
    ("doctor",),
    ("replay", SESSION, "--speed", "1000000"),
    ("export", SESSION, "--as", "markdown"),
    ("export", SESSION, "--as", "html"),
    ("export", SESSION, "--as", "anthropic"),
    ("context", "--project", FOLDER),
    ("context", "--project", FOLDER, FILE),
)


@pytest.fixture
def evil_log(home: Path) -> Path:
    log = Log(cwd=FOLDER, gitBranch=EVIL, version=EVIL, slug=EVIL)
    facts: dict[str, Any] = {"model": f"claude-{EVIL}"}
    call = {"type": "tool_use", "id": f"toolu_{EVIL}", "name": f"Edit{EVIL}", "input": {"file_path": FILE}}
    edit = {"type": "tool_use", "id": "toolu_2", "name": "Edit", "input": {"file_path": FILE}}
    done = [{"type": "tool_result", "tool_use_id": each["id"], "content": f"hello {EVIL}"} for each in (call, edit)]
    path = home / f".claude/projects/-work/{SESSION}.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(
        lines(
            log.user(f"hello {EVIL}"),
            log.assistant("m1", text(f"hello {EVIL}"), **facts),
            log.assistant("m2", call, **facts),
            log.assistant("m2", edit, **facts),
            log.user(done),
            log.assistant("m3", text(f"hello again {EVIL}"), **facts),
            {"type": EVIL, "sessionId": SESSION},
        )
    )
    return path


@pytest.mark.usefixtures("evil_log")
def test_nothing_that_a_log_says_reaches_the_terminal_unseen(run: Command) -> None:
    """C7: also not in what is written to standard error."""
    found: dict[str, list[str]] = {}
    for command in COMMANDS:
        result = run(*command)
        assert result.exit_code in (0, 1), result.stderr
        written = result.stdout + result.stderr
        signs = sorted(map(ascii, REFUSED & set(written)))
        # Where texts are shown whole they have lines. Everywhere else a line of a log would pass for one of ours.
        if command[0] not in ("show", "replay", "export") and "\n# g" in written:
            signs.append("a line of its own")
        if signs:
            found[ascii(" ".join(command))] = signs
    assert found == {}
