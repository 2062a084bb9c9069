"""The fixture that the package brings to pytest: what it plays, and how a test fails with it (R-S42)."""

from __future__ import annotations

import re
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from support.cassette_histories import recorded
from turnlog.cassette.tape import to_json

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parent.parent.parent
OUTPUT = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)

ASK = """
import json, urllib.error, urllib.request

def ask(player, *texts):
    body = {"messages": [{"role": role, "content": text} for role, text in zip(["user", "assistant"] * 9, texts)]}
    request = urllib.request.Request(f"{player.url}/v1/messages", json.dumps(body).encode())
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.load(answer)["content"][-1]
"""


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A folder with a cassette and a client."""
    # Each run imports it again, which takes a second.
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p no:langsmith_plugin")
    pytester.path.joinpath("cassettes").mkdir()
    pytester.path.joinpath("cassettes/bug.json").write_bytes(to_json(recorded().cassette))
    pytester.makeconftest(ASK)
    return pytester


def run_pytest(run: pytest.Pytester) -> pytest.RunResult:
    return run.runpytest_inprocess("-p", "turnlog.cassette.plugin", "-p", "no:randomly")


def test_it_plays(run: pytest.Pytester) -> None:
    run.makepyfile(
        """
        from conftest import ask

        def test_it(turnlog_cassette):
            player = turnlog_cassette("cassettes/bug.json", partial=True)
            assert ask(player, "Fix the bug")["name"] == "Bash"
        """
    )
    run_pytest(run).assert_outcomes(passed=1)


def test_a_test_that_left_the_recording_fails_though_it_caught_the_error(run: pytest.Pytester) -> None:
    run.makepyfile(
        """
        import urllib.error
        from conftest import ask

        def test_it(turnlog_cassette):
            try:
                ask(turnlog_cassette("cassettes/bug.json"), "Fix the bag")
            except urllib.error.HTTPError as error:
                error.close()
        """
    )
    result = run_pytest(run)
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(
        ["cassette bug.json: request 1 is not the recorded one*", "-user: Fix the bug", "+user: Fix the bag"]
    )
    result.stdout.no_fnmatch_line("*were not asked for*")


def test_answers_that_are_left_over_fail_unless_that_is_meant(run: pytest.Pytester) -> None:
    run.makepyfile(
        """
        from conftest import ask

        def test_it(turnlog_cassette):
            ask(turnlog_cassette("cassettes/bug.json"), "Fix the bug")
        """
    )
    result = run_pytest(run)
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["cassette bug.json: 2 of 3 answers of plain:3f2a were not asked for"])


def test_ignored_and_aside(run: pytest.Pytester) -> None:
    run.makepyfile(
        """
        from conftest import ask

        def test_it(turnlog_cassette):
            player = turnlog_cassette("cassettes/bug.json", ignore=["[0-9]+"], aside="A title", partial=True)
            assert ask(player, "name it")["text"] == "A title"
            assert ask(player, "Fix 12 the bug 13")["name"] == "Bash"
        """
    )
    run_pytest(run).assert_outcomes(passed=1)


def test_a_file_that_is_missing_is_an_error_of_the_test(run: pytest.Pytester) -> None:
    run.makepyfile("def test_it(turnlog_cassette): turnlog_cassette('cassettes/none.json')")
    result = run_pytest(run)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*SourceError: *none.json: it cannot be read: No such file or directory"])


def test_the_page_is_true(run: pytest.Pytester) -> None:
    """The test that docs/how-to/cassettes.md shows passes as it is."""
    (shown, *_) = OUTPUT.findall((ROOT / "docs/how-to/cassettes.md").read_text())
    run.path.joinpath("cassettes/fix-the-bug.json").write_bytes(to_json(recorded().cassette))
    run.path.joinpath("my_agent.py").write_text((ROOT / "tests/support/cassette_agent_of_the_page.py").read_text())
    run.makepyfile(shown)
    run_pytest(run).assert_outcomes(passed=1)


def test_an_installed_turnlog_brings_it() -> None:
    text = (ROOT / "pyproject.toml").read_text()
    (name, target) = re.findall(r'\[project\.entry-points\.pytest11\]\n(?:#.*\n)*"(.*)" = "(.*)"', text)[0]
    # pytest loads a plugin of one name once, however often it is named.
    assert name == target == EntryPoint(name, target, "pytest11").load().__name__


def test_pytest_runs_without_it_pay_nothing(run: pytest.Pytester) -> None:
    run.makepyfile(
        """
        import sys

        def test_it():
            assert [name for name in sys.modules if name.split(".")[0] in ("msgspec", "orjson")] == []
            assert "turnlog.cassette.player" not in sys.modules
        """
    )
    others = ("-p", "no:randomly", "-p", "no:langsmith_plugin")
    result = run.run(sys.executable, "-m", "pytest", "-p", "turnlog.cassette.plugin", *others, "-q")
    result.assert_outcomes(passed=1)
