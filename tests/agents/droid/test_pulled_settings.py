"""Settings of a session that a hub sends: they are written only if they allow little without asking."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.pulled_logs import written
from turnlog.hub.machine.pulling import ALONE, OBEYED

ID = "55aa150a-c5c2-414f-8f06-dd150a493bb0"
LOG = f"sessions/-work/{ID}.jsonl", b'{"type":"session_start","id":"%b","title":"x"}\n' % ID.encode()
PLACE = f"sessions/-work/{ID}.settings.json"
RECORDED = sorted((Path(__file__).parents[2] / "data/droid").rglob("*.settings.json"))
HIGH = b'"auto-high"'


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: f"{path.parents[2].name}-{path.name[:4]}")
def test_recorded_settings_that_allow_little_are_written(tmp_path: Path, path: Path) -> None:
    data = path.read_bytes()
    kept, left_out = written("droid", tmp_path, LOG, (PLACE, data))
    # One was recorded with everything allowed.
    is_written = HIGH not in data
    assert kept == {**dict([LOG]), **({PLACE: data} if is_written else {})}
    assert left_out == ({} if is_written else {PLACE: OBEYED})


@pytest.mark.parametrize(
    "data",
    [
        *(
            json.dumps({"model": "m", **more}).encode()
            for more in (
                {"autonomyMode": "auto-high"},
                {"autonomyMode": "auto-medium"},
                {"autonomyLevel": "medium"},
                {"autonomyLevel": None},
                {"allowSubagentsInScripts": True},
                {"toolExecutionMode": "any"},
                {"hooks": {"SessionStart": [{"command": "evil"}]}},
                {"commandAllowlist": ["rm"]},
            )
        ),
        b"{",
        b"[]",
        b"",
        b'{"model": "%b"}' % (b"x" * (1 << 20)),
        b'{"autonomyMode": "normal", "autonomyMode": "auto-high"}',
        b'{"tags": ' + b"[" * 100_000,
    ],
    ids=lambda data: str(data)[:60],
)
def test_settings_that_may_allow_more_are_left_out_and_named(tmp_path: Path, data: bytes) -> None:
    assert written("droid", tmp_path, LOG, (PLACE, data)) == (dict([LOG]), {PLACE: OBEYED})


def test_settings_of_another_session_are_left_out(tmp_path: Path) -> None:
    other = PLACE.replace("55aa", "66aa")
    assert written("droid", tmp_path, LOG, (other, b"{}")) == (dict([LOG]), {other: ALONE})
