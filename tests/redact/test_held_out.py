"""Redaction on the second table, whose lines the rules were not written for: what it finds and what it misses."""

import json

import pytest

from support.held_out_innocents import held_out_innocents
from support.held_out_secrets import HELD_OUT_PLACES, held_out_secrets
from support.log_places import is_left
from support.secret_kinds import Secret
from turnlog.redact import Redactor, mask_text

KINDS = list(held_out_secrets())
INNOCENTS = list(held_out_innocents())

EVERYWHERE = list(HELD_OUT_PLACES)
LINES_APART = ["search result", "URL-encoded"]

MISSED = {
    "commands: net user": EVERYWHERE,
    "commands: htpasswd command": ["URL-encoded"],
    "commands: expect": ["JSON in JSON", "diff, removed", "Python repr", "URL-encoded"],
    "settings: Kubernetes data": ["JSON in JSON"],
    "settings: Kubernetes env": LINES_APART,
    "settings: Kubernetes env reversed": LINES_APART,
    "settings: Terraform variable": LINES_APART,
    "settings: CloudFormation": ["numbered tool output", "diff, added", "diff, removed", "quote", *LINES_APART],
    "settings: Gradle store": ["quote"],
    "settings: Android strings": ["JSON in JSON"],
    "settings: plist": LINES_APART,
    "settings: INI pass": ["URL-encoded"],
    "settings: rclone": ["URL-encoded"],
    "settings: tab": ["URL-encoded"],
    "protocols: Netscape cookies": ["URL-encoded"],
    "protocols: multipart": ["URL-encoded"],
    "protocols: FTP session": ["diff, added", "URL-encoded"],
}
"""Kind -> places where its secret stays."""


def redacted(content: str, ending: str) -> str:
    if ending == "json":
        made = Redactor().redact_json(content.encode()).decode()
        json.loads(made)
        return made
    return mask_text(content)


@pytest.mark.parametrize("secret", KINDS, ids=lambda secret: secret.kind)
def test_a_secret_in_a_line_of_another_author_is_gone(secret: Secret) -> None:
    left = [
        place
        for place, (ending, make) in HELD_OUT_PLACES.items()
        if is_left(secret.secret, redacted(make(secret.text), ending))
    ]
    assert left == MISSED.get(secret.kind, [])


@pytest.mark.parametrize("text", [text for _, text in INNOCENTS], ids=[text[:40] for _, text in INNOCENTS])
def test_an_innocent_line_of_another_author_stays(text: str) -> None:
    for ending, make in HELD_OUT_PLACES.values():
        assert redacted(make(text), ending) == make(text)


def test_the_second_table_is_broad() -> None:
    assert len(KINDS) >= 150
    assert len(INNOCENTS) >= 150


@pytest.mark.parametrize("sign", "!.-_@#%")
def test_a_sign_does_not_end_a_password(sign: str) -> None:
    for password in (f"kTbQzWq7{sign}mXcRv23", f"7hQ{sign}xZpLmnWq", f"Ab{sign}3kTyWq9LmR"):
        assert password not in mask_text(f"A=1\nDB_PASSWORD={password}\nB=2\n")
        assert password[-6:] not in mask_text(f"A=1\nDB_PASSWORD={password}\nB=2\n")
