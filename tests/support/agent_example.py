"""The agent of `examples/agent-plugin`, which tests of every reader take besides those of this package."""

from __future__ import annotations

import shutil
import sys
import tomllib
from pathlib import Path

import pytest

from support.agent_cases import CASES, Lack
from turnlog.agents import GROUP
from turnlog.server.sample import LOGS

FOLDER = Path(__file__).parents[2] / "examples/agent-plugin"
HOME = FOLDER / "home"
EXAMPLE = "example-agent"


def sample_of(name: str) -> Path:
    """The home with an agent's sample; of the example its own."""
    return HOME if name == EXAMPLE else LOGS / name


def lacks_of(name: str) -> frozenset[Lack]:
    """What an agent's format lacks; the example's nothing that is read here."""
    return frozenset() if name == EXAMPLE else CASES[name].lacks


def install_example(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install the package into a folder as pip does, but without pip, and let this process find it."""
    project = tomllib.loads((FOLDER / "pyproject.toml").read_text())["project"]
    [(name, target)] = project["entry-points"][GROUP].items()
    info = site / "turnlog_example_agent-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    (info / "entry_points.txt").write_text(f"[{GROUP}]\n{name} = {target}\n")
    package = target.partition(":")[0]
    shutil.copytree(FOLDER / package, site / package)
    monkeypatch.setattr(sys, "path", [str(site), *sys.path])
