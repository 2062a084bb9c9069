"""What could be a piece of a secret where a text was cut is masked; words, paths and numbers stay."""

from __future__ import annotations

import pytest

from turnlog.redact import mask_cut_text

SECRETS = {
    "GitHub": ("clone with ", "ghp_a1B2c3D4e5F6g7H8i9J0kLmNoPqRsTuVwXyZ"),
    "AWS": ("use ", "AKIAZ7Q3M5X2P9L4K8RT"),
    "name": ("set API_KEY=", "q7ZT09rR2xLM4mWV8tB3"),
    "password": ("the password: ", "mT4!kQz8vRw2xY"),
    "header": ("Authorization: Bearer ", "k7QZ09rR2xLM4mWV8tB3cD5fG6"),
    "address": ("open postgres://bob:", "s3cReTpA55w0rD"),
    "base64": ("decode ", "Z2hwX2ExQjJjM0Q0ZTVGNmc3SDhpOUowa0xtTm9QcVJzVHVWd1h5Wg"),
}


@pytest.mark.parametrize("kind", SECRETS)
@pytest.mark.parametrize("ending", ["", "…", " ..."])
def test_a_cut_secret_leaves_less_than_sixteen_of_its_characters(kind: str, ending: str) -> None:
    before, secret = SECRETS[kind]
    most = 15 if kind == "base64" else 7
    for end in range(most + 1, len(secret)):
        assert secret[: most + 1] not in mask_cut_text(f"please {before}{secret[:end]}{ending}")


@pytest.mark.parametrize(
    "text",
    [
        "Fix the authentication in src/turnlog/mcp/context.py",
        "Review commit 3f2a91c0deadbeef3f2a91c0deadbeef12345678",
        "See https://example.com/shop/issues/1234",
        "Upgrade to claude-sonnet-4-5-20250929",
        "Resume 0f0a0001-1234-4000-8000-0123456789ab",
        "Run test_v2_parser_handles_names",
        "Find getUserById2 in SessionStore2",
        "It says that the password is wrong",
        "authorization: see docs",
        "npm_install…",
    ],
)
def test_words_paths_and_numbers_at_a_cut_stay(text: str) -> None:
    assert mask_cut_text(text) == text
