"""A schedule that a hub sends: it is written only if it is empty, since Mistral Vibe would send its prompts."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.pulled_logs import written
from turnlog.hub.machine.pulling import OBEYED

FOLDER = "logs/session/unified/55aa150a-c5c2-414f-8f06-dd150a493bb0"
CURRENT = f"{FOLDER}/CURRENT", b"0000000000000001\n"
PLACE = f"{FOLDER}/scheduled-loops.json"


@pytest.mark.parametrize(
    ("data", "is_written"),
    [
        (b'{"format": "vibe.scheduled-loops/v1", "loops": []}', True),
        (b'{"loops": [{"prompt": "evil"}]}', False),
        (b"{}", False),
        (b"{", False),
    ],
)
def test_only_an_empty_schedule_is_written(tmp_path: Path, data: bytes, is_written: bool) -> None:
    kept, left_out = written("mistral-vibe", tmp_path, CURRENT, (PLACE, data))
    assert kept == dict([CURRENT, (PLACE, data)] if is_written else [CURRENT])
    assert left_out == ({} if is_written else {PLACE: OBEYED})
