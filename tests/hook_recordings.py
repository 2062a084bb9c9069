"""Hooks that the real agents called, and the logs that they wrote meanwhile."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

from turnlog.agents import agent as agent_of
from turnlog.agents.base import Agent, Source, SourceKind

DATA = Path(__file__).parent / "data"


class Recording(NamedTuple):
    """One agent's."""

    agent: Agent
    home: Path
    lines: list[bytes]
    """As they stand in a spool."""

    @property
    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line)["event"] for line in self.lines]

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


HOMES = {
    "claude-code": DATA / "claude_code" / "scenarios" / "hooks",
    "codex": DATA / "hooks" / "codex-home",
    "gemini-cli": DATA / "gemini_cli" / "scenarios" / "hooks",
}


def recording(name: str) -> Recording:
    """The recording of an agent's hooks, all of one session and its subagents."""
    lines = (DATA / "hooks" / f"{name}.jsonl").read_bytes().splitlines(keepends=True)
    return Recording(agent_of(name), HOMES[name], lines)
