"""Finds and masks secrets in one text or one named value. Knows rules and placeholders, but no structure."""

from __future__ import annotations

import base64
import binascii
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache, partial
from operator import attrgetter
from typing import NamedTuple

from turnlog.redact.columns import find_columns
from turnlog.redact.contexts import BLOCKS
from turnlog.redact.mnemonics import SHORTEST_PHRASE, find_mnemonics
from turnlog.redact.names import find_assignments, secret_name
from turnlog.redact.placeholders import is_generated, is_placeholder, is_random, secret_within
from turnlog.redact.rule import Rule
from turnlog.redact.rules import RULES
from turnlog.redact.triggers import Beginning, inside_rules, rules_for, tokens_in, words_in
from turnlog.redact.views import TextView, continued, cut_run, run_end, unmarked, unwrapped

SHORTEST = 8
"""No rule matches fewer characters."""

MNEMONIC = "mnemonic"
"""The rule of recovery phrases, which a checksum shows."""

_FILL = "\ue000"
"""Replaces what was found while the next rules are tried. A private-use character, which no pattern matches."""


_BLOCKS = frozenset(rule.name for rule in BLOCKS)
_WEB_KEY = next(rule for rule in RULES if rule.name == "json-web-key")


class SecretSpan(NamedTuple):
    """Where a secret is in a text."""

    start: int
    end: int
    rule: str


def mask(rule: str) -> str:
    """What replaces a secret. It is plain text in JSON, Markdown, HTML, URLs and shells."""
    return f"[REDACTED:{rule}]"


def mask_text(text: str, found: Counter[str] | None = None) -> str:
    """The text without secrets; what was masked is counted by rule in `found`."""
    spans = find_secrets(text)
    if found is not None:
        found.update(span.rule for span in spans)
    return mask_spans(text, spans)


def mask_spans(text: str, spans: Iterable[SecretSpan]) -> str:
    """The text with each of these spans masked. The spans are in order."""
    pieces: list[str] = []
    end = 0
    for span in spans:
        pieces += [text[end : span.start], mask(span.rule)]
        end = span.end
    return "".join([*pieces, text[end:]]) if pieces else text


def find_named(name: str, value: str) -> list[SecretSpan]:
    """A field's whole value, if the field's name shows that it is a secret."""
    if len(value) < 6:
        return []
    named = secret_name(name)
    if named is None or not (is_generated(value) or (named.check(value) and not is_placeholder(value))):
        return []
    return [SecretSpan(0, len(value), named.rule)]


def find_web_keys(json: str) -> list[SecretSpan]:
    """The secret members of JSON web keys in exact JSON. Their names are single letters."""
    return [SecretSpan(*span, _WEB_KEY.name) for span in _matches(_WEB_KEY, json, _lowered(json))]


def find_secrets(text: str) -> list[SecretSpan]:
    """The secrets in a text, in order and without overlaps."""
    if len(text) < SHORTEST:
        return []
    return _secrets_in(text) if len(text) > _LONGEST_KEPT else list(_kept_secrets_in(text))


_LONGEST_KEPT = 128
"""Four of five texts of a log are short and occur again and again: ids, models, folders."""


@lru_cache(maxsize=1024)
def _kept_secrets_in(text: str) -> tuple[SecretSpan, ...]:
    return tuple(_secrets_in(text))


def _secrets_in(text: str) -> list[SecretSpan]:
    begun = tokens_in(text)
    spans = _find(text, begun)
    whole = unmarked(text)
    for view in continued(text) if whole is None else (whole,):
        found = _find(view.text, tokens_in(view.text))
        spans += [SecretSpan(*view.span(span.start, span.end), span.rule) for span in found]
    if len(text) >= SHORTEST_ENCODED:
        spans += _find_wrapped(text, begun, joined(spans))
        spans += _find_encoded(text, joined(spans))
    return joined(spans)


def _lowered(text: str) -> str:
    """The text in lower case, with the same length: only one character would become two."""
    return text.lower() if text.isascii() else text.replace("\u0130", "i").lower()


def _find(text: str, begun: Sequence[Beginning]) -> list[SecretSpan]:
    """The secrets that the rules find; `begun` is `tokens_in(text)`. Each rule sees what the rules before it left."""
    lowered = _lowered(text)
    words = words_in(lowered)
    spans = _find_tokens(text, begun)
    if spans:
        text, lowered = _filled(text, spans), _filled(lowered, spans)
    for rule in rules_for(text, words or ()):
        new = [SecretSpan(*span, rule.name) for span in _matches(rule, text, lowered)]
        if new:
            text, lowered = _filled(text, new), _filled(lowered, new)
            spans += new
    if words is not None:
        named = [SecretSpan(*found) for found in find_assignments(text, lowered)]
        text, lowered = (_filled(text, named), _filled(lowered, named)) if named else (text, lowered)
        spans += named
        spans += [SecretSpan(*found) for found in find_columns(text, lowered)]
    if len(text) >= SHORTEST_PHRASE:
        spans += [SecretSpan(start, end, MNEMONIC) for start, end in find_mnemonics(text, lowered)]
    return spans


def _find_tokens(text: str, begun: Iterable[Beginning]) -> list[SecretSpan]:
    """The secrets that are recognised by their beginning."""
    spans: list[SecretSpan] = []
    for start, rules in begun:
        if not spans or spans[-1].end <= start:
            spans += _token_at(text, start, rules)
    return spans


def _token_at(text: str, start: int, rules: Iterable[Rule]) -> list[SecretSpan]:
    """The token that begins here, if there is one."""
    for rule in rules:
        match = rule.shape.pattern.match(text, start)
        if match is not None and _is_secret(rule, match[0]):
            return [SecretSpan(*match.span(), rule.name)]
    return []


