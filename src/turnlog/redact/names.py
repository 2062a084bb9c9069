"""Secrets that are recognised by their name: how such names end, and what separates a name from its value.

The same names are used for JSON fields, where the name is known, and for text, where it must be found.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from typing import NamedTuple

from turnlog.redact.contexts import HEADERS
from turnlog.redact.placeholders import (
    is_bare_key,
    is_basic,
    is_chosen,
    is_cookie,
    is_generated,
    is_given,
    is_key,
    is_password,
    is_placeholder,
    is_random,
    secret_within,
)


class Name(NamedTuple):
    """How the name of a kind of secret ends, in any language."""

    rule: str
    pattern: re.Pattern[str]
    value: re.Pattern[str]
    """The shape of what has this name."""
    check: Callable[[str], bool]


_QUOTED = r"""(?<=["'`])[^\s"'`\\\x1b]{%d,512}(?=\\{0,3}["'`])"""


def _value(least: int) -> str:
    """A value of so many characters: up to the quote that ends it, or up to where a language would end it."""
    return rf"""{_QUOTED % least}|[^\s"'`,;&|<>\\\x1b]{{{least},512}}"""


_PASSWORD = (
    # May hold what ends a value elsewhere (`a=1&b=2`, `a=1;b=2`), unless another value follows.
    rf"""{_QUOTED % 6}|(?:[^\s"'`,;&\\<\x1b]|[,;&](?=[^\s"'`\\])(?!\w{{1,30}}=)){{6,256}}"""
)

_LINE = re.compile(r"""[^\s"'`\\\x1b]{10,512}(?=\s|\\|\Z)""")
"""A value in an env file, up to the end of the line."""

_MORE = r"(?:[_-]?(?:key|base|value|prod|production|dev|test|staging|live|local|\d{1,3}))?"

_KEYS = (
    r"api[_-]?key|secret[_-]?key|access[_-]?key|private[_-]?key|encryption[_-]?key|signing[_-]?key|master[_-]?key"
    r"|auth[_-]?key|account[_-]?key|app[_-]?key|preshared[_-]?key|secret|(?<!publickey)token|credentials?"
)


def _name(rule: str, names: str, value: str, check: Callable[[str], bool], flags: int = re.IGNORECASE) -> Name:
    return Name(rule, re.compile(rf"(?:{names}){_MORE}\Z", flags), re.compile(value), check)


NAMES = (
    _name("password", "passwor[dt]|passwd|pass[_-]?phrase|passcode|pwd|psk", _PASSWORD, is_password),
    # A word of its own, and not the end of `bypass` or `compass`.
    _name(
        "password",
        r"(?<![A-Za-z])(?i:pass)|(?<=[a-z0-9])Pass|(?<=[A-Z])(?<!BY)(?<!COM)(?<!SUR)(?<!TRES)(?<!OVER)(?<!UNDER)PASS",
        _value(6),
        is_password,
        0,
    ),
    _name("cookie", "cookie", _value(16), is_cookie),
    Name("bundler-credentials", re.compile(r"contribsys_{1,2}com\Z", re.IGNORECASE), re.compile(_value(17)), is_given),
    Name("docker-auth", re.compile(r"(?<![\w.-])auth\Z"), re.compile(_value(8)), is_basic),
    _name("named-secret", rf"(?<![A-Za-z0-9])(?:{HEADERS})|{_KEYS}", _value(10), is_random),
    _name("named-secret", r"(?<=[A-Za-z0-9]_)(?:SK|sk)", _value(16), is_bare_key, 0),
    _name("password", r"(?<=[A-Za-z0-9]_)(?:PW|pw)", _value(6), is_password, 0),
    _name("named-key", r"[a-z0-9][_-](?i:key)|[a-z0-9]Key|[A-Z0-9][_-]KEY", _value(16), is_key, 0),
)
"""The first match counts. Names may have more in front: `db_password`."""

_HARMLESS = re.compile(
    r"(?:public|publishable|pub|primary|foreign|partition|sort|cache|idempotency|object)[_-]?key\Z"
    r"|(?:public|lock|change|continuation|pagination|page|next|prev|last|first|cancellation|sync|stop|eos|bos|pad|mask|start|end)[_-]?token\Z",
    re.IGNORECASE,
)
"""Similar names that hold no secret."""

NAME_ENDS = ("pass", "pwd", "psk", "secret", "token", "credential", "key")
"""Every name that is looked for in text contains one of them, in lower case."""


@lru_cache(maxsize=4096)
def secret_name(name: str) -> Name | None:
    """What kind of secret a name holds; None if it holds none. The same few names occur again and again."""
    if _HARMLESS.search(name):
        return None
    return next((each for each in NAMES if each.pattern.search(name)), None)


_QUOTE = r"""\\{0,3}["'`]"""

_GAP = r"(?:\s|\\{1,3}[nrt]|[,{+>-]|\d{1,6}[→:]){0,40}"
"""Between two fields of an object, also in escaped JSON, in a diff and behind the numbers of lines."""

_FIELD = (
    rf"(?:{_GAP}(?:{_QUOTE})?(?!value|default)\w{{1,20}}(?:{_QUOTE})?\s{{0,8}}[:=]\s{{0,4}}"
    rf"(?:{_QUOTE})?[\w /.-]{{1,40}}(?:{_QUOTE})?)"
)
"""Another field between them."""

_HAS_VALUE = r"(?=[\s\S]{0,500}?(?:value|default))"
"""Most names have no such field behind them, and to look for one through other fields takes long."""

_LITERAL = (
    r"(?:(?:[bfru@]|[bf]r|r[bf])(?=\\{0,3}[\"'])|\[\[|secret(?:str|bytes)\((?=\\{0,3}[\"'])|field\((?:default=)?(?=\\{0,3}[\"'])"
    r"|(?:[a-z]{1,20}\.)?(?:fromhex|unhexlify|b64decode|hex::decode|buffer\.from)\((?=\\{0,3}[\"']))?"
)
"""What languages write before the quote of a literal: b"…", @"…", SecretStr("…"), and before one without: [[…]]."""

_LINES = (
    rf"(?:\(?[ \t]{{0,2}}(?:\r?\n|\\{{1,3}}n)[ \t]{{0,40}}(?=[bf]?{_QUOTE})|[>|][+-]?(?:\r?\n|\\{{1,3}}n)[ \t]{{1,40}})"
)
"""Between a separator and a value on the next line: a string of code, a block of YAML."""

_ASSIGNMENT = re.compile(
    rf"(?:pass(?:wor[dt]|wd|[_-]?phrase|code)?|pwd|psk|secret|token|credentials?|key){_MORE}(?!\w)(?:"
    # apiKey: string = "…", API_KEY: Final[str] = "…", const key string = "…"
    rf"(?P<typed>(?:\??\s{{0,2}}:\s{{0,2}}|\s{{1,2}})[&a-z_][\w.<>\[\]|?&' ]{{0,40}}=[ \t]{{0,4}}{_LITERAL}{_QUOTE})"
    # add_argument("--token", default="…")
    rf"|(?P<defaulted>{_QUOTE},[\w=., ]{{0,60}}default={_QUOTE})"
    # {"name": "API_KEY", "value": "…"}, also in YAML and in attributes
    rf"|(?P<value>{_HAS_VALUE}(?:{_QUOTE})?{_FIELD}{{0,3}}{_GAP}(?:{_QUOTE})?(?:value|default)(?:{_QUOTE})?\s{{0,8}}[:=]\s{{0,4}}(?:{_QUOTE})?)"
    # define("API_KEY", "…"), ["--token", "…"]
    rf"|(?P<listed>{_QUOTE}\s{{0,2}},\s{{0,2}}{_QUOTE})"
    # env.API_KEY || "…", ENV["API_KEY"] ?? "…"
    rf"|(?P<otherwise>(?:{_QUOTE})?\]?\s{{0,2}}(?:\|\||\?\?|\bor\b)\s{{0,2}}{_QUOTE})"
    # setPassword("…")
    rf"|(?P<called>\({_QUOTE})"
    # | password | … |, password<TAB>…
    r"|(?P<cell>[`*]{0,3}[ \t]{0,20}\|(?!\|)[ \t]{0,4}`?)"
    r"|(?P<tab>\t{1,4}|\\{1,3}t)"
    # key: "…", key=…, \"key\": \"…\", user[key]=…, key ?= …, key ||= "…", key[] = "…", **Key:** `…`
    rf"|(?P<plain>(?:{_QUOTE})?(?:\[\w{{0,10}}\]|\]|\s?\{{[a-z; ]{{1,30}}\}})?(?:\*\*)?\s{{0,4}}"
    rf"(?:=>|<-|(?:\|\||\?\?|[:?])?=(?!=)|:)(?:\*\*)?(?:[ \t]{{0,4}}{_LINES}|\s{{0,4}}){_LITERAL}(?:{_QUOTE})?)"
    # <key>apiKey</key> <string>…</string>
    rf"|(?P<property></key>{_GAP}<string>)"
    # <password>…</password>
    r"|(?P<element>[\"']?(?:\s[^<>]{0,100})?>(?:<!\[cdata\[)?)"
    # #define WIFI_PASSWORD "…", :password "…", storePassword '…'
    rf"|(?P<quoted>[ \t]{{1,8}}@?{_QUOTE})"
    # --password …, setx API_KEY …
    r"""|(?P<argument>\s{1,4}(?:--body\s{1,4}|-b\s{1,4}|--value\s{1,4})?["']?)"""
    r")"
)
"""The end of a name, and what separates it from its value. For text in lower case."""

_BEFORE = {
    "value": re.compile(
        rf"(?:name|key|variable|parameter)(?:{_QUOTE})?\s{{0,4}}[:=]\s{{0,4}}(?:{_QUOTE})?\Z|variable\s{{1,4}}{_QUOTE}\Z",
        re.IGNORECASE,
    ),
    "cell": re.compile(r"\|[ \t]{0,4}[`*]{0,3}\Z"),
    "property": re.compile(r"<key>\Z"),
    "element": re.compile(r"<(?:[\w-]{1,30}:)?\Z|<\w{1,20} name=[\"']\Z"),
    "argument": re.compile(r"(?<![\w.])(?:(?:setx|setenv|set|ENV|set -\w{1,4}) {1,4}|--|(?<=\s)-)\Z"),
}
"""What must be before a name that is followed by markup, a space or another field."""

_LINE_NUMBER = re.compile(r"(?<!\d)\d{1,7}:\Z")
"""A search writes `file:12:` before a line."""

_ELEMENTS = ("element", "property")

_CLOSED = ("quoted", "otherwise", "called")
"""Separators that mean a value only if it ends with a quote."""

_LONGEST_NAME = 64
_LONGEST_BEFORE = 48


class Assignment(NamedTuple):
    """A value in a text, and the rule of its name."""

    start: int
    end: int
    rule: str


def find_assignments(text: str, lowered: str) -> Iterator[Assignment]:
    """The secrets in a text that have telling names. `lowered` is the text in lower case, with the same length."""
    position = 0
    while (match := _ASSIGNMENT.search(lowered, position)) is not None:
        position = match.end()
        found = _secret_at(text, match)
        if found is not None:
            yield found
            position = found.end


def _secret_at(text: str, match: re.Match[str]) -> Assignment | None:
    between = match.lastgroup or ""
    head = _head(text, match.start())
    name = secret_name(text[head : match.start(between)])
    if name is None or not _is_announced(text, head, match, between):
        return None
    is_variable = between == "plain" and match[between] == "=" and text[head : match.start(between)].isupper()
    end = _generated_end(text, head, match.end(), name.check)
    if end is not None and between not in _ELEMENTS:
        return Assignment(match.end(), end, name.rule)
    value = (is_variable and _LINE.match(text, match.end())) or name.value.match(text, match.end())
    if not value or (between in _ELEMENTS and not text.startswith(("</", "]]>"), value.end())):
        return None
    if between in _CLOSED and text[value.end() : value.end() + 1] not in ("\\", '"', "'", "`"):
        return None
    may_be_word = name.rule == "password" and (is_variable or _is_literal(text, head, match, between, value.end()))
    within = secret_within(
        value[0],
        lambda text: not is_placeholder(text) and (name.check(text) or (may_be_word and is_chosen(text))),
    )
    if within is None:
        return None
    start, end = value.start() + within[0], value.start() + within[1]
    return Assignment(start, _phrase_end(text, start, end), name.rule)


_DEFINED = re.compile(r"(?:define\(\s{0,4}|--)[\"']?\Z|[\"']--\Z", re.IGNORECASE)
"""Before a name in a list whose next member is its value, and not one more name."""

_SET = re.compile(r"(?:set|setx|setenv|ENV|set -\w{1,4}) {1,4}\Z")


def _is_literal(text: str, head: int, match: re.Match[str], between: str, end: int) -> bool:
    """Whether a value ends here that can only be one, whatever it says: in quotes, in markup, of an option."""
    before = text[max(0, head - _LONGEST_BEFORE) : head]
    if between == "listed":
        return _DEFINED.search(before) is not None
    if between == "argument":
        return _SET.search(before) is not None
    if between == "plain" and match[between] == "=" and before.endswith("--"):
        return True
    is_quoted = text[match.end() - 1] in "\"'`" and text[end : end + 1] in ("\\", '"', "'", "`")
    return between in ("element", "property", "value") or (is_quoted and between in ("plain", "typed", "quoted"))


_PHRASE = re.compile(r"""(?:[ ](?![ ])|[^\s"'`\\\x1b]){1,96}(?=\\{0,3}(["'`]))""")


def _phrase_end(text: str, start: int, end: int) -> int:
    """Where a value ends that begins behind a quote and has spaces in it: at the next quote of this kind."""
    if text[end : end + 1] != " " or text[start - 1] not in "\"'`":
        return end
    rest = _PHRASE.match(text, end)
    return end if rest is None or rest[1] != text[start - 1] else rest.end()


_OPENED = re.compile(r"""(?<!\\)(\\{0,3})(["'`])\Z""")
_LINE_START = re.compile(r"(?:\n|\A)[ \t]{0,20}(?:- |export |set )?\Z")
_TO_END = re.compile(r"(?:(?!\\[nrt])[^\s\x1b]){8,128}(?=[ \t]{0,8}(?:\r?\n|\Z))")


@cache
def _up_to(quote: str, escapes: int) -> re.Pattern[str]:
    """A value up to its quote, which has so many backslashes before it."""
    # `\\"` in a string that begins with `"` is part of it, and so is `\\\\\\"` in one that begins with `\\"`.
    close = rf"\\{{{escapes}}}{quote}"
    inner = rf"(?!(?<!\\){close})[^\s\x1b]" if escapes else rf"[^\s\x1b{quote}\\]|\\[^\s]"
    return re.compile(rf"(?:{inner}){{8,128}}(?={close})")


_ESCAPED = re.compile(r"\\{1,8}u(0[0-2][0-9a-fA-F]{2})")


def _unescaped(text: str) -> str:
    r"""A text with the letters that JSON has written as numbers: `\u00e4`."""
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text) if "\\u0" in text else text


def _generated_end(text: str, head: int, start: int, check: Callable[[str], bool]) -> int | None:
    """Where a password that a program made ends, which begins here: at its quote, or with its line.

    Only such a one may hold the quotes and signs that end other values. `head` is where its name begins.
    """
    opened = _OPENED.search(text, max(0, start - 5), start)
    if opened is None:
        is_line = _LINE_START.search(text, max(0, head - _LONGEST_BEFORE), head) is not None
        found = _TO_END.match(text, start) if is_line else None
    else:
        found = _up_to(opened[2], len(opened[1])).match(text, start)
    if found is None:
        return None
    value = _unescaped(found[0])
    is_escaped = value != found[0] and (is_generated(found[0]) or (not is_placeholder(value) and check(value)))
    return found.end() if is_escaped or is_generated(value) else None


def _head(text: str, end: int) -> int:
    """The start of the name whose last word starts here."""
    start, least = end, max(0, end - _LONGEST_NAME)
    while start > least and (text[start - 1].isalnum() or text[start - 1] in "_-."):
        start -= 1
    # The letter of an escaped line end is not part of the name, and neither are the dashes of an option.
    if start and text[start - 1] == "\\" and text[start] in "nrt":
        start += 1
    while start < end and text[start] == "-":
        start += 1
    return start


def _is_announced(text: str, head: int, match: re.Match[str], between: str) -> bool:
    if between == "called":
        return text[head : match.start(between)].rpartition(".")[2].lower().startswith(("set", "with"))
    before = _BEFORE.get(between)
    if before is not None:
        return before.search(text[max(0, head - _LONGEST_BEFORE) : head]) is not None
    is_bare = text[head : match.start(between)].lower() == "pass"
    if between == "plain" and ":" in match[between]:
        # `arn:aws:secretsmanager:eu-west-1:123456789012:secret:…` is a path, and `PASS: test_till` is a report.
        is_path = head > 0 and text[head - 1] == ":" and _LINE_NUMBER.search(text[max(0, head - 9) : head]) is None
        return not is_path and (not is_bare or match[between][-1] in "\"'`")
    return not (is_bare and between in ("typed", "quoted"))
