"""Secrets that stand alone on the line below the command that prints them, as in a terminal that was copied.

Only commands whose whole output is a secret: a file or variable with a telling name, a token of a login, a value of a
vault, new random characters.
"""

from __future__ import annotations

from turnlog.redact.placeholders import is_password
from turnlog.redact.rule import Rule, after

_SECRET = r"(?:passwords?|passwd|passphrase|secrets?|secret[_-]?key|tokens?|api[_-]?keys?|credentials?|master[.]key)"
_REST = r"[^\n\\]{0,160}?"
_BELOW = (
    r"[^\n\\|>]{0,80}"
    r"(?:\|\s?(?:base64 (?:-d|--decode)|tr -d \S{1,8}|head -\w{1,6}(?: \d{1,4})?)[^\n\\|>]{0,20})?"
    r"(?:\r?\n|(?:\\{1,8}r)?\\{1,8}n)"
    r"(?:base64:)?(?P<secret>[^\s\"'`\\]{8,512})(?=\s{0,4}(?:\r?\n|\\{1,8}[rn]|\\{0,8}\"|\Z))"
)
"""The end of the command, and a line of one word below it."""


def _below(literals: str, command: str) -> Rule:
    return after("printed-secret", literals, command + _BELOW, is_password)


PRINTED: tuple[Rule, ...] = (
    _below("cat ", rf"(?<![\w-])cat {_REST}[\w./~-]{{0,80}}{_SECRET}(?:\.(?:txt|key))?(?=\s|\\)"),
    _below("echo ", rf"(?<![\w-])echo (?:-\w )?\\{{0,3}}\"?\$\{{?\w{{0,40}}{_SECRET}\}}?\\{{0,3}}\"?(?=\s|\\)"),
    _below("printenv ", rf"printenv \w{{0,40}}{_SECRET}(?=\s|\\)"),
    _below("config:get |secrets get ", r"(?:config:get|secrets get) \w{1,60}(?: --plain| -\w \w{1,40})?(?=\s|\\)"),
    _below(
        "openssl rand |pwgen|wg gen|token_hex|token_urlsafe|rails secret|key:generate",
        r"(?:openssl rand|pwgen|wg gen(?:key|psk)|rails secret|key:generate --show"
        r"|python\d? -c [^\n\\]{0,80}token_(?:hex|urlsafe))",
    ),
    _below(
        "auth token|access-token|get-login-password|pass show |op read |-field=|get-secret-value|with-decryption",
        r"(?:(?<!\w)(?:gh|glab|hf|fly(?:ctl)?) auth token|print-(?:access|identity)-token|get-login-password"
        rf"|(?<![\w-])(?:pass show|op read) |vault {_REST}-field=|get-access-token {_REST}tsv"
        rf"|(?:get-secret-value|--with-decryption) {_REST}text)",
    ),
    _below("-password ", r"find-(?:generic|internet)-password [^\n\\]{0,80}-\w{0,3}w"),
    _below("get secret", rf"get secrets? {_REST}\| ?base64 (?:-d|--decode)"),
    _below("output -raw ", rf"output -raw \w{{0,40}}{_SECRET}"),
    _below("jq |yq ", rf"[jy]q (?:-r |-\w )?\\{{0,3}}[\"']?[\w.]{{0,60}}\.\w{{0,30}}{_SECRET}(?=[\s\"'\\])"),
)
"""The patterns of `after` are for text in lower case."""
