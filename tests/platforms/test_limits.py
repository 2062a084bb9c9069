"""What a container or a service leaves to a process: cores and memory."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from turnlog.platforms import processes
from turnlog.platforms.processes import memory, usable_cores

pytestmark = pytest.mark.skipif(not Path("/proc/self/cgroup").exists(), reason="control groups are Linux's")


def _of_16(_pid: int) -> set[int]:
    return set(range(16))


def _of_2(_pid: int) -> set[int]:
    return {0, 3}


@pytest.fixture
def groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The control groups of a machine with 16 cores, of which this process is in `box/job`."""
    (tmp_path / "own").write_text("9:name=systemd:/\n0::/box/job\n")
    (tmp_path / "groups/box/job").mkdir(parents=True)
    monkeypatch.setattr(processes, "_OWN_GROUPS", tmp_path / "own")
    monkeypatch.setattr(processes, "_CONTROL_GROUPS", tmp_path / "groups")
    monkeypatch.setattr(os, "sched_getaffinity", _of_16)
    return tmp_path / "groups"


@pytest.mark.parametrize(
    ("own", "above", "cores"),
    [
        ("max 100000", "max 100000", 16),
        ("150000 100000", "max 100000", 2),
        ("max 100000", "400000 100000", 4),
        ("20000 100000", "400000 100000", 1),
        ("", "nonsense", 16),
        ("100000", "100000 0", 16),
        ("\u00b2 100000", "x 1", 16),
    ],
)
def test_a_container_has_as_many_cores_as_it_may_use(groups: Path, own: str, above: str, cores: int) -> None:
    (groups / "box/job/cpu.max").write_text(f"{own}\n")
    (groups / "box/cpu.max").write_text(f"{above}\n")
    (groups.parent / "cpu.max").write_text("100000 100000\n")  # above the groups: of nobody
    assert usable_cores() == cores


def test_a_group_may_have_any_name(groups: Path) -> None:
    (groups.parent / "own").write_bytes(b"0::/box/\xff\xfe\n")
    (groups / "box/cpu.max").write_bytes(b"300000 100000\n")
    assert usable_cores() == 3


def test_a_container_has_as_much_memory_as_it_may_use(groups: Path) -> None:
    whole = memory()
    assert whole is not None
    (groups / "box/job/memory.max").write_text("max\n")
    (groups / "box/memory.max").write_text("268435456\n")
    assert memory() == 256 << 20 < whole


def test_a_system_without_such_groups_has_its_own_cores(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(processes, "_OWN_GROUPS", tmp_path / "none")
    monkeypatch.setattr(os, "sched_getaffinity", _of_2)
    assert usable_cores() == 2
