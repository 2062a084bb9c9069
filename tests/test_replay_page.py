"""What docs/how-to/replay.md shows runs as it is."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from turnlog import replay

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "how-to" / "replay.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
RECORDED = ROOT / "tests" / "data" / "klaude" / "versions" / "2.43.0"


def test_the_blocks_run_one_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (log, *_) = sorted(RECORDED.rglob("events.jsonl"))
    shutil.copyfile(log, tmp_path / "session.jsonl")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "example"}
    for code in BLOCKS:
        exec(compile(code, "docs/how-to/replay.md", "exec"), names)
    assert "UserShown" in capsys.readouterr().out
    assert names["chunks"]


def test_every_event_of_a_replay_is_described() -> None:
    shown = [name for name in replay.__all__ if name.endswith(("Shown", "Started", "Metadata"))]
    assert len(shown) == 13
    assert [name for name in shown if name not in PAGE] == []
