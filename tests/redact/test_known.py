"""What a name or context shows to be a secret is masked wherever it stands alone; words, paths and ids are not."""

from __future__ import annotations

import base64
import json
import time
from typing import Any

import msgspec
import pytest

from support.held_out_innocents import held_out_innocents
from support.innocent_texts import innocents
from turnlog.model import Message, TextPart
from turnlog.redact import KnownValues, Redactor
from turnlog.redact.known import SHORTEST_KNOWN

ENV = "DB_PASS=hunter2horse"
ALONE = "hunter2horse"


def learned(*texts: str) -> Redactor:
    redactor = Redactor()
    for text in texts:
        redactor.learn(text)
    return redactor


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "Why is {} refused?",
        "it said ({}), then stopped",
        "a={};b",
        "\x1b[31m{}\x1b[0m",
        json.dumps("the line\n{}\nends"),
        "https://shop.example/?p=1%26{}",
        "{} and again {}",
        "file_{}_old",
    ],
)
def test_a_known_password_is_masked_where_it_stands_alone(text: str) -> None:
    made = learned(ENV).redact(text.format(ALONE, ALONE))
    assert ALONE not in made
    assert "[REDACTED:password]" in made
    assert Redactor().redact(text.format(ALONE, ALONE)) == text.format(ALONE, ALONE)


@pytest.mark.parametrize("text", ["hunter2horses", "xhunter2horse", "hunter2hors", "HUNTER2HORSE"])
def test_a_part_of_another_word_stays(text: str) -> None:
    assert learned(ENV).redact(text) == text


@pytest.mark.parametrize(
    ("shown", "alone"),
    [
        ("curl -u ana:Wint3r2024x https://shop.example", "Wint3r2024x"),
        ("postgres://ana:tr0ub4dor@db.example/shop", "tr0ub4dor"),
        ("postgres://ana:p%40ss-w0rd@db.example/shop", "p@ss-w0rd"),
        ("Cookie: sid=k7QZ09rR2xLM4mWV8tB3; theme=dark", "k7QZ09rR2xLM4mWV8tB3"),
        ("SECRET_KEY=" + "9f86d081884c7d65" * 4, "9f86d081884c7d65" * 4),
        ("API_KEY=kQ7ZxLr92mWvT4bN8sPd", "kQ7ZxLr92mWvT4bN8sPd"),
    ],
)
def test_what_any_context_shows_is_known(shown: str, alone: str) -> None:
    assert alone not in learned(shown).redact(f"so {alone} is it")


@pytest.mark.parametrize(
    "shown",
    [
        *("export PGPASSWORD={}; psql", "PGPASSWORD={};psql", "API_TOKEN={},", "password: {}.", "password: {}!"),
        *("password={}?", "password: {}:", "password={}|", "PASSWORD={}&& y", "PASSWORD={}&&y", "mysql -p{};"),
        *("curl -u shop:{};", "sshpass -p {};", "$env:API_KEY={};", "{{password={}}}", "--token {};"),
    ],
)
def test_a_sign_behind_a_value_does_not_hide_the_value_alone(shown: str) -> None:
    assert learned(shown.format("Qw7zTn4kLp2")).redact("alone Qw7zTn4kLp2 here").startswith("alone [REDACTED:")


@pytest.mark.parametrize(
    "shown",
    [
        "DB_PASSWORD=abc12!x",
        "mysql -ppostgres shop",
        "mysql -pcorrect-horse shop",
        "zip -P src/shop/till2.py a.zip",
        "zip -P till2.py a.zip",
        "mysql -pnetrc2.py:18: shop",
        "docker login -p 20240615093000 registry",
        "session_key: da39a3ee5e6b4b0d3255bfef95601890afd80709",
        "API_TOKEN=3f2504e0-4f89-41d3-9a0c-0305e82c3301",
        "password: YOUR_PASSWORD_1",
    ],
)
def test_what_may_be_somewhere_by_chance_is_not_known(shown: str) -> None:
    """Short values, words, paths, numbers, hashes under a vague name, the ids of agents, placeholders."""
    assert len(learned(shown).known) == 0


