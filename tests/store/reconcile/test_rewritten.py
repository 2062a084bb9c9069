"""How a file that was written anew has the parts of a message."""

from __future__ import annotations

import time

import msgspec
import pytest

from turnlog.model import Message, ToolCallPart
from turnlog.store.reconcile.rewritten import compare


def calls(*inputs: bytes) -> Message:
    """A message of a broken model, which gives all its calls one id."""
    parts = [
        ToolCallPart(id=f"m.{number}", tool_call_id="call_0", tool_name="Bash", input=msgspec.Raw(each))
        for number, each in enumerate(inputs)
    ]
    return Message(id="m", role="assistant", parts=tuple(parts))


@pytest.mark.parametrize(
    ("now", "is_edited"),
    [
        ([b'{"b":2,"a":1}', b'{"a":2}'], False),
        ([b'{"a":2}', b'{"a":1,"b":2}'], False),
        ([b'{"a":2}', b'{"a":1,"b":3}'], True),
        ([b'{"a":2}', b'{"a":2}'], True),
        ([b"1e400", b'"\\ud800"', b"123456789012345678901234567890", b'{"a":2}', b'{"a":1,"b":2}'], False),
    ],
)
def test_each_call_of_one_id_is_a_call_with_the_same_input(now: list[bytes], is_edited: bool) -> None:
    assert compare(calls(b'{"a":1,"b":2}', b'{"a":2}'), calls(*now)).is_edited is is_edited


def test_thousands_of_calls_of_one_id_are_compared_in_time() -> None:
    """R-S23: where each were compared with all others, it would take four seconds."""
    inputs = [b'{"command":%d}' % number for number in range(2000)]
    before, now = calls(*inputs), calls(*reversed(inputs))
    began = time.process_time()
    assert not compare(before, now).is_edited
    assert time.process_time() - began < 1
