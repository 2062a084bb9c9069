"""Plans and checkpoints that a hub sends are written into the folder of the session that comes with them."""

from __future__ import annotations

from pathlib import Path

from support.pulled_logs import written
from turnlog.hub.machine.pulling import ALONE


def test_a_plan_comes_with_its_log_only(tmp_path: Path) -> None:
    own = {f"session-state/a/{name}": b"x" for name in ("events.jsonl", "plan.md", "checkpoints/index.md")}
    other = {f"session-state/b/{name}": b"evil" for name in ("plan.md", "workspace.yaml", "checkpoints/index.md")}
    kept, left_out = written("copilot-cli", tmp_path, *own.items(), *other.items())
    assert (kept, left_out) == (own, dict.fromkeys(other, ALONE))
