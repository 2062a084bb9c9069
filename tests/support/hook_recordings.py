"""Hooks that the real agents called, and the logs that they wrote meanwhile."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from support.opencode_files import Rows, write_database
from turnlog.agents import agent as agent_of
from turnlog.agents.base import Agent, Source, SourceKind

DATA = Path(__file__).parents[1] / "data"


class Recording(NamedTuple):
    """One agent's."""

    agent: Agent
    home: Path
    lines: list[bytes]
    """As they are in a spool."""

    prompts: list[str]
    """What the user asked, as far as hooks have it."""
    first_output: str
    """A word in the output of the first call, if hooks have the output."""
    stays: list[str]
    """Events that remain when the log is read: what no log has."""

    renamed: dict[str, str]
    """Name of a tool in events -> in the log."""

    @property
    def events(self) -> list[dict[str, Any]]:
        found = [json.loads(line)["event"] for line in self.lines]
        return [in_common_terms(event) if "hookName" in event else in_snake_case(event) for event in found]

    def logs(self) -> list[Source]:
        return list(self.agent.discover([self.home]))

    def write_spool(self, folder: Path, lines: list[bytes]) -> Source:
        """The spool of the recorded session, anew."""
        name = self.events[0]["session_id"]
        path = folder / self.agent.name / f"{name}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"".join(lines))
        return Source(
            agent=self.agent.name,
            path=str(path),
            root=str(folder),
            kind=SourceKind.HOOKS,
            session_id=f"{self.agent.name}:{name}",
        )


def in_snake_case(event: dict[str, Any]) -> dict[str, Any]:
    """An event of an agent that has its fields in camel case, and its name in snake case, as those of the others."""
    fields = {re.sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", name): value for name, value in event.items()}
    name = fields["hook_event_name"]
    if "hookEventName" in event:
        fields["hook_event_name"] = "".join(word.title() for word in name.split("_"))
    return fields


def in_common_terms(event: dict[str, Any]) -> dict[str, Any]:
    """An event of Cline, which has what it is about in objects, as those of the others."""
    call: dict[str, Any] = event.get("tool_call") or event.get("tool_result") or {}
    return {
        "hook_event_name": {"tool_call": "PreToolUse"}.get(event["hookName"], event["hookName"]),
        "session_id": event["sessionContext"]["rootSessionId"],
        "agent_id": event["parent_agent_id"] and event["agent_id"],
        "cwd": event["workspaceRoots"][0],
        "tool_name": call.get("name"),
        "tool_input": call.get("input"),
    }


HOMES = {
    "claude-code": DATA / "claude_code" / "scenarios" / "hooks",
    "gemini-cli": DATA / "gemini_cli" / "scenarios" / "hooks",
    **{home.name.removesuffix("-home"): home for home in sorted((DATA / "hooks").glob("*-home"))},
}
"""Of the agents that log in files. The second of Claude Code's is of its own screen, where answers come in pieces."""

NAMES = [*HOMES, "opencode"]


def recording(name: str) -> Recording:
    """A recording of an agent's hooks, all of one session and its subagents."""
    lines = (DATA / "hooks" / f"{name}.jsonl").read_bytes().splitlines(keepends=True)
    home = HOMES.get(name) or Path(_database().name)
    facts = json.loads((DATA / "hooks" / "recordings.json").read_bytes())[name]
    agent = agent_of(name.removesuffix("-tui"))
    return Recording(agent, home, lines, **facts)


@cache
def _database() -> TemporaryDirectory[str]:
    """The home of OpenCode, which is a database."""
    rows: Rows = {}
    for line in (DATA / "hooks" / "opencode-rows.jsonl").read_text().splitlines():
        found = json.loads(line)
        rows.setdefault(found["table"], []).append(found["row"])
    folder = TemporaryDirectory(prefix="turnlog-hooks-")
    write_database(rows, Path(folder.name) / "opencode.db")
    return folder
