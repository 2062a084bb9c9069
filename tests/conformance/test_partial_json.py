"""JSON that is cut off anywhere is read as the real `parsePartialJson` reads it, in one go and piece by piece."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest
from msgspec import UNSET

from support.ai_sdk_judge import VERSIONS, Judge, as_javascript_has_it
from support.ai_sdk_streams import INPUTS
from support.ai_sdk_values import any_json
from turnlog.aisdk import PartialJson, parse_partial_json

SEED = 20261123
ODD = (
    "",
    " ",
    "-",
    "nullx",
    "nul",
    "tru,",
    "[1 2",
    "[ x",
    "[x]",
    "[,1",
    "{,",
    '{"a"',
    '{"a":',
    '{"a":-',
    '{"a":1.',
    '{"a":1e',
    '{"a":1}}',
    '{"a":1} x',
    '{"a" 1}',
    '"\\',
    '"\\u',
    '"\\u00',
    '"\\u00z',
    '"\\u12ab',
    '{"a\\":x": 1}',
    "1.0",
    "01",
    "1E+5",
    "[1E+5",
    "[tru]",
    '{"a":fals}',
    "[[[[",
    '{"":{"":""',
    "[1,]",
    "\ufeff1",
    '"\t"',
    "NaN",
    "[-Infinity",
    '{"a":[1,{"b":"c',
    '{"__proto__":1',
    '{"constructor":{"prototype":1',
    "\ud83d",
    '"\ud83d',
    "[true ",
    "[true x",
    '["a" "b"',
    "{}x",
    "[]]",
)


def texts() -> list[str]:
    random = Random(SEED)
    whole = [
        *INPUTS,
        *(json.dumps(any_json(random, 4), ensure_ascii=False, indent=random.choice((None, 1))) for _ in range(300)),
    ]
    cut = [text[: random.randrange(len(text) + 1)] for text in whole for _ in range(4)]
    broken = [text.replace(random.choice(text), random.choice('{}[]",:x \\'), 1) for text in cut if text]
    prefixes = [text[:end] for text in INPUTS for end in range(len(text) + 1)]
    return [*ODD, *whole, *cut, *broken, *prefixes]


def in_pieces(text: str, random: Random, version: int) -> PartialJson:
    partial = PartialJson(version=version)
    position = 0
    while position < len(text):
        size = random.randrange(1, 5)
        partial.feed(text[position : position + size])
        position += size
    return partial


def shown(value: Any) -> str:
    return "nothing" if value is UNSET else as_javascript_has_it(value)


@pytest.mark.parametrize("version", VERSIONS)
def test_cut_off_json(judge: Judge, version: int) -> None:
    random = Random(SEED)
    inputs = texts()
    differing: list[str] = []
    for text, answer in zip(inputs, judge.ask("partial", version, inputs), strict=True):
        theirs = f"{answer['state']} {shown(answer.get('value', UNSET))}"
        result = parse_partial_json(text, version=version)
        mine = f"{result.state} {shown(result.value)}"
        value = in_pieces(text, random, version).value()
        if mine != theirs or shown(value) != shown(result.value):
            differing.append(f"{text!r}\nours   {mine}\npieces {value!r}\ntheirs {theirs}")
    assert len(differing) == 0, f"{len(differing)} of {len(inputs)}\n" + "\n\n".join(differing[:5])
