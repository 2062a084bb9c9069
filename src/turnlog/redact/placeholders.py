"""What looks like a secret but is not one: examples, templates, names of variables, words, paths.

Judges candidates that a rule has found; knows no rule.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections import Counter
from collections.abc import Callable

_PLACEHOLDER = re.compile(
    r"""
    [xX]{4} | \*{3} | \.{3} | … | •{3} | _{4} | \#{4} | 0{8}     # blanks to be filled in
    | <[\w\ .:/|-]+> | \{\{?[^{}]+\}                             # templates: <token>, ${VAR}, {{ key }}, {key}
    | \[[A-Z][\w\ :.-]+\] | ^[\[({<]                             # [REDACTED], (hidden)
    | ^\$[A-Za-z_({\[?] | ^%[A-Za-z_]+%?$ | ^%\d$ | ^\\?["']      # $VAR, %VAR%, %1
    | example | placeholder | redacted | removed | changeme | change[_-]me | dummy | sample | insert[_-] | replace[_-]
    | insecure(?!-\S{20}) | ^!\w{1,20}$ | ^(?:pk_(?:live|test)_|pk\.eyJ|phc_|pub_)        # keys that are public
    | (?<![a-z])(?:your|my|fake|foo|some)[_-]         # YOUR_API_KEY
    """,
    re.VERBOSE | re.IGNORECASE,
)

_WORDS = re.compile(
    r"(?:password|passwd|pass|pwd)\d?|secrets?|token|api[_-]?key|credentials?|user|username|root|string|null|none|undefined"
    r"|true|false|unset|required|optional|hidden|masked|here|todo|test|testing|(?:my|your)[_-]?(?:password|secret)|p@ssw[o0]rd"
    r"|hash|str|postgres|admin|guest|x-oauth-(?:basic|token)|x-access-token|oauth2|base64|bcrypt|argon2\w{0,2}|scram-sha-\d{3}"
    r"|(?:sha|md|utf|oauth|pbkdf)-?\d{1,3}|abc123|foobar|[a-z]+ password"
)

_CODE = re.compile(
    r"^(?:process|os|env|environ|self|this|config|settings|args|opts|options|params|ctx|data|secrets|var|local|vault)[.\[]"
    r"|^(?:await|new|return|typeof|lambda)\b|[)\]][;:,.)}]*$|^(?:[a-z]+(?::[\w,]+)?\|)+(?:[a-z]+(?::[\w,]+)?)?$"
    r"|^[a-z]{2,20}(?:_[a-z]{2,20}){1,5}=(?=.)"  # another setting: password_hash_rounds=12
    r"|^[a-z_]\w*(?:\.[a-z_]\w*)+\(|^[a-z]{2,20}\d{1,3}[a-z]*\.[A-Z][A-Za-z]+$"
    r"|^(?:[a-z]\w{0,40}\.){1,5}[A-Z]\w{0,60}(?:Key|Token|Secret|Credentials?|Password)s?$"  # ed25519.Ed25519PrivateKey
    r"|^[A-Z]\w{0,60}(?:(?:Private|Public|Secret|Api)Key(?:Types?)?|Credentials)$"
    # Words joined by dots; a password may have a dot between random letters.
    r"|^&?(?:[$_]?(?:[A-Z]{3,6}(?=[A-Z][a-z]{2})|[A-Z]{2,}+(?![a-z])|[A-Z]?[a-z]{2,}+|[a-z](?![A-Za-z])|_)++\d{0,4}(?:\??\.(?=[A-Za-z_])|(?=[;})\],]*$)))"
    r"{2,}[;})\],]*$"
)
"""An expression that yields a secret is not the secret."""

_CALL = re.compile(r"[\w.$:?!]+(?=[(\[])")

_IDENTIFIER = re.compile(
    r"""
    [?!@&$:]?(?:
        [A-Z]{2,6}\d?(?=[A-Z][a-z]{2})              # PKCS7 in PKCS7PrivateKey
      | [A-Z]{2,18}\d?(?![A-Za-z0-9])               # MY_KEY
      | [A-Z][a-z]{1,18}\d?                         # PrivateKey
      | (?<![A-Za-z0-9])[a-z]{1,18}\d{0,3}          # access_token, user.password
      | (?<![A-Za-z0-9])v?\d{1,3}[a-z]?(?![A-Za-z0-9])  # MY_KEY_2, 70b
      | (?<![A-Za-z0-9])0\d{3}(?![A-Za-z0-9])      # ROCKET_LAUNCHER_0001
      | (?<![A-Za-z0-9])20\d\d(?:[01]\d(?:[0-3]\d)?)?(?![A-Za-z0-9])  # of a year, of a day
      | [._:@\#$?!-]
    )+\??
    """,
    re.VERBOSE,
)
"""Words, maybe joined, as in names of variables, types and models. A key has capitals and digits anywhere."""

_NAMED_PLACE = re.compile(r"(?:https?|file|s3|gs|git|ssh|op|vault)://|arn:|sha\d{3}[:-]|h1:|\$\w{1,40}/")
_PADDED = re.compile(r"[A-Za-z0-9+/]{22,}={1,2}")
"""Base64 may have words between its slashes, but no path ends with a sign of equality."""
_PATH_START = re.compile(r"(?:~|\.{1,2})?/|[A-Za-z]:\\{0,3}[\\/]")
_PATH_WORD = re.compile(
    r"[._@]{0,2}(?:[A-Za-z]?[a-z]{2,20}|[A-Z]{2,20})(?:[._-][A-Za-z]?[a-z0-9]{0,20}|[A-Z][a-z]{1,20})*"
)
_PATH_NUMBER = re.compile(r"v?\d{1,4}|\.{1,2}|[A-Za-z]:")


def is_placeholder(text: str) -> bool:
    """Whether a text is only the placeholder of a secret: `YOUR_API_KEY`, `xxxx`, `<token>`, `${VAR}`, `***`."""
    return (
        _WORDS.fullmatch(text.lower().strip("()[]{}<>.,;:")) is not None
        or _PLACEHOLDER.search(text) is not None
        or len(set(text)) <= 2
    )


def entropy(text: str) -> float:
    """Bits a character (Shannon): words have 2 to 3, keys of 20 and more random characters 3.5 and more."""
    length = len(text)
    return -sum(count / length * math.log2(count / length) for count in Counter(text).values())


def is_random(text: str) -> bool:
    """Whether a value under a telling name is a key: letters and digits, or many letters of both cases; few repeat."""
    looks_made = _is_mixed(text) or (len(text) >= 20 and text not in (text.lower(), text.upper()))
    if not looks_made and is_scrambled(text):
        return True
    return len(text) >= 10 and looks_made and entropy(text) >= 2.7 and not _is_expression(text) and not is_path(text)


def is_key(text: str) -> bool:
    """Whether a value under a vague name (`…_key`) is a key: 16 random characters or more, with digits."""
    digits = sum(character.isdigit() for character in text)
    return len(text) >= 16 and digits >= 2 and is_random(text) and not _is_uuid(text)


_BARE = re.compile(r"[\w+/=.-]{16,512}")


def is_bare_key(text: str) -> bool:
    """Whether a value is a key without signs, as services make them: a sort key of a table (`…_SK`) has signs."""
    return _BARE.fullmatch(text) is not None and is_key(text)


def is_app_password(text: str) -> bool:
    """Whether four groups of four letters are random: one of them has no vowel, as hardly any word."""
    return any(not set("aeiou") & set(group) for group in re.split(r"[ -]", text))


def is_url_token(text: str) -> bool:
    """Whether the text before the host of an address is a token, not a user name."""
    return len(text) >= 20 and is_key(text)


def is_password(text: str) -> bool:
    """Whether a value under a name for passwords is one: shorter than a key, but no word and no expression."""
    if is_scrambled(text):
        return True
    if (
        len(text) < 6
        or not _is_mixed(text.rstrip(",;"))
        or entropy(text) < 2.2
        or is_path(text)
        or max(text) > _LATIN_END
    ):
        return False
    return not _is_code(text) and _VERSION.fullmatch(text) is None


_CAPITAL, _SMALL = "A-Z\u00c0-\u00de", "a-z\u00df-\u00ff"
_LETTERS = re.compile(r"[A-Za-z]{10,128}")
_RISE = re.compile(r"[a-z][A-Z]")
"""Where a capital follows a small letter: in joined words once a word, in random letters at every fourth."""
_OWN_CAPITAL = re.compile(r"\A[A-Z](?=[A-Z][a-z])|[A-Z]{1,2}\Z")
_NO_WORD = re.compile(r"[bcdfghjklmnpqrstvwxz]{7}")
"""No word has so many consonants in a row."""


def is_scrambled(text: str) -> bool:
    """Whether a value is of letters only that are random: no word, and no joined words as in `getAccessToken`."""
    if _LETTERS.fullmatch(text) is None or text.isupper() or entropy(text) < 2.7:
        return False
    if text.islower():
        return _NO_WORD.search(text) is not None
    capitals = sum(character.isupper() for character in text)
    if _SAID.search(text.lower()) is not None:
        return False
    is_dense = len(_RISE.findall(text)) >= 3 and 0.3 <= capitals / len(text) <= 0.75
    # An interface begins, and a variable of a type ends, with a capital of its own: `IWriter`, `AgentDepsT`.
    words = _OWN_CAPITAL.sub("", text)
    return is_dense or (capitals >= 3 and _IDENTIFIER.fullmatch(words) is None)


_CHOSEN = re.compile(rf"[{_CAPITAL}{_SMALL}]{{3,}}(?:-[{_CAPITAL}{_SMALL}]{{2,}})*")
_SAID = re.compile(
    r"pass(?!ion)|pwd|secret|token|key|auth|cred|user|login|account|senha|contrase|kennwort|parol|wachtwoord|heslo|jelszo"
    r"|field|input|label|button|value|param|type|name|text|str(?:ing)?$|^(?:var)?char|error|valid|incorrect|correct$|wrong|match|short|weak"
)
"""What a label, a message, a type or a name of a password says of it."""
_STATES = re.compile(
    r"always|any|array|attribute|boolean|bytes|clear|confirm|created|current|database|default|define"
    r"|disable|disabled|email|empty|enable|enabled|encrypted|encryption|enter|expired|false|fixed|forgot"
    r"|forgotten|form|format|function|given|hashed|import|incoming|integer|internal|keychain|keyring"
    r"|mandatory|manual|method|missing|model|never|number|object|okay|plain|plugin|postgres|private|process"
    r"|prompt|property|protected|provided|public|random|readonly|ref|reserved|reset|return|saved|sealed"
    r"|secure|sensitive|session|set|setting|should|show|skip|stdin|stored|strong|system|template|undefined"
    r"|unique|unknown|unreserved|unsafe|unsupported|update|updated|visible|warning|write"
)
"""Words that stand in the place of a password and are none."""


def is_chosen(text: str) -> bool:
    """Whether a word, where only a password can be, is one that somebody chose, and no state, label or type."""
    lowered = text.lower()
    return (
        len(text) >= 6
        and _CHOSEN.fullmatch(text) is not None
        and not text.isupper()
        and _STATES.fullmatch(lowered) is None
        and _SAID.search(lowered) is None
    )


def is_password_or_word(text: str) -> bool:
    """Whether a value is a password, where only a password can be."""
    return is_password(text) or is_chosen(text)


_VERSION = re.compile(
    r"(?:localhost|[A-Za-z0-9-]+(?:\.[a-z0-9-]+)+):\d{2,5}|v?\d+(?:[.:,-]\d+)+[a-z]{0,2}\d{0,2}|\d+(?:\.\d+)?(?:ms|s|m|h|px|em|rem|kb|mb|%)?|[A-Z]\w+[a-z]\(\w*|\d+[A-Z]?"
)


_FILE = re.compile(
    r"[\w./-]+\.\w{1,5}(?::\d+){1,2}:?"
    r"|[\w./-]+\.(?:py|[jt]sx?|go|rs|rb|java|[ch]|cpp|json|ya?ml|toml|md|txt|sh|html?|css|sql|log|cfg|ini|lock|xml|csv)"
)
"""A file, maybe with the number of a line."""


def is_distinct(text: str) -> bool:
    """Whether a secret is the same one wherever it stands: no word, path, version or id that is there by chance."""
    if "\n" in text or _is_uuid(text) or _FILE.fullmatch(text) is not None or is_placeholder(text):
        return False
    return is_password(text) or is_random(text)


_LATIN_END = "\u024f"
"""The last letter of the Latin alphabets: in other scripts no password has both cases and digits."""
_WORD = re.compile(rf"[{_CAPITAL}{_SMALL}][{_SMALL}]{{4,}}|[{_CAPITAL}]{{5,}}")
_SHORT_WORD = re.compile(rf"[{_CAPITAL}{_SMALL}][{_SMALL}]{{2,}}|[{_CAPITAL}]{{4,}}")
"""A word in a short password, where anything longer could be a name in an expression."""
_INDEXED = re.compile(r"\w\[\w*\]|\w<\w+>|\w\(\w*\)")
_TEMPLATE = re.compile(r"\$?\{.*\}\Z|<.*>\Z|\$?\(.*\)\Z|\[.*\]\Z")
_JOINED = re.compile(r"""["'`]\s*[+,:)]|[+,:(=]\s*["'`]|\(\)|=>|[az]-[ZzA]|0-9|A-Z""")
"""Strings that code joins, or hands over; classes of a pattern."""

_SIGN = re.compile(r"[^\w\s./-]|[^\W\x00-\x7f]")
"""Letters that English has not count too: no code has them among digits and capitals."""
_ODD_SIGN = re.compile(r"[!#$%*?@^~;&|]|[^\W\x00-\x7f]")
"""Those that are rare in expressions."""

_SHORTEST, _MIDDLE = 8, 12


def is_generated(text: str) -> bool:
    """Whether a value is a password that a program made of letters, digits and signs: no word, and hardly code.

    Such a one may look like a placeholder, an expression or a template: `$k9<Lm2>Pq8)`.
    """
    if not (
        _SHORTEST <= len(text) <= 128
        and max(text) <= _LATIN_END
        and any(character.isdigit() for character in text)
        and any(character.isupper() for character in text)
        and any(character.islower() for character in text)
        and _TEMPLATE.match(text) is None
        and _JOINED.search(text) is None
    ):
        return False
    signs = len(set(_SIGN.findall(text)))
    if len(text) < _MIDDLE:
        return (
            signs >= 2
            and _ODD_SIGN.search(text) is not None
            and _SHORT_WORD.search(text) is None
            and _INDEXED.search(text) is None
        )
    return signs >= 2 and entropy(text) >= 2.9 and _WORD.search(text) is None


def is_given(text: str) -> bool:
    """Whether the text in the place of a password is one; any text is, except placeholders."""
    return not _is_code(text)


_OPENING = {")": "(", "]": "[", "}": "{"}
_BEFORE_BRACKET = re.compile(r"[^)\]}]+(?=[)\]}])")


_NAME = re.compile(r"[\w.$?]+")


def secret_within(text: str, is_secret: Callable[[str], bool]) -> tuple[int, int] | None:
    """Where a secret is in a text that may have a bracket too many: `X` in `X)`, `X).` and `(X)`, but not in `get(X)`.

    None if there is none; `access_token}` is a variable at the end of an object.
    """
    inner = _before_bracket(text)
    value = text if inner is None else text[slice(*inner)]
    is_name = inner is not None and _IDENTIFIER.fullmatch(value) is not None
    if is_name and _NAME.fullmatch(value) is not None:
        return None
    if is_secret(text):
        return 0, len(text)
    return inner if inner is not None and not is_name and is_secret(value) else None


def _before_bracket(text: str) -> tuple[int, int] | None:
    start = 1 if text[:1] in ("(", "[") else 0
    value = _BEFORE_BRACKET.match(text, start)
    if value is None or any(bracket in value[0] for bracket in _OPENING.values()):
        return None
    return None if start and _OPENING[text[value.end()]] != text[0] else value.span()


def is_key_body(text: str) -> bool:
    """Whether a block holds a key: a line of it, not only the words BEGIN and END."""
    return re.search(r"[A-Za-z0-9+/]{32}", text) is not None


def is_basic(text: str) -> bool:
    """Whether a text is a user name and a password in base64, as HTTP and Docker send them."""
    try:
        decoded = base64.b64decode(text + "=" * (-len(text) % 4), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError, ValueError):
        return False
    name, colon, password = decoded.partition(":")
    return bool(colon and password) and decoded.isprintable() and not is_placeholder(password) and len(name) < 200


def is_cookie(text: str) -> bool:
    """Whether one of the values of a cookie header is a key."""
    return any(is_random(pair.partition("=")[2]) and len(pair.partition("=")[2]) >= 16 for pair in text.split("; "))


def is_path(text: str) -> bool:
    """Whether a text is a path, an address or an ARN: mostly words between slashes."""
    if _NAMED_PLACE.match(text) is not None:
        return True
    if _PADDED.fullmatch(text) is not None:
        return False
    if "/" not in text and _PATH_START.match(text) is None:
        return False
    pieces = [piece for piece in re.split(r"[\\/]+", text) if piece]
    words = sum(_PATH_WORD.fullmatch(piece) is not None for piece in pieces)
    numbers = sum(_PATH_NUMBER.fullmatch(piece) is not None for piece in pieces)
    return words > 0 and (words + numbers) * 2 >= len(pieces)


_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


def _is_uuid(text: str) -> bool:
    return _UUID.fullmatch(text) is not None


def _is_mixed(text: str) -> bool:
    letters = any(character.isalpha() for character in text)
    return letters and any(not character.isalpha() and character not in "._-/ " for character in text)


def _is_expression(text: str) -> bool:
    return _is_code(text) or _IDENTIFIER.fullmatch(text) is not None


def _is_code(text: str) -> bool:
    if _CODE.search(text) is not None:
        return True
    call = _CALL.match(text)
    return call is not None and (_IDENTIFIER.fullmatch(call[0]) is not None)
