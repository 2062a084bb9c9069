"""Tests of every reader take the example of a package of its own, too."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.agent_example import EXAMPLE, install_example


@pytest.fixture(autouse=True)
def installed_example(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Install the example for the tests that have its name as their parameter, and for no others."""
    parameters: dict[str, object] = getattr(getattr(request.node, "callspec", None), "params", {})
    if parameters.get("name") == EXAMPLE:
        install_example(Path(tmp_path_factory.mktemp("site")), monkeypatch)
