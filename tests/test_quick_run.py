"""What `make test` leaves out, and what it does not let in."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support import costs, profiles, steps, thorough

pytest_plugins = ["pytester"]

BUSY = """
import time
import pytest

def busy(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass

@pytest.fixture(scope="module")
def shared():
    busy(0.1)

@pytest.fixture
def own():
    busy(0.03)

def test_dear(own):
    busy(0.03)

def test_cheap(shared):
    time.sleep(0.1)

@pytest.mark.thorough
def test_listed():
    busy(0.1)
"""


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """Three tests, of which one is too dear."""
    monkeypatch.setattr(costs, "slowness", lambda: 1.0)
    pytester.makepyfile(test_busy=BUSY)
    return pytester


def outcomes(run: pytest.Pytester, *, is_quick: bool) -> pytest.RunResult:
    plugins = ["-p", "no:randomly", "-p", "no:langsmith_plugin", "-p", "no:cacheprovider", "-W", "ignore"]
    return run.runpytest_inprocess(*plugins, plugins=[costs.Costs(is_quick=is_quick, limit=0.05)])


def test_a_dear_test_that_is_not_listed_fails_the_quick_run(run: pytest.Pytester) -> None:
    """Its own fixtures count, those of a module do not, and to wait costs nothing."""
    result = outcomes(run, is_quick=True)
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(["test_busy.py::test_dear needs 0.1 s of the processor*tests/thorough.txt*"])


def test_no_test_is_too_dear_for_the_whole_run(run: pytest.Pytester) -> None:
    outcomes(run, is_quick=False).assert_outcomes(passed=3)


def test_a_slow_processor_is_no_fault_of_a_test(run: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(costs, "slowness", lambda: 3.0)
    outcomes(run, is_quick=True).assert_outcomes(passed=3)


def test_a_line_for_a_test_that_is_gone_is_an_error(request: pytest.FixtureRequest) -> None:
    file = Path(__file__).name
    items = [request.node] if isinstance(request.node, pytest.Item) else []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(thorough, "listed", lambda: {file: {"test_that_was_renamed"}})
        patch.setattr(request.config, "args", ["tests"])
        with pytest.raises(pytest.UsageError, match=f"{file}::test_that_was_renamed"):
            thorough.mark(request.config, items)
        patch.setattr(thorough, "listed", lambda: {file: {request.node.name}})
        thorough.mark(request.config, items)
    assert request.node.get_closest_marker(costs.MARKER)


def test_the_list_is_sorted_and_names_files_that_are_there() -> None:
    lines = [line for line in thorough.LIST.read_text().splitlines() if not line.startswith("#")]
    assert lines == sorted(set(lines))
    assert {file for file in thorough.listed() if not (thorough.LIST.parent / file).is_file()} == set()


def test_a_step_is_measured_and_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(steps.FOLDER, str(tmp_path))
    assert steps.run("units", ["sh", "-c", "exit 3"]) == 3
    (tmp_path / "files-1.json").write_text(json.dumps({"tests/test_a.py": 2.0, "tests/test_b.py": 1.0}))
    (tmp_path / "files-2.json").write_text(json.dumps({"tests/test_b.py": 4.0}))
    lines = steps.report(tmp_path).splitlines()
    assert lines[1].split()[0] == "units"
    assert lines[1].endswith("failed with 3")
    assert [line.split() for line in lines[-2:]] == [["tests/test_b.py", "5.0"], ["tests/test_a.py", "2.0"]]


def test_what_tries_more_examples_may_need_more(run: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profiles, "THOROUGH", True)
    outcomes(run, is_quick=True).assert_outcomes(passed=2, failed=1)
    run.makepyfile(test_busy=f"from support.profiles import examples\n{BUSY}")
    outcomes(run, is_quick=True).assert_outcomes(passed=3)
