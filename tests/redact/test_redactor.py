"""Secrets in every field of every kind of value are gone; what is exported keeps its shape and its other bytes."""

import base64
import json
import types
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.model_values import ROOTS, values_of
from support.secret_examples import EXAMPLES
from turnlog.model import FilePart, Message, Part, TextPart, ToolCallPart
from turnlog.model.base import Value
from turnlog.model.codec import encode, to_json
from turnlog.redact import Masked, Redactor
from turnlog.redact.masking import find_secrets
from turnlog.redact.views import unmarked

SECRET = EXAMPLES["github-token"].secret
MASK = "[REDACTED:github-token]"
DATA = Path(__file__).parent.parent / "data"

_JSON: dict[str, Any] = {"deep": [{"text": f"a {SECRET} b"}], SECRET: 1, "inner": json.dumps({"token": SECRET})}

_FILLED: dict[Any, Any] = {
    str: f"said {SECRET} and more",
    bytes: f"said {SECRET}".encode(),
    int: 3,
    float: 0.5,
    bool: True,
    datetime: datetime(2026, 11, 20, tzinfo=UTC),
    Decimal: Decimal(1),
    msgspec.Raw: to_json(_JSON),
    Any: _JSON,
}


def filled(kind: Any, depth: int = 0) -> Any:
    """A value of this type with a secret in every field that holds text."""
    if kind in _FILLED:
        return _FILLED[kind]
    if isinstance(kind, type) and issubclass(kind, Value):
        fields = {field.name: filled(field.type, depth + 1) for field in msgspec.structs.fields(kind)}
        return kind(**fields)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return next(iter(kind))
    return _filled_generic(kind, depth)


def _filled_generic(kind: Any, depth: int) -> Any:
    origin, options = get_origin(kind), get_args(kind)
    if origin is Literal:
        return options[0]
    if origin in (Union, types.UnionType):
        return filled(next(option for option in options if option is not type(None)), depth)
    if origin is tuple:
        # A part may hold results, which hold parts: one level is enough.
        return () if depth > 6 else tuple(filled(option, depth + 1) for option in _members(options[0]))
    assert origin is dict
    return {"known": filled(options[1], depth + 1)}


def _members(kind: Any) -> tuple[Any, ...]:
    union = get_origin(kind) in (Union, types.UnionType)
    return get_args(kind) if union else (kind,)


@pytest.mark.parametrize("kind", ROOTS, ids=lambda kind: kind.__name__)
def test_secrets_in_every_field_are_gone(kind: Any) -> None:
    value = filled(kind)
    assert SECRET.encode() in encode(value) or kind.__name__ == "StreamEvent"
    redactor = Redactor()
    made = redactor.redact(value)
    assert type(made) is type(value)
    for text in (encode(made), repr(made).encode()):
        assert SECRET.encode() not in text
        assert base64.b64encode(f"said {SECRET}".encode())[:40] not in text
    json.loads(encode(made))
    assert SECRET not in repr(redactor.report)
    assert {masked.rule for masked in redactor.report} == {"github-token"}
    assert Redactor().redact(made) == made


def test_the_filled_values_reach_every_kind_of_part() -> None:
    message = filled(Message)
    assert {type(part) for part in message.parts} == set(get_args(Part))
    (call,) = [part for part in message.parts if isinstance(part, ToolCallPart)]
    assert {type(part) for part in call.results[0].content} == set(get_args(Part))


@pytest.mark.parametrize("name", EXAMPLES)
def test_json_stays_json_whatever_is_masked(name: str) -> None:
    example = EXAMPLES[name]
    value = {"a": example.text, "b": json.dumps({"c": example.text, "d": json.dumps([example.text])}), "n": [1, None]}
    for data in (json.dumps(value), json.dumps(value, indent=2), json.dumps([example.text, value], ensure_ascii=False)):
        made = Redactor().redact_json(data.encode()).decode()
        assert example.secret not in made
        read: Any = json.loads(made)
        inner: Any = json.loads(read["b"] if "b" in read else read[1]["b"])
        assert f"[REDACTED:{name}]" in inner["c"]
        assert example.secret not in json.loads(inner["d"])[0]


