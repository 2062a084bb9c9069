"""Runs the installed command-line agents against the script, and compares what turnlog reads with it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from model_server import ModelServer
from script import PROMPT, Answer, conversation

from turnlog.agents import agent
from turnlog.agents.base import SourceKind
from turnlog.logs import SessionHistory, discover, read_session
from turnlog.model import Message, ReasoningPart, TextPart, ToolCallPart

PROGRAMS = Path(".build/rig/node_modules/.bin").absolute()


@dataclass(frozen=True, kw_only=True)
class Cli:
    """How an agent is started, and what its shell tool is called."""

    name: str
    program: str
    home: str
    arguments: list[str]
    tool: str
    argument: str
    extra: dict[str, Any] = field(default_factory=dict[str, Any])
    environment: dict[str, str] = field(default_factory=dict[str, str])
    files: dict[str, str] = field(default_factory=dict[str, str])


CODEX = """model = "gpt-5.5"
model_provider = "rig"
approval_policy = "never"
sandbox_mode = "danger-full-access"
check_for_update_on_startup = false
[model_providers.rig]
name = "rig"
base_url = "{URL}/v1"
wire_api = "responses"
env_key = "RIG_KEY"
"""
GEMINI = {
    "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}},
    "privacy": {"usageStatisticsEnabled": False},
    "general": {"enableAutoUpdate": False},
}
OPENCODE = {
    "autoupdate": False,
    "share": "disabled",
    "permission": {"*": "allow"},
    "provider": {
        "rig": {
            "npm": "@ai-sdk/openai-compatible",
            "options": {"baseURL": "{URL}/v1", "apiKey": "none"},
            "models": {"rig": {"reasoning": True, "tool_call": True, "limit": {"context": 200000, "output": 9000}}},
        }
    },
}
CLIS = [
    Cli(
        name="claude-code", program="claude", home=".claude", tool="Bash", argument="command",
        arguments=["-p", "--allowedTools", "Bash", "--", PROMPT],
        extra={"description": "Try"},
        environment={
            "ANTHROPIC_BASE_URL": "{URL}", "ANTHROPIC_API_KEY": "none",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1",
        },
    ),
    Cli(
        name="codex", program="codex", home=".codex", tool="exec_command", argument="cmd",
        arguments=["exec", "--skip-git-repo-check", PROMPT],
        environment={"RIG_KEY": "none"}, files={".codex/config.toml": CODEX},
    ),
    Cli(
        name="gemini-cli", program="gemini", home=".gemini", tool="run_shell_command", argument="command",
        arguments=["--yolo", "-m", "gemini-2.5-pro", "-p", PROMPT],
        environment={"GEMINI_API_KEY": "none", "GOOGLE_GEMINI_BASE_URL": "{URL}", "GEMINI_CLI_TRUST_WORKSPACE": "true"},
        files={".gemini/settings.json": json.dumps(GEMINI)},
    ),
    Cli(
        name="opencode", program="opencode", home=".local/share/opencode", tool="bash", argument="command",
        arguments=["run", "-m", "rig/rig", PROMPT],
        extra={"description": "Try"},
        environment={"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1"},
        files={".config/opencode/opencode.json": json.dumps(OPENCODE)},
    ),
]  # fmt: skip


def run(cli: Cli, folder: Path) -> tuple[list[Answer], str]:
    """Run one conversation with its home in `folder`; returns the script, and what went wrong, if anything."""
    answers = conversation(cli.tool, cli.argument, cli.extra)
    server = ModelServer(answers)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    for name, text in cli.files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text.replace("{URL}", server.url))
    work = folder / "work"
    work.mkdir()
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "LANG": "C.UTF-8", "TERM": "dumb"}
    environment |= {name: value.replace("{URL}", server.url) for name, value in cli.environment.items()}
    command = [str(PROGRAMS / cli.program), *cli.arguments]
    try:
        done = subprocess.run(
            command, cwd=work, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60
        )
    except subprocess.TimeoutExpired:
        return answers, "did not end within 60 seconds"
    finally:
        server.shutdown()
    trouble = f"exit code {done.returncode}: {(done.stderr or done.stdout)[-400:]}" if done.returncode else ""
    if not trouble and server.asked != len(answers):
        trouble = f"asked {server.asked} times for {len(answers)} answers"
    return answers, trouble


def read(cli: Cli, folder: Path) -> SessionHistory | None:
    """The one session that the agent wrote below `folder`."""
    sources = agent(cli.name).discover([folder / cli.home])
    logs = [source for source in sources if source.kind is SourceKind.SESSION]
    return read_session(logs[0].path) if logs else None


def describe(messages: tuple[Message, ...]) -> Iterator[tuple[str, Any]]:
    for message in messages:
        for part in message.parts:
            if isinstance(part, TextPart | ReasoningPart):
                yield f"{message.role}.{part.type}", part.text
            elif isinstance(part, ToolCallPart):
                yield "call", (part.tool_name, bytes(part.input), str(part.state), part.results)
        if message.usage:
            yield "usage", message.usage.buckets()


if __name__ == "__main__":
    for cli in CLIS:
        if sys.argv[1:] and cli.name not in sys.argv[1:]:
            continue
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            _, trouble = run(cli, folder)
            print("==", cli.name, trouble or "ran", flush=True)
            history = read(cli, folder)
            if history:
                print(history.session.agent_version, history.session.counts, [d for d in history.diagnostics])
                for line in describe(history.messages):
                    print("  ", str(line)[:420])
