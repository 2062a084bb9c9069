"""Every rule finds its secrets and nothing else, in time that grows with the text alone."""

import random
import string
import time
from collections import Counter
from collections.abc import Sequence

import pytest

from support.secret_examples import EXAMPLES, PLACEHOLDERS, Example
from turnlog.redact import RULES, Redactor, mask_text, names

MEGABYTE = 1_000_000

SIZE = MEGABYTE // 10
"""Bytes of a text that shall not take long."""

NAMES = ("api_key", "password", "client_secret", "access_token", "Authorization", "DB_PASSWORD", "OPENAI_API_KEY")


def test_every_rule_has_its_examples() -> None:
    assert {*(rule.name for rule in RULES), *(name.rule for name in names.NAMES), "mnemonic"} == set(EXAMPLES)


@pytest.mark.parametrize(("name", "example"), EXAMPLES.items(), ids=list(EXAMPLES))
def test_a_secret_is_masked_and_named(name: str, example: Example) -> None:
    found: Counter[str] = Counter()
    masked = mask_text(example.text, found)
    assert masked == example.text.replace(example.secret, f"[REDACTED:{name}]")
    assert found == {name: 1}
    assert mask_text(masked) == masked


@pytest.mark.parametrize("example", EXAMPLES.values(), ids=list(EXAMPLES))
def test_what_only_looks_like_a_secret_stays(example: Example) -> None:
    assert mask_text(example.harmless) == example.harmless


@pytest.mark.parametrize("placeholder", PLACEHOLDERS)
def test_placeholders_are_no_secrets(placeholder: str) -> None:
    for name in NAMES:
        for text in (f"{name}={placeholder}", f'"{name}": "{placeholder}"', f"{name}: {placeholder}\n"):
            assert mask_text(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "max_tokens=4096 and token_count: 123456",
        "const token = await getAccessToken2(user)",
        "password: string; secret?: boolean",
        "private_key: PKCS7PrivateKeyTypes, certificate: x509.Certificate",
        'nextLastSignificantToken = "?InterpolationInTemplate"',
        "PublicKeyToken=b77a5c561934e089",
        "the password is in the vault",
        "if (password == password2) return; token == otherToken123456",
        "git@github.com:owner/name.git and http://localhost:8080/@scope/name",
        "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "3f2a91c0-7d1b-4c5e-9a0b-1c2d3e4f5a6b",
        "connect(user, password=get())",
        "connect(user, password=read_pw1(path))",
        'connect(user, password=os.environ["DB_PASSWORD_2"])',
        "connect(user, password=db_pass2)",
        "connect(user, password=config.db1.pass2)",
        "if (pwd=users[0].Def2) {",
        "(password: hidden), (token: string), password=(get())",
        "Not secret: password_hash_rounds=12, and so on",
    ],
)
def test_code_and_prose_stay(text: str) -> None:
    assert mask_text(text) == text


@pytest.mark.parametrize(
    ("letters", "most"),
    [
        (string.ascii_letters, 200),
        (string.ascii_letters + string.digits, 10),
        (string.ascii_lowercase + string.digits, 10),
    ],
)
def test_random_keys_are_no_words(letters: str, most: int) -> None:
    """Of two thousand keys under a name, hardly any may look like words."""
    made = random.Random(5)
    texts = [f"api_key={''.join(made.choices(letters, k=24))}" for _ in range(2000)]
    assert sum(mask_text(text) == text for text in texts) <= most


def test_the_shortest_token_is_masked() -> None:
    assert mask_text("xoxb-1234567890") == "[REDACTED:slack-token]"
    assert Redactor().redact({"xoxb-1234567890": "key=tr0ub"}) == {"[REDACTED:slack-token]": "key=tr0ub"}


