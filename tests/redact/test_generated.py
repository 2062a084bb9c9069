"""Passwords made of letters, digits and signs are masked whole; variables, types and lines of code are not."""

import json
import time
from collections.abc import Callable
from html import escape

import pytest

from turnlog.redact import Redactor, mask_text
from turnlog.redact.masking import find_secrets

GENERATED = (
    'RiNTN9~Ox98"whGcTZc(',
    "UW=b5f\\x}zpF7S$T",
    "k9<Lm2>Pq8Zz&4wQ",
    "$7hQ[w2}Rt9;Lm4",
    "`B0JxX,ujr}}4Kq",
    "(Ab9cd7Ef2x!Qz",
    "d(C4#+DSD{C",
    "%A<3cCcYs",
    'üe7G4"OW2vwED',
    "6äCPv<I9NMüé0NA",
)

WRITTEN: dict[str, Callable[[str], str]] = {
    "JSON": lambda value: json.dumps({"user": "ana", "password": value, "port": 5432}),
    "JSON in a string": lambda value: json.dumps(json.dumps({"user": "ana", "password": value, "port": 5432})),
    "Python": lambda value: f"password = {value!r}\nport = 5432\n",
    "a shell": lambda value: f"export DB_PASSWORD='{value}'\nexport PORT=5432\n",
    "YAML": lambda value: f"password: {value}\nport: 5432\n",
}


@pytest.mark.parametrize("value", GENERATED)
@pytest.mark.parametrize("form", WRITTEN)
def test_a_generated_password_is_masked_up_to_its_own_end(form: str, value: str) -> None:
    text = WRITTEN[form](value)
    made = mask_text(text)
    assert "[REDACTED:password]" in made
    assert "5432" in made
    pieces = [value[at : at + 5] for at in range(len(value) - 4)]
    assert [piece for piece in pieces if piece in made] == []


@pytest.mark.parametrize("value", ["\u00c4@TzxS!\u00e92", "4P5>z\u00f6x.\u00e9"])
@pytest.mark.parametrize("form", ["JSON", "JSON in a string"])
def test_a_short_one_is_masked_where_json_writes_its_letters_as_numbers(form: str, value: str) -> None:
    made = mask_text(WRITTEN[form](value))
    assert "5432" in made
    assert [piece for piece in (value[:2], value[2:5], value[-4:-1]) if piece in made] == []


@pytest.mark.parametrize("value", GENERATED)
def test_it_is_masked_as_the_value_of_a_field(value: str) -> None:
    assert Redactor().redact({"password": value}) == {"password": "[REDACTED:password]"}


def _twice(value: str) -> str:
    return json.dumps(json.dumps(value))


@pytest.mark.parametrize("value", ["k9Lm2Pq8&Zz4", 'Q7"xvRH47\\bp9', "Gr\u00fc\u00dfe9Wort7"])
@pytest.mark.parametrize("form", [json.dumps, _twice, escape])
def test_a_known_value_is_masked_in_other_notations(form: Callable[[str], str], value: str) -> None:
    redactor = Redactor()
    redactor.learn({"password": value})
    made = redactor.redact(f"so {form(value)} is it")
    assert form(value).strip('"') not in made
    assert "[REDACTED:password]" in made


def test_a_value_that_was_escaped_is_known_as_it_is() -> None:
    redactor = Redactor()
    redactor.learn("<password>k9Lm2&amp;Pq8Zz</password>")
    assert "Pq8Zz" not in redactor.redact("so k9Lm2&Pq8Zz is it")


@pytest.mark.parametrize(
    "code",
    [
        "const firstToken = _roleValue$split[0];",
        "  token: Foo1<Bar>?",
        '{"grant_type": "refresh_token", "refresh_token": refresh_token}',
        'headers = {"Authorization": auth_token}',
        "const user = {name, password: hashedPassword}",
        "x = {password: form_password1}",
        "private_key: ed25519.Ed25519PrivateKey, data",
        "key_type = rust_openssl.hpke.MLKEM768X25519PrivateKey",
        "clientCredentials: OAuthFlowClientCredentials | None = None",
        'TOKEN = "[a-zA-Z_][a-zA-Z0-9_-]*"',
        "exit|pwd|read|readonly|set|shift|",
        "from sqlglot.tokens import Token, TokenType\n\n\ndef _build_date(args: list) -> exp.Date:\n    pass",
        "from typing import Any, Token\n\nif TYPE_CHECKING:\n    from a9.b import C\n",
        "        return private_key, data\n\n    def encode_public(\n        self, key: X25519\n",
        "a utf-8 encoded string key, padding to a 8 byte\nalignment, and then a 8 byte float which is the value",
    ],
)
def test_code_stays(code: str) -> None:
    redactor = Redactor()
    redactor.learn(code)
    assert redactor.redact(code) == code


def test_many_headings_in_a_row_take_time_that_grows_with_their_number() -> None:
    took: list[float] = []
    for lines in (2_000, 12_000):
        began = time.process_time()
        assert find_secrets("a,token\n" * lines) == []
        took.append(time.process_time() - began)
    assert took[1] < 15 * took[0]


def test_a_table_right_below_another_one_is_masked_too() -> None:
    first, second, third = "name,password\nana,{}\n", "token,name\n{},ben\n", "name,count\nana,k8Lm2Pq8&Zz4\n"
    made = mask_text(first.format("k9Lm2Pq8&Zz4") + second.format("qW7zTn4kLp2x") + third)
    assert made == first.format("[REDACTED:password]") + second.format("[REDACTED:named-secret]") + third
