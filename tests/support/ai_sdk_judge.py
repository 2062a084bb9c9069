"""Calls the real AI SDK 5, 6 and 7: one node process for all questions of a test process.

The operations are in `tests/conformance/judge.mjs`.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import pytest

FOLDER = Path(__file__).parents[1] / "conformance"
VERSIONS = (5, 6, 7)
_BATCH = 250
_LARGEST_EXACT = 2**53


class Judge:
    """The node process; `ask` is all there is."""

    def __init__(self) -> None:
        if not (FOLDER / "node_modules" / "ai7").is_dir():
            raise FileNotFoundError(f"the judges are not installed: npm ci in {FOLDER}, or make pytest")
        environment = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
        self._process = subprocess.Popen(
            ["node", "judge.mjs"],
            cwd=FOLDER,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def ask(self, operation: str, version: int, items: Sequence[Any]) -> list[Any]:
        """The results for the items, in their order; `b"…"` items are JSON as they are."""
        results: list[Any] = []
        for start in range(0, len(items), _BATCH):
            results.extend(self._ask(operation, version, items[start : start + _BATCH]))
        return results

    def _ask(self, operation: str, version: int, items: Sequence[Any]) -> list[Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        texts = b",".join(item if isinstance(item, bytes) else json.dumps(item).encode() for item in items)
        question = b'{"op":"%s","version":%d,"items":[%s]}\n' % (operation.encode(), version, texts)
        self._process.stdin.write(question)
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, f"the judge fell silent at {operation} {version}"
        return json.loads(answer)["results"]

    def close(self) -> None:
        self._process.communicate(timeout=10)


@pytest.fixture(scope="session")
def judge() -> Iterator[Judge]:
    """The real AI SDK."""
    process = Judge()
    yield process
    process.close()


def sse(chunks: Sequence[str]) -> str:
    """A stream of chunks, given as JSON, as a browser receives it."""
    return "".join(f"data: {chunk}\n\n" for chunk in chunks) + "data: [DONE]\n\n"


def as_javascript_has_it(value: Any) -> str:
    """One text for values that are the same JSON to JavaScript: sorted keys, its numbers, null for what is none."""
    return json.dumps(_javascript(value), sort_keys=True)


def assert_same_in_javascript(found: Any, wanted: Any, what: str) -> None:
    """Two values are the same JSON to JavaScript; `what` names them in the failure."""
    # What is the same text need not be looked at number by number, which takes Python most of such a test.
    if json.dumps(found, sort_keys=True) != json.dumps(wanted, sort_keys=True):
        assert as_javascript_has_it(found) == as_javascript_has_it(wanted), what


def _javascript(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _javascript(item) for key, item in cast("dict[str, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [_javascript(item) for item in cast("list[Any]", value)]
    if isinstance(value, float):
        return _javascript_number(value)
    if isinstance(value, int) and abs(value) > _LARGEST_EXACT:
        return _javascript_number(float(value))
    return value


def _javascript_number(value: float) -> float | int | None:
    if not math.isfinite(value):
        return None
    return int(value) if value == int(value) else value
