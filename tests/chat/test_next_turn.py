"""What a model is sent on the next turn is what it saw before, byte for byte, whatever the page sends back."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.next_turns import PROVIDERS, next_turns
from support.profiles import examples
from turnlog.chat import ChatKeeper, MemoryKeeper, NativeKeeper


@pytest.fixture(params=["memory", "native"])
def keeper(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ChatKeeper]:
    if request.param == "memory":
        yield MemoryKeeper()
        return
    native = NativeKeeper(tmp_path / "turnlog.db")
    yield native
    native.close()


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_request_begins_with_the_one_before_it(
    keeper: ChatKeeper, provider: str, caplog: pytest.LogCaptureFixture
) -> None:
    # Some tools of these conversations fail.
    caplog.set_level(logging.CRITICAL)
    found = asyncio.run(next_turns(provider, keeper, range(examples(20))))
    assert found.pairs > examples(20)
    assert found.wrong == []
