"""Arguments that strict readers with bounds refuse are written as a text, and the loss is said."""

from __future__ import annotations

import json

import msgspec
import pytest

from turnlog.formats.call_arguments import readable_arguments, unreadable
from turnlog.model import ToolCallPart


def _call(input: bytes) -> ToolCallPart:
    return ToolCallPart(tool_call_id="c", tool_name="get", input=msgspec.Raw(input))


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("9223372036854775808", "a number beyond 64 bits"),
        ("-9223372036854775809", "a number beyond 64 bits"),
        ("18446744073709552000", "a number beyond 64 bits"),
        ("1" * 5000, "a number beyond 64 bits"),
        ("1e400", "a number beyond 64 bits"),
        ("-1E+999", "a number beyond 64 bits"),
        ("NaN", "a number beyond 64 bits"),
        ("-Infinity", "a number beyond 64 bits"),
        (r'"\ud83d"', "half of a surrogate pair"),
        (r'"\\\ude00 x"', "half of a surrogate pair"),
        ("[" * 195 + "]" * 195, "nested 196 levels deep"),
        ('{"a":' * 200 + "1" + "}" * 200, "nested 201 levels deep"),
    ],
)
def test_what_readers_refuse_is_a_text_of_the_exact_json(value: str, reason: str) -> None:
    exact = f'{{"row": {value}}}'
    made = readable_arguments(_call(exact.encode()))
    assert made.loss == reason
    assert json.loads(bytes(made.json)) == {"input": exact}


@pytest.mark.parametrize(
    "value",
    [
        "9223372036854775807",
        "-9223372036854775808",
        "1e300",
        "0.12345678901234567890123",
        '"18446744073709552000 NaN 1e999"',
        r'"\ud83d\ude00"',
        r'"\\ud83d"',
        r'"[[[[\"{{{{"',
        "[" * 180 + "]" * 180,
        "[" + ",".join(["{}"] * 500) + "]",
        '1, "row": 2',
    ],
)
def test_anything_else_stays_as_it_is(value: str) -> None:
    exact = f'{{"row": {value}}}'.encode()
    made = readable_arguments(_call(exact))
    assert (made.loss, bytes(made.json)) == (None, exact)
    assert unreadable(exact) is None
