import runpy
import sys
from types import ModuleType

import pytest


def test_python_dash_m_runs_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    module = ModuleType("turnlog.cli.main")
    module.__dict__["main"] = lambda: calls.append("main")
    monkeypatch.setitem(sys.modules, "turnlog.cli", ModuleType("turnlog.cli"))
    monkeypatch.setitem(sys.modules, "turnlog.cli.main", module)
    runpy.run_module("turnlog", run_name="__main__")
    assert calls == ["main"]
