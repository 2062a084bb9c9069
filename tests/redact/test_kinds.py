"""Every kind of secret is gone from every place of a log, and what only looks like one stays byte for byte.

The benchmark `redaction.py` measures the same tables beside other scanners, also with other seeds.
"""

import json

import pytest

from support.innocent_texts import innocents
from support.log_places import PLACES, is_left, png_with
from support.secret_kinds import Secret, secrets
from turnlog.model import FilePart
from turnlog.redact import Redactor, mask_text

KINDS = list(secrets())
INNOCENTS = list(innocents())


MISSED = {"Google refresh token": ["cut by a line's end"]}
"""Kind -> places where this seed's secret stays: behind the cut it has no digit and reads like words."""


def secret_of(kind: str) -> str:
    return next(secret.secret for secret in KINDS if secret.kind == kind)


AS_TEXT = {"json": "txt"}
"""Ending of a file -> how it is read, too: JSON that a tool has printed is a text like others, escaped once more."""


def endings(ending: str) -> set[str]:
    return {ending, AS_TEXT.get(ending, ending)}


def redacted(content: str | bytes, ending: str) -> str:
    if isinstance(content, bytes):
        part = Redactor().redact(FilePart(media_type="image/png", data=content))
        assert part.data is not None
        return part.data.decode("latin-1")
    if ending == "json":
        made = Redactor().redact_json(content.encode()).decode()
        json.loads(made)
        return made
    return Redactor().redact(content)


@pytest.mark.parametrize("secret", KINDS, ids=lambda secret: secret.kind)
def test_a_secret_of_every_kind_is_gone_from_every_place(secret: Secret) -> None:
    left: list[str] = []
    for place, (ending, make) in PLACES.items():
        content = make(secret)
        if content is not None and any(is_left(secret.secret, redacted(content, each)) for each in endings(ending)):
            left.append(place)
    assert left == MISSED.get(secret.kind, [])


@pytest.mark.parametrize(("table", "text"), INNOCENTS, ids=[text[:40] for _, text in INNOCENTS])
def test_what_only_looks_like_a_secret_stays(table: str, text: str) -> None:
    for ending, make in PLACES.values():
        content = make(Secret(table, "snippet", text, ""))
        if content is not None:
            shown = content.decode("latin-1") if isinstance(content, bytes) else content
            assert {redacted(content, each) for each in endings(ending)} == {shown}


def test_the_tables_are_broad() -> None:
    assert len({secret.kind for secret in KINDS}) >= 200
    assert len({text for _, text in INNOCENTS}) >= 200


def test_the_rest_of_a_picture_stays() -> None:
    secret = secret_of("GitHub token")
    before, after = png_with(f"Comment\0{secret}".encode()), png_with(b"Comment\0[REDACTED:github-token]")
    assert Redactor().redact(before) == after
    clean = png_with(b"Comment\0a cat")
    assert Redactor().redact(clean) is clean
    assert Redactor().redact(before[:60]) == before[:60]


def test_the_name_beside_a_value_says_it() -> None:
    for shown in ({"name": "DB_PASSWORD", "value": "tr0ub4dor&3"}, {"key": "DB_PASSWORD", "value": "tr0ub4dor&3"}):
        made = {**shown, "value": "[REDACTED:password]"}
        assert Redactor().redact([shown, {"name": "LEVEL", "value": "tr0ub4dor&3"}]) == [
            made,
            {"name": "LEVEL", "value": "tr0ub4dor&3"},
        ]
        assert json.loads(Redactor().redact_json(json.dumps([shown]).encode())) == [made]


def test_two_secrets_that_overlap_are_one() -> None:
    session, token = secret_of("generic token"), secret_of("GitHub token")
    assert mask_text(f"Cookie: sid={session}; gh={token}\n") == "Cookie: [REDACTED:github-token]\n"


def test_a_word_behind_a_token_at_a_lines_end_stays() -> None:
    token = secret_of("GitHub token")
    assert mask_text(f"it is {token}\nThen go on.") == "it is [REDACTED:github-token]\nThen go on."
