"""Passwords and keys that code gives to a well-known function by position, without a name before them."""

from __future__ import annotations

from turnlog.redact.placeholders import is_given, is_key, is_password, is_random
from turnlog.redact.rule import Rule, after

_QUOTE = r"\\{0,3}[\"'`]"
_ARGUMENT = r"[^()\n,]{1,160},\s{0,4}"
_TEXT = rf"{_QUOTE}(?P<secret>[^\s\"'`\\]{{6,256}}){_QUOTE}"
"""A string without spaces."""

CALLS: tuple[Rule, ...] = (
    # The host and a port, or a host or connection string, then the user come first.
    after(
        "login-password",
        "connect(|connection(|pdo(|mysqli(|sequelize(|create_user(|create_superuser(",
        rf"(?:connect\(\s{{0,4}}{_ARGUMENT}\d{{1,5}},\s{{0,4}}"
        rf"|(?:mysqli?_p?connect|getconnection|pdo|mysqli|sequelize|create_(?:super)?user)\(\s{{0,4}}{_ARGUMENT})"
        rf"{_ARGUMENT}{_TEXT}",
        is_password,
    ),
    after(
        "login-password",
        "hashpw(|hash::make(|password_hash(|check_password(",
        rf"(?:hashpw|hash::make|password_hash|check_password)\(\s{{0,4}}b?{_TEXT}",
        is_password,
    ),
    after(
        "signing-secret",
        "jwt.",
        rf"jwt\.(?:sign|verify|encode|decode)\([^\n]{{0,200}}?,\s?{_QUOTE}(?P<secret>[^\s\"'`\\]{{10,512}}){_QUOTE}",
        is_random,
    ),
    after("named-secret", "aes.new(|fernet(", rf"(?:aes\.new|fernet)\(\s{{0,4}}b?{_TEXT}", is_given),
    after("named-secret", "auth:|auth'|auth\"", rf"(?<![\w.-])auth(?:{_QUOTE})?\s?:\s?{_TEXT}", is_key),
)
"""The patterns of `after` are for text in lower case."""
