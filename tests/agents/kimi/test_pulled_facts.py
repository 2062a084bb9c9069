"""Facts about a session of Kimi CLI that a hub sends: they are written only if they give it no rights."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.pulled_logs import written
from turnlog.hub.machine.pulling import OBEYED

FOLDER = f"sessions/{'0' * 32}/55aa150a-c5c2-414f-8f06-dd150a493bb0"
LOG = f"{FOLDER}/wire.jsonl", b'{"type": "metadata", "protocol_version": "1.9"}\n'
PLACE = f"{FOLDER}/state.json"
RECORDED = sorted((Path(__file__).parents[2] / "data/kimi_cli").rglob("state.json"))


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.parent.name[:8])
def test_recorded_facts_are_written(tmp_path: Path, path: Path) -> None:
    sent = dict([LOG, (PLACE, path.read_bytes())])
    assert written("kimi-cli", tmp_path, *sent.items()) == (sent, {})


@pytest.mark.parametrize(
    "facts",
    [
        {"approval": {"yolo": True}},
        {"approval": {"afk": True}},
        {"approval": {"auto_approve_actions": ["run shell command"]}},
        {"approval": {"other": 1}},
        {"additional_dirs": ["/"]},
        {"other": 1},
        [],
    ],
    ids=json.dumps,
)
def test_facts_that_give_rights_are_left_out_and_named(tmp_path: Path, facts: object) -> None:
    sent = json.dumps(facts).encode()
    assert written("kimi-cli", tmp_path, LOG, (PLACE, sent)) == (dict([LOG]), {PLACE: OBEYED})
