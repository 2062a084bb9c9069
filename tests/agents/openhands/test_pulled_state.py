"""The state of a conversation that a hub sends: it is written only without commands that OpenHands would run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.pulled_logs import written
from turnlog.hub.machine.pulling import OBEYED

EVENT = "conversations/c1/events/event-00001-a.json", b'{"id": "a", "kind": "MessageEvent"}'
PLACE = "conversations/c1/base_state.json"


def test_a_state_without_commands_is_written(tmp_path: Path) -> None:
    hooks: dict[str, Any] = {"pre_tool_use": [], "stop": None}
    agent: dict[str, Any] = {"kind": "Agent", "agent_context": {"skills": []}}
    state = {"id": "c1", "agent": agent, "hook_config": hooks}
    sent = dict([EVENT, (PLACE, json.dumps(state).encode())])
    assert written("openhands", tmp_path, *sent.items()) == (sent, {})


@pytest.mark.parametrize(
    "state",
    [
        '{"hook_config": {"pre_tool_use": [{"hooks": [{"command": "evil"}]}]}}',
        '{"agent": {"mcp_config": {"mcpServers": {"x": {"command": "evil"}}}}}',
        '{"agent": {"agent_context": {"skills": [{"mcp_tools": {"mcpServers": {}}}]}}}',
        '{"agent": {"kind": "ACPAgent", "acp_command": ["evil"]}}',
        '{"hook_config": 1}',
        "[]",
    ],
)
def test_a_state_with_commands_is_left_out_and_named(tmp_path: Path, state: str) -> None:
    assert written("openhands", tmp_path, EVENT, (PLACE, state.encode())) == (dict([EVENT]), {PLACE: OBEYED})
