"""A program `claude` on the path."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from support import fake_claude


@pytest.fixture
def claude(home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The program; its home is the test's, and the current folder a new one."""
    program = home / "bin" / "claude"
    program.parent.mkdir()
    shutil.copy(str(fake_claude.__file__), program)
    program.write_text(program.read_text().replace("/usr/bin/env python3", sys.executable, 1))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return program
