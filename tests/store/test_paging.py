"""Cursors come back from anybody: what a list did not hand out is refused, and never reaches the database."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from turnlog.store.sqlite.reading import check_limit, decode_cursor, encode_cursor

SHAPE = (int | None, int, str)


def crafted(*values: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(values).encode()).decode()


@pytest.mark.parametrize("values", [[1, 2, "x"], [None, -2, ""], [(1 << 63) - 1, -(1 << 63), "\U0001f600"]])
def test_a_cursor_gives_back_its_values(values: list[Any]) -> None:
    assert decode_cursor("list", SHAPE, encode_cursor("list", *values)) == values
    assert decode_cursor("list", SHAPE, None) is None


@pytest.mark.parametrize(
    "cursor",
    [
        crafted("list", {}, 2, "x"),
        crafted("list", 1, [2], "x"),
        crafted("list", 1, 2, 3),
        crafted("list", 1, None, "x"),
        crafted("list", 1.5, 2, "x"),
        crafted("list", 1 << 63, 2, "x"),
        crafted("list", 1, -(1 << 63) - 1, "x"),
        crafted("list", 1, 2, "\ud800"),
        crafted("list", 1, 2),
        crafted("other", 1, 2, "x"),
        crafted(),
        base64.urlsafe_b64encode(b"[" * 100_000).decode(),
        base64.urlsafe_b64encode(b"[" + b"9" * 5000 + b"]").decode(),
        base64.urlsafe_b64encode(b"{}").decode(),
        "\u00e9",
        "=",
    ],
    ids=[f"{number}" for number in range(16)],
)
def test_what_somebody_made_up_is_a_value_error(cursor: str) -> None:
    with pytest.raises(ValueError, match="is not a cursor"):
        decode_cursor("list", SHAPE, cursor)


@pytest.mark.parametrize("limit", [0, (1 << 63) - 1, 10**30])
def test_a_limit_that_no_page_can_have_is_a_value_error(limit: int) -> None:
    with pytest.raises(ValueError, match="limit cannot be"):
        check_limit(limit)