def test_exact_json_keeps_every_other_byte() -> None:
    data = f'{{ "n": 1e400, "big": 12345678901234567890123, "u": "\\u00e9\\/",\n "key":"{SECRET}" , "z": "\\ud800" }}'
    assert Redactor().redact_json(data.encode()).decode() == data.replace(SECRET, MASK)


def test_the_name_of_a_field_reveals_a_secret() -> None:
    value = {"password": "tr0ub4dor&3", "db_password": "hunter2", "X-Api-Key": "0c9e4b5277aa4b7b9f11", "token": 12}
    kept: dict[str, Any] = {"signature": "EqQBCkYIARgCKkA0c9e4b5277aa4b7b9f11", "max_tokens": "4096a1b2c3d4e5f6"}
    made = Redactor().redact(value | kept)
    assert made == {
        "password": "[REDACTED:password]",
        "db_password": "[REDACTED:password]",
        "X-Api-Key": "[REDACTED:named-secret]",
        "token": 12,
        **kept,
    }
    exact = bytes(to_json(value | kept))
    assert json.loads(Redactor().redact_json(exact)) == made


def test_names_that_become_one_are_told_apart() -> None:
    other = EXAMPLES["github-token"].secret[::-1].replace("_phg", "")
    made = Redactor().redact({SECRET: 1, f"ghp_{other}": 2})
    assert made == {MASK: 1, f"{MASK} 2": 2}


def test_the_report_says_where_and_how_often() -> None:
    message = Message(id="m1", role="user", parts=(TextPart(text="hello"), TextPart(text=f"{SECRET} {SECRET}")))
    redactor = Redactor()
    redactor.redact(message, "m1")
    assert redactor.report == [Masked("github-token", "m1.parts[1].text", 2)]


def test_a_text_that_was_seen_before_is_masked_and_reported_again() -> None:
    """Short texts are kept with what was found in them, and what a caller does with it changes nothing."""
    find_secrets(SECRET).clear()
    redactor = Redactor()
    assert [redactor.redact(SECRET, place) for place in ("first", "second")] == [MASK, MASK]
    assert redactor.report == [Masked("github-token", "first", 1), Masked("github-token", "second", 1)]


@pytest.mark.parametrize("text", ["5 % of 100%", "%s, %d, %02x", "100%ZZ", "width: 50%;"])
def test_a_percent_sign_that_is_no_code_needs_no_second_look(text: str) -> None:
    assert unmarked(text) is None


def test_files_that_are_text_are_masked_and_images_are_not() -> None:
    image = bytes(range(256)) + SECRET.encode()
    url = "data:text/plain;base64," + base64.b64encode(f"it is {SECRET}".encode()).decode()
    parts = (FilePart(media_type="text/plain", url=url), FilePart(media_type="image/png", data=image))
    made = Redactor().redact(parts)
    assert made[0].url == "data:text/plain;base64," + base64.b64encode(f"it is {MASK}".encode()).decode()
    assert made[1] is parts[1]


@given(st.sampled_from(ROOTS).flatmap(values_of))
def test_what_holds_no_secret_is_the_same_object(value: Any) -> None:
    assert Redactor().redact(value) is value


@given(st.binary(max_size=60))
def test_bytes_that_are_no_json_do_not_stop_it(data: bytes) -> None:
    assert Redactor().redact_json(data) == data


LOGS = sorted(path for path in DATA.rglob("*") if path.is_file() and path.suffix in (".jsonl", ".json", ".txt", ".md"))


def test_recorded_logs_hold_no_secret() -> None:
    assert LOGS
    found: Mapping[Path, list[Masked]] = {path: _masked(path) for path in LOGS}
    assert {path.name: report for path, report in found.items() if report} == {}


def _masked(path: Path) -> list[Masked]:
    redactor = Redactor()
    redactor.redact_json(path.read_bytes(), path.name)
    return redactor.report
