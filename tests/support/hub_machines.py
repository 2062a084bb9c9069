"""Machines that push to a hub."""

from __future__ import annotations

import json
from pathlib import Path

from support.hub_double import HubProcess
from turnlog.hub.machine.client import HubClient
from turnlog.hub.machine.pusher import PushReport, StorePusher
from turnlog.hub.machine.state import HubConnection, MachineState
from turnlog.sync.syncer import sync


class Box:
    """A machine: a home of Claude Code, a store, a connection."""

    def __init__(self, folder: Path, hub: HubProcess, machine: str = "laptop", user: str = "ana") -> None:
        self.home = folder / machine / "home"
        self.store_path = folder / machine / "data" / "turnlog.db"
        self.hub = hub
        self.store_path.parent.mkdir(parents=True)
        self.home.mkdir(parents=True)
        with MachineState(self.store_path) as state:
            state.connect(HubConnection(hub.url, f"{user}/{machine}", "1", user, machine))

    def sync(self, *roots: Path) -> None:
        sync(self.store_path, roots=list(roots) or [self.home / ".claude"])

    def level(self, path: str, level: str) -> None:
        with MachineState(self.store_path) as state:
            state.set_level(path, level)

    def push(self) -> PushReport:
        with MachineState(self.store_path) as state, self._client(state) as client:
            return StorePusher(self.store_path, state, client).push()

    def plan(self) -> PushReport:
        with MachineState(self.store_path) as state, self._client(state) as client:
            return StorePusher(self.store_path, state, client).plan()

    def logs(self, session_id: str) -> bytes:
        with MachineState(self.store_path) as state, self._client(state) as client:
            return client.logs(session_id)

    def _client(self, state: MachineState) -> HubClient:
        return HubClient(self.hub.url, state.connection().token, seconds=5)


def log(box: Box, project: str, session: str, *texts: str, image: str | None = None) -> Path:
    """Write a session of Claude Code: prompts and answers in turn."""
    path = box.home / ".claude" / "projects" / project.replace("/", "-") / f"{session}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    lines: list[str] = []
    parent = None
    for number, text in enumerate(texts):
        is_prompt = number % 2 == 0
        content: list[dict[str, object]] = [{"type": "text", "text": text}]
        if image is not None and is_prompt:
            source = {"type": "base64", "media_type": "image/png", "data": image}
            content.append({"type": "image", "source": source})
        uuid = f"{session}-{number}"
        message: dict[str, object] = {"role": "user" if is_prompt else "assistant", "content": content}
        if not is_prompt:
            usage = {"input_tokens": 10, "output_tokens": 5}
            message |= {
                "id": f"msg_{session}_{number}",
                "model": "claude-sonnet-4-5",
                "usage": usage,
                "type": "message",
            }
        lines.append(
            json.dumps(
                {
                    "type": message["role"],
                    "uuid": uuid,
                    "parentUuid": parent,
                    "sessionId": session,
                    "cwd": project,
                    "gitBranch": "walnut-branch",
                    "version": "2.1.0",
                    "timestamp": f"2026-11-20T10:00:{number:02}.000Z",
                    "message": message,
                }
            )
        )
        parent = uuid
    path.write_text("".join(f"{line}\n" for line in lines))
    return path
