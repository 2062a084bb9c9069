"""Dependencies are pinned by hash, and may be installed from any registry."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
LOCKS = sorted((ROOT / "requirements").glob("*.lock"))


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.name)
def test_every_requirement_is_pinned_by_hash(lock: Path) -> None:
    logical_lines = lock.read_text().replace("\\\n", " ").splitlines()
    requirements = [line for line in logical_lines if line and not line.lstrip().startswith("#")]
    assert requirements
    for requirement in requirements:
        assert re.match(r"[a-z0-9-]+==\S+ .*--hash=sha256:[0-9a-f]{64}\b", requirement), requirement


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.name)
def test_no_requirement_names_a_registry(lock: Path) -> None:
    assert "://" not in lock.read_text()
