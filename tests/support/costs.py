"""CPU seconds of tests: sums of each file for a report, and a limit for tests of the quick run.

CPU, not wall: it hardly depends on what else runs. A test's own is that of this process and of children that have ended
meanwhile; a server that many tests share counts for the run alone.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import time
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from support import profiles

LIMIT: Final = 3.0 if profiles.THOROUGH else 1.5
"""CPU seconds that a test of the quick run may need on a quiet machine.

Twice as much with the thorough profile, which continuous integration has: its machines are not quiet.
"""

MARKER: Final = "thorough"

SERVERS: Final = "(servers that many files use)"

_PROPERTY: Final = "cpu"

_AT_END: Final = "cpu at the end"

_LOOP_SECONDS: Final = 0.004
"""CPU seconds of `_loop` on a quiet machine."""

_spent_for_all = 0.0
_is_for_all = False


def cpu_seconds() -> float:
    """CPU seconds of this process, and of its children that have ended."""
    own, ended = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return own.ru_utime + own.ru_stime + ended.ru_utime + ended.ru_stime


@contextmanager
def for_all() -> Generator[None]:
    """What is made once for all tests of a process is not a cost of the one that happens to be the first."""
    global _spent_for_all, _is_for_all
    if _is_for_all:
        yield
        return
    _is_for_all, start = True, cpu_seconds()
    try:
        yield
    finally:
        _spent_for_all += cpu_seconds() - start
        _is_for_all = False


def slowness() -> float:
    """How many times as long as on a quiet machine the processor takes now; at least 1."""
    return max(1.0, statistics.median(_loop() for _ in range(5)) / _LOOP_SECONDS)


def _loop() -> float:
    start = time.process_time()
    texts = {str(number): number for number in range(20_000)}
    sum(texts[text] for text in sorted(texts))
    return time.process_time() - start


def _tries_more(item: pytest.Item) -> bool:
    """Whether a test tries more examples than in a quick run."""
    if not profiles.THOROUGH:
        return False
    module: dict[str, Any] = dict(vars(getattr(item, "module", None) or object))
    knows_profile = any(getattr(value, "__module__", None) == profiles.__name__ for value in module.values())
    return knows_profile or "THOROUGH" in module or hasattr(getattr(item, "obj", None), "hypothesis")


class Costs:
    """The plugin: measures each test, fails one that is too dear for a quick run, and sums up by file."""

    def __init__(self, *, is_quick: bool, limit: float = LIMIT) -> None:
        self._is_quick = is_quick
        self._limit = limit
        self._of_test = 0.0
        self._of_whole = 0.0
        self._of_end = 0.0
        self._files: Counter[str] = Counter()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self) -> Generator[None, Any, Any]:
        """Begin to measure a test."""
        self._of_test, self._of_whole = 0.0, cpu_seconds()
        return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any]) -> Generator[None, Any, Any]:
        """Count what only this test gets; all else is made for several tests."""
        start, before = self._spent(), self._of_test
        if fixturedef.scope != "function":
            with for_all():
                return (yield)
        result = yield
        # One that asks for another one has counted that already.
        self._of_test = before + self._spent() - start
        return result

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self) -> Generator[None, Any, Any]:
        """Count the body of a test."""
        # Fixtures that the body asks for are part of it, and not counted twice.
        start, of_setup = self._spent(), self._of_test
        try:
            return (yield)
        finally:
            self._of_test = of_setup + self._spent() - start

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, nextitem: pytest.Item | None) -> Generator[None, Any, Any]:
        """Keep apart what ends with the last test: servers, whose time is known only then."""
        start = cpu_seconds()
        try:
            return (yield)
        finally:
            self._of_end = 0.0 if nextitem is not None else cpu_seconds() - start

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Fail what passed, but takes too long for a quick run; tell the process that reports what a test cost."""
        report = yield
        if call.when == "teardown":
            spent = cpu_seconds() - self._of_whole
            report.user_properties += [(_PROPERTY, spent - self._of_end), (_AT_END, self._of_end)]
        limit = self._limit * (profiles.QUICK_SHARE if _tries_more(item) else 1)
        is_dear = self._is_quick and call.when == "call" and self._of_test > limit
        if is_dear and report.outcome == "passed" and item.get_closest_marker(MARKER) is None:
            seconds = self._of_test / slowness()
            if seconds > limit:
                report.outcome = "failed"
                report.longrepr = (
                    f"{item.nodeid} needs {seconds:.1f} s of the processor; a test of the quick run may need {limit}:"
                    " make it cheaper, or add it to tests/thorough.txt and keep a small one of its kind"
                )
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Sum up by file, in the process that reports."""
        if report.when == "teardown":
            seconds: dict[str, Any] = dict(report.user_properties)
            self._files[report.nodeid.partition("::")[0]] += seconds.get(_PROPERTY, 0.0)
            self._files[SERVERS] += seconds.get(_AT_END, 0.0)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Leave the sums for `support.steps`."""
        folder = os.environ.get("TURNLOG_COSTS")
        if folder is not None and not hasattr(session.config, "workerinput"):
            Path(folder, f"files-{os.getpid()}.json").write_text(json.dumps(self._files))

    @staticmethod
    def _spent() -> float:
        return cpu_seconds() - _spent_for_all
