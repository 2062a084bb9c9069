"""What looks like a secret but is not one: examples, templates, names of variables, words.

Judges candidates that a rule has found; knows no rule.
"""

from __future__ import annotations

import math
import re
from collections import Counter

_PLACEHOLDER = re.compile(
    r"""
    [xX]{4} | \*{3} | \.{3} | … | •{3} | _{4} | \#{4} | 0{8}     # blanks to be filled in
    | [<>{}\[\]] | ^\$ | ^%[A-Z_]+%$                             # templates: <token>, ${VAR}, {{ key }}, [REDACTED]
    | example | placeholder | redacted | changeme | change[_-]me | dummy | sample | insert[_-] | replace[_-]
    | (?<![a-z])(?:your|my|fake|foo|some)[_-]                    # YOUR_API_KEY
    """,
    re.VERBOSE | re.IGNORECASE,
)

_WORDS = re.compile(
    r"(?:password|passwd|pass|pwd)\d?|secrets?|token|api[_-]?key|credentials?|user|username|root|string|null|none|undefined"
    r"|true|false|unset|required|optional|hidden|masked|here|todo|test|testing|(?:my|your)[_-]?(?:password|secret)|p@ssw[o0]rd"
)

_CODE = re.compile(r"[()]|^(?:process|os|env|environ|self|this|config|settings|args|opts|options|params|ctx|data)[.\[]")
"""An expression that yields a secret is not the secret."""

_IDENTIFIER = re.compile(
    r"""
    [?!]?(?:
        [A-Z]{2,6}\d?(?=[A-Z][a-z]{2})              # PKCS7 in PKCS7PrivateKey
      | [A-Z]{2,18}\d?(?![A-Za-z0-9])               # MY_KEY
      | [A-Z][a-z]{1,18}\d?                         # PrivateKey
      | (?<![A-Za-z0-9])[a-z]{1,18}\d?              # access_token, user.password
      | (?<![A-Za-z0-9])\d{1,3}(?![A-Za-z0-9])      # MY_KEY_2
      | [._-]
    )+
    """,
    re.VERBOSE,
)
"""Words, maybe joined, as names of variables and types are: a key has capitals and digits anywhere."""


def is_placeholder(text: str) -> bool:
    """Whether a text is only the placeholder of a secret: `YOUR_API_KEY`, `xxxx`, `<token>`, `${VAR}`, `***`."""
    return _WORDS.fullmatch(text.lower()) is not None or _PLACEHOLDER.search(text) is not None or len(set(text)) <= 2


def entropy(text: str) -> float:
    """Bits a character (Shannon): words have 2 to 3, keys of 20 and more random characters 3.5 and more."""
    length = len(text)
    return -sum(count / length * math.log2(count / length) for count in Counter(text).values())


def is_random(text: str) -> bool:
    """Whether a value under a telling name is a key: letters and digits, or many letters of both cases; few repeat."""
    looks_made = _is_mixed(text) or (len(text) >= 20 and text not in (text.lower(), text.upper()))
    return len(text) >= 12 and looks_made and entropy(text) >= 3.0 and not _is_expression(text)


def is_password(text: str) -> bool:
    """Whether a value under a name for passwords is one: shorter than a key, but no word and no expression."""
    return len(text) >= 6 and _is_mixed(text) and entropy(text) >= 2.2 and _CODE.search(text) is None


def is_given(text: str) -> bool:
    """Whether the text in the place of a password is one; any text is, except placeholders."""
    return _CODE.search(text) is None


def is_key_body(text: str) -> bool:
    """Whether a block holds a key: a line of it, not only the words BEGIN and END."""
    return re.search(r"[A-Za-z0-9+/]{40}", text) is not None


def _is_mixed(text: str) -> bool:
    letters = any(character.isalpha() for character in text)
    return letters and any(not character.isalpha() and character not in "._-/ " for character in text)


def _is_expression(text: str) -> bool:
    return _CODE.search(text) is not None or _IDENTIFIER.fullmatch(text) is not None
