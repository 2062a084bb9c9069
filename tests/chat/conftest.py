"""A program that stands for an agent."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.fake_agent import FakeAgent


@pytest.fixture
def agent(tmp_path: Path) -> FakeAgent:
    return FakeAgent(tmp_path / "agent")
