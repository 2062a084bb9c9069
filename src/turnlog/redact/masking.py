"""Masks in one text, and in one named value. Knows rules and placeholders, no structure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from functools import lru_cache, partial

from turnlog.redact.placeholders import is_password, is_placeholder, is_random
from turnlog.redact.rules import KEY_FIELD, PASSWORD_FIELD, RULES, Rule

SHORTEST = 8
"""No rule matches fewer characters."""

SHORTEST_TOKEN = 15
"""No secret with a shape of its own has fewer."""

_EXACT = tuple((literal, rule) for rule in RULES if not rule.any_case for literal in rule.literals)
_ANY_CASE = tuple((literal, rule) for rule in RULES if rule.any_case for literal in rule.literals)
_ORDER = {rule.name: number for number, rule in enumerate(RULES)}


def mask(rule: str) -> str:
    """What replaces a secret. It is plain text in JSON, Markdown, HTML, URLs and shells."""
    return f"[REDACTED:{rule}]"


def mask_text(text: str, found: Counter[str] | None = None) -> str:
    """The text without secrets; what was masked is counted by rule in `found`."""
    if len(text) < SHORTEST:
        return text
    counted: Counter[str] = Counter() if found is None else found
    for rule in _rules_for(text):
        text = rule.pattern.sub(partial(_replace, rule, counted), text)
    return text


def mask_named(name: str, value: str, found: Counter[str]) -> str:
    """`mask_text` of a field's value, which its name may show to be a secret as a whole."""
    masked = mask_text(value, found)
    if masked != value or len(value) < 6:
        return masked
    told = _rule_of_name(name)
    if told is None or not told[1](value) or is_placeholder(value):
        return value
    found[told[0]] += 1
    return mask(told[0])


_FIELDS = (
    (re.compile(rf"(?:{PASSWORD_FIELD.pattern})$", re.IGNORECASE), "password", is_password),
    (re.compile(rf"(?:{KEY_FIELD.pattern})$", re.IGNORECASE), "named-secret", is_random),
)


@lru_cache(maxsize=4096)
def _rule_of_name(name: str) -> tuple[str, Callable[[str], bool]] | None:
    """The rule for values of fields of this name, and what it asks of them. Few names occur again and again."""
    return next(((rule, check) for field, rule, check in _FIELDS if field.search(name)), None)


def _rules_for(text: str) -> list[Rule]:
    """The rules that may match, in their order."""
    found = {rule.name: rule for literal, rule in _EXACT if literal in text} if len(text) >= SHORTEST_TOKEN else {}
    lowered = text.lower()
    found |= {rule.name: rule for literal, rule in _ANY_CASE if literal in lowered}
    return sorted(found.values(), key=lambda rule: _ORDER[rule.name]) if found else []


def _replace(rule: Rule, found: Counter[str], match: re.Match[str]) -> str:
    group = "secret" if "secret" in rule.pattern.groupindex else 0
    secret = match[group]
    if is_placeholder_of(rule, secret) or (rule.check is not None and not rule.check(secret)):
        return match[0]
    found[rule.name] += 1
    start, end = match.start(group) - match.start(), match.end(group) - match.start()
    return match[0][:start] + mask(rule.name) + match[0][end:]


def is_placeholder_of(rule: Rule, secret: str) -> bool:
    """Whether a match is a secret of the rule. A key block may hold anything."""
    return rule.name != "private-key" and is_placeholder(secret)