def test_a_token_with_its_own_shape_needs_no_memory() -> None:
    assert len(learned("API_KEY=ghp_a1B2c3D4e5F6g7H8i9J0kLmNoPqRsTuVwXyZ").known) == 0


def test_no_innocent_text_is_masked_once_all_of_them_were_learned() -> None:
    texts = [text for source in (innocents, held_out_innocents) for _, text in source(1)]
    redactor = learned(*texts)
    assert [text for text in texts if redactor.redact(text) != text] == []


def test_every_kind_of_value_is_searched_and_ids_stay_apart() -> None:
    redactor = learned(ENV, "ADMIN_PASS=horse5hunter")
    value: dict[str, Any] = {
        "title": ALONE,
        ALONE: 1,
        "raw": msgspec.Raw(b'{"a": "\\u0068unter2horse", "hunter2horse": 1}'),
    }
    made = redactor.redact(value)
    assert ALONE not in msgspec.json.encode(made).decode() + str(json.loads(bytes(made["raw"])))
    url = "data:text/plain;base64," + base64.b64encode(f"it is {ALONE}".encode()).decode()
    assert ALONE.encode() not in base64.b64decode(redactor.redact(url).partition(",")[2])
    message = Message(id=ALONE, role="user", parts=(TextPart(id="horse5hunter", text=ALONE),))
    kept = redactor.redact(message)
    assert (kept.id, kept.parts[0]) == (ALONE, TextPart(id="horse5hunter", text="[REDACTED:password]"))


def test_learning_reports_and_changes_nothing() -> None:
    redactor, value = Redactor(), {"text": ENV}
    assert redactor.learn(value)
    assert (value, redactor.report) == ({"text": ENV}, [])
    assert not redactor.learn({"text": "words " * 100})


def test_a_long_text_that_was_clean_is_searched_for_what_came_later() -> None:
    text = f"{'words ' * 100}{ALONE}"
    raw = msgspec.Raw(json.dumps({"text": text}).encode())
    redactor = Redactor()
    for value in (text, raw, ENV):
        redactor.learn(value)
    assert ALONE not in redactor.redact(text)
    assert ALONE.encode() not in bytes(redactor.redact(raw))


@pytest.mark.parametrize("left", range(4, len(ALONE)))
def test_the_beginning_of_a_known_value_at_the_end_of_a_cut_text_is_masked(left: int) -> None:
    for ending in ("", "…"):
        assert learned(ENV).redact_cut(f"so it is {ALONE[:left]}{ending}") == f"so it is [REDACTED:cut]{ending}"


def test_of_two_values_with_the_same_beginning_the_longer_one_is_masked() -> None:
    known = KnownValues()
    for value in ("hunter2horse", "hunter2horse-battery", "hunter2h"):
        known.add(value, "password")
    assert known.mask("hunter2horse-battery hunter2h hunter2horse-") == (
        "[REDACTED:password] [REDACTED:password] [REDACTED:password]-"
    )
    assert len("hunter2h") == SHORTEST_KNOWN


def test_thousands_of_values_with_one_beginning_take_no_longer() -> None:
    text = " ".join(["hunter2h-none", "hunter2horse0"] * 2_000)
    took: list[float] = []
    for count in (100, 6_000):
        known = KnownValues()
        for number in range(count):
            known.add(f"hunter2horse{number}", "password")
        began = time.process_time()
        assert len(known.find(text)) == 2_000
        took.append(time.process_time() - began)
    assert took[1] < 8 * took[0]


@pytest.mark.parametrize("count", [9, 900])
def test_many_values_are_found_and_no_part_of_another_word(count: int) -> None:
    known = KnownValues()
    for number in range(count):
        known.add(f"{number}-hunter2horse", "password")
    last = f"{count - 1}-hunter2horse"
    assert known.mask(f"{last}! x{last} {count}-hunter2horse") == f"[REDACTED:password]! x{last} {count}-hunter2horse"
    assert known.mask(f"so it is {last[:6]}", is_cut=True) == "so it is [REDACTED:cut]"