def test_a_key_that_a_tool_showed_with_line_numbers_is_masked() -> None:
    key = EXAMPLES["private-key"].text
    numbered = "\n".join(f"{number:6}→{line}" for number, line in enumerate(key.splitlines(), 1))
    masked = mask_text(numbered)
    assert not any(line in masked for line in EXAMPLES["private-key"].secret.split())
    assert not any(line in mask_text(key[:300]) for line in EXAMPLES["private-key"].secret.split()[:2])


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("Server=db;Password=hunter2;Encrypt=yes", "Server=db;Password=[REDACTED:password];Encrypt=yes"),
        ("/login?password=hunter2&user=me", "/login?password=[REDACTED:password]&user=me"),
        ("log in (password=Qw7zTn4kLp2)", "log in (password=[REDACTED:password])"),
        ("so (password: Qw7zTn4kLp2).", "so (password: [REDACTED:password])."),
        ("login(user, password=Qw7zTn4kLp2)", "login(user, password=[REDACTED:password])"),
        ("(DB_PASSWORD=tr0ub4dor-und-3x)", "(DB_PASSWORD=[REDACTED:password])"),
        ("[password=Qw7zTn4kLp2]", "[password=[REDACTED:password]]"),
        ("(token=Zq81mLw09xTbQQ22)", "(token=[REDACTED:named-secret])"),
        ("(curl -u shop:Qw7zTn4kLp2)", "(curl -u shop:[REDACTED:command-line-user])"),
        ("(mysql -pQw7zTn4kLp2)", "(mysql -p[REDACTED:database-password])"),
        ("PASSWORD=(Qw7zTn4kLp2)", "PASSWORD=([REDACTED:password])"),
        ("{password: hunter2, user: me}", "{password: [REDACTED:password], user: me}"),
    ],
)
def test_a_password_ends_where_the_next_value_begins(text: str, masked: str) -> None:
    assert mask_text(text) == masked


def test_a_password_of_a_database_is_not_one_of_npm() -> None:
    assert mask_text("DB_PASSWORD=tr0ub4dor-und-3x") == "DB_PASSWORD=[REDACTED:password]"


@pytest.mark.parametrize(
    "unit",
    [
        "(password=a1)",
        "-----BEGIN PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----a",
        "password=",
        "password: a",
        "key ",
        "token   ",
        "-eyJa",
        "eyJaaaaaaaaaaaa.",
        "://a:",
        "cookie:a=",
        "curl a -u ",
        "mysql -p",
        "api_key: \\\\\\",
        'key\\\\\\"\n,,,',
        "<password ",
        "name: password value ",
        "setx token ",
        "machine a login ",
        "role a b c d e f g ",
        "a:5432:a:a:",
        "seed phrase abandon zoo ",
        "Private-Lines: 3\n",
        "ghp_a\n",
        "%41",
        "%",
        "\x1b[1m",
        "\x1b[",
        "-",
        "A/",
        "a",
        "İ",
        "\\",
    ],
)
def test_no_text_takes_long(unit: str) -> None:
    assert seconds_for([unit]) < MOST_SECONDS * SIZE / MEGABYTE


@pytest.mark.timeout(600)
def test_no_rule_takes_long() -> None:
    """What begins like a secret of the rule, again and again, and never is one.

    Each takes a tenth of a second: a run tries some of the rules, by chance.
    """
    for rule in random.sample(RULES, len(RULES) // 4):
        literal = rule.literals[0]
        units = [literal, f"{literal} a1", f'{literal}: "', f"{literal}a1B\\n"]
        assert seconds_for(units) < MOST_SECONDS * SIZE / MEGABYTE, rule.name


MOST_SECONDS = 30
"""For a megabyte: three to ten times what the slowest text takes, and a thirtieth of what a quadratic search would.

A tenth of the text has a tenth of the time, which is still a third of what a quadratic search would take."""


def seconds_for(units: Sequence[str]) -> float:
    text = "".join(unit * (SIZE // len(units) // len(unit)) for unit in units)
    began = time.process_time()
    mask_text(text)
    return time.process_time() - began