def _filled(text: str, spans: Iterable[SecretSpan]) -> str:
    pieces: list[str] = []
    end = 0
    for span in spans:
        pieces += [text[end : span.start], _FILL * (span.end - span.start)]
        end = span.end
    return "".join([*pieces, text[end:]])


def _matches(rule: Rule, text: str, lowered: str) -> Iterator[tuple[int, int]]:
    if rule.near_word not in text:
        return
    pattern = rule.shape.pattern
    has_group = "secret" in pattern.groupindex
    command = None if rule.near is None else _Command(rule.near.pattern, text)
    for match in pattern.finditer(lowered if rule.any_case else text):
        start, end = match.span("secret" if has_group and match["secret"] is not None else 0)
        secret = text[start:end].strip(_FILL)
        if not secret or (command is not None and not command.is_near(match.start())):
            continue
        if not has_group:
            if _is_secret(rule, secret):
                yield start, end
            continue
        within = secret_within(secret, partial(_is_secret, rule))
        if within == (0, len(secret)):
            yield start, end
        elif within is not None:
            # (curl -u ana:…): the bracket is not part of the value.
            start = text.index(secret, start)
            yield start + within[0], start + within[1]


def _is_secret(rule: Rule, secret: str) -> bool:
    """Whether a match is a secret of the rule. A key block may hold anything, and a hash begins like a variable."""
    if rule.name not in _BLOCKS and is_placeholder(secret):
        return False
    return rule.check is None or rule.check(secret)


_NEAR = 300
"""The command of an option is at most so many characters before it."""


class _Command:
    """The command of an option, which is before it on the same line. Positions must be looked at in order."""

    def __init__(self, pattern: re.Pattern[str], text: str) -> None:
        self._pattern = pattern
        self._text = text
        self._start = -_NEAR
        """Where the command that was found last begins: it may have many options."""

    def is_near(self, position: int) -> bool:
        """Whether the command is before this position."""
        begin = max(0, position - _NEAR)
        if self._start >= begin and self._text.find("\n", self._start, position) < 0:
            return True
        line = max(begin, self._text.rfind("\n", begin, position) + 1)
        found = self._pattern.search(self._text[begin:position], line - begin)
        self._start = -_NEAR if found is None else begin + found.start()
        return found is not None


def _find_wrapped(text: str, begun: Iterable[Beginning], known: list[SecretSpan]) -> Iterator[SecretSpan]:
    """Tokens that continue on the next line; `begun` is `tokens_in(text)`."""
    if "\n" not in text and "\\n" not in text:
        return
    begin = end = 0
    view: TextView | None = None
    for start, rules in begun:
        if start >= end:
            begin, end, view = start, run_end(text, start), cut_run(text, start)
        for span in () if view is None else _token_at(view.text, start - begin, rules):
            end = begin + view.span(span.start, span.end)[1] if view else end
            yield from _if_cut(text, SecretSpan(start, end, span.rule), known)
    rules = inside_rules(text)
    if not rules:
        return
    view = unwrapped(text)
    for rule in rules:
        for start, end in _matches(rule, view.text, view.text):
            yield from _if_cut(text, SecretSpan(*view.span(start, end), rule.name), known)


def _if_cut(text: str, span: SecretSpan, known: list[SecretSpan]) -> Iterator[SecretSpan]:
    """The span, if it is new or adds more than a word of the next line to a known one."""
    beginning = _overlapping(known, span.start, span.end)
    if is_random(text[span.start if beginning is None else beginning.end : span.end].strip()):
        yield span


SHORTEST_ENCODED = 32
"""No base64 of fewer characters is looked into."""

_BASE64 = re.compile(rf"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/]{{{SHORTEST_ENCODED},20000}}+={{0,2}}(?![A-Za-z0-9+/_-])")


def _find_encoded(text: str, known: list[SecretSpan]) -> Iterator[SecretSpan]:
    """Base64 that decodes to a text with a secret: the whole of it."""
    for match in _BASE64.finditer(text):
        decoded = _decoded(match[0])
        inside = find_secrets(decoded) if decoded is not None else []
        if inside and _overlapping(known, *match.span()) is None:
            yield SecretSpan(*match.span(), inside[0].rule)


def _decoded(word: str) -> str | None:
    """The text that a word of base64 decodes to; None if it is no text."""
    try:
        if not base64.b64decode(word[:24]).isascii():
            return None
        text = base64.b64decode(word + "=" * (-len(word) % 4)).decode()
    except (binascii.Error, ValueError):
        return None
    return text if text.replace("\n", "").replace("\t", "").replace("\r", "").isprintable() else None


def _overlapping(spans: list[SecretSpan], start: int, end: int) -> SecretSpan | None:
    """The first of these ordered spans that overlaps this place."""
    number = bisect_right(spans, start, key=attrgetter("end"))
    return spans[number] if number < len(spans) and spans[number].start < end else None


def joined(spans: list[SecretSpan]) -> list[SecretSpan]:
    """The spans in order. Overlapping spans become one, with the rule that was found first."""
    if len(spans) < 2:
        return spans
    order = {span: number for number, span in reversed(list(enumerate(spans)))}
    merged: list[SecretSpan] = []
    for span in sorted(order, key=lambda span: (span.start, -span.end)):
        if merged and span.start < merged[-1].end:
            first = min(merged[-1], span, key=lambda each: order.get(each, 0))
            both = SecretSpan(merged[-1].start, max(merged[-1].end, span.end), first.rule)
            order[both] = min(order[merged[-1]], order[span])
            merged[-1] = both
        else:
            merged.append(span)
    return merged
